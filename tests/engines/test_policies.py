"""The policy pack under the real Pulumi: on a program that breaks every rule once, on repairs, on every environment.

Each program is previewed with the pack, brought up without it, and its state analyzed. The resources are made
by a provider in this process that takes everything.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi.runtime.proto import provider_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from forked_python import forked_python
from kueue_fleet_policies import RULES
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from kueue_rehearsal.pulumi_cli import ONE_CHECKPOINT, make_pulumi_home
from kueue_rehearsal.standins.executables import install_standins
from one_worker import with_one_worker
from tests.engines.memory_provider import MemoryProvider, World, plain, serve
from tests.policies.declared import Seed
from tests.policies.seeds import SEEDS

ROOT = Path(__file__).parent.parent.parent
PACK = ROOT / "policies"
INSTALLED_PACK = PACK / "kueue_fleet_policies" / "pack"
"""The pack of a wheel."""
STACKS = sorted(
    set(ROOT.glob("stacks/Pulumi.*.yaml")) - {ROOT / f"stacks/Pulumi.{name}.yaml" for name in ("dev", "staging")}
)
COMMAND_SECONDS = 300
COMPUTED = ("masterAuth", "controlPlaneEndpointsConfig", "privateClusterConfig")
"""Inputs to which the cloud adds something."""
LEVELS = {rule.name: rule.level for rule in RULES}


class TakesEverything(MemoryProvider):
    """Makes whatever it is asked for, as often as it is asked."""

    def Create(self, request: Any, context: Any) -> Any:
        inputs = plain(request.properties)
        outputs = self._outputs(request, inputs)
        if request.preview:
            # As real providers do: what the cloud will say is not known yet.
            outputs.update({key: UNKNOWN_STRING_VALUE for key in outputs if key not in inputs or key in COMPUTED})
        return provider_pb2.CreateResponse(id="" if request.preview else request.urn, properties=outputs)


@dataclass(frozen=True)
class Reported:
    """One report of a policy, or one repair."""

    rule: str
    resource: str
    level: str
    message: str = field(default="", compare=False)


class Project:
    """A Pulumi project with one stack, in a folder of its own."""

    def __init__(self, folder: Path, environment: Mapping[str, str], program: Path, stack: str = "dev") -> None:
        self.folder, self.stack = folder, stack
        self._environment = dict(environment)
        folder.mkdir(parents=True)
        settings = {"name": "kueue-fleet", "runtime": "python", "main": str(program)}
        settings["backend"] = {"url": f"file://{folder}"}  # type: ignore[assignment]
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color=never"],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=COMMAND_SECONDS,
        )  # fmt: skip

    def created(self) -> Project:
        result = self.pulumi("stack", "select", "--create", "--stack", self.stack)
        assert result.returncode == 0, result.stderr
        return self

    def judged(self, verb: str, *options: str, config: Mapping[str, Any] | None = None) -> tuple[int, list[Reported]]:
        """Exit code and reports of a command with the pack."""
        events = self.folder / f"{verb}.events"
        result = self.pulumi(verb, "--stack", self.stack, f"--event-log={events}", *self._pack(config), *options)
        assert events.is_file(), result.stdout + result.stderr
        results = list(reports(events.read_text()))
        assert result.returncode == 0 or results, result.stdout + result.stderr
        return result.returncode, results

    def analyzed(self, config: Mapping[str, Any] | None = None) -> tuple[int, list[Reported]]:
        """Exit code and reports of the analysis of the state."""
        result = self.pulumi("policy", "analyze", "--stack", self.stack, "--json", *self._pack(config))
        results = list(reports(result.stdout))
        assert result.returncode == 0 or results, result.stdout + result.stderr
        return result.returncode, results

    def up(self) -> None:
        result = self.pulumi("up", "--yes", "--skip-preview", "--stack", self.stack)
        assert result.returncode == 0, result.stdout + result.stderr

    def state_text(self) -> str:
        """The state as it is stored."""
        return (self.folder / ".pulumi" / "stacks" / "kueue-fleet" / f"{self.stack}.json").read_text()

    def _pack(self, config: Mapping[str, Any] | None) -> list[str]:
        options = ["--policy-pack", str(PACK)]
        if config:
            file = self.folder / "policy-config.json"
            file.write_text(json.dumps(config))
            options += ["--policy-pack-config", str(file)]
        return options


def reports(events: str) -> Iterator[Reported]:
    """Reports and repairs among Pulumi's events, one per line."""
    for line in events.splitlines():
        event = json.loads(line)
        if policy := event.get("policyEvent"):
            urn = policy.get("resourceUrn", "")
            name = STACK if not urn or "::pulumi:pulumi:Stack::" in urn else urn.rsplit("::", 1)[-1]
            yield Reported(policy["policyName"], name, policy["enforcementLevel"], policy["message"])
        elif repair := event.get("policyRemediationEvent"):
            yield Reported(repair["policyName"], repair["resourceUrn"].rsplit("::", 1)[-1], "remediate")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What `pulumi` needs to run here without its own language host and without a cloud."""
    folder = tmp_path_factory.mktemp("pulumi")
    command = build_engines(EngineCache(engines_dir()), names=["pulumi"]).binary("pulumi")
    install_standins(folder / "bin", forked_python(), present={})
    python_path = (ROOT, ROOT / "tests/support", ROOT / "components", PACK)
    with serve(World(), TakesEverything) as providers:
        yield {
            "PATH": f"{folder / 'bin'}{os.pathsep}{command.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "PULUMI_HOME": str(make_pulumi_home(folder / "home")),
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_PROVIDERS": providers,
            "PULUMI_DEBUG_COMMANDS": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            **ONE_CHECKPOINT,
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PYTHONPATH": os.pathsep.join(str(path) for path in python_path),
        }


STACK = "the stack"
EXPECTED = {Reported(seed.rule, seed.at or STACK, LEVELS[seed.rule].value): seed.says for seed in SEEDS}
"""Each rule at its resource, and what its message has to say."""
SECRETS = ("hunter2", base64.b64encode(b"hunter2-swordfish").decode())
"""What the seeds have in clear."""


def seed_of(rule: str) -> Seed:
    return next(seed for seed in SEEDS if seed.rule == rule)


def program(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "__main__.py").write_text(text)
    return folder


def test_each_of_the_violations_is_caught_by_its_rule_in_preview_and_on_exported_state(
    environment: dict[str, str], tmp_path: Path
) -> None:
    text = "from tests.policies.on_pulumi import declare\nfrom tests.policies.seeds import SEEDS\n\n"
    text += "declare(one for seed in SEEDS for one in seed.resources)\n"
    project = Project(tmp_path / "seeds", environment, program(tmp_path / "program", text)).created()
    config = {seed.rule: seed.config for seed in SEEDS if seed.config}
    previewed, result = project.judged("preview", config=config)
    assert previewed != 0
    assert {*result} == EXPECTED.keys()
    assert len(result) == len(EXPECTED)
    for one in result:
        assert EXPECTED[one] in one.message
        assert "can't run policy" not in one.message
        assert not [secret for secret in SECRETS if secret in one.message]
    project.up()
    analyzed, on_state = project.analyzed(config)
    assert analyzed != 0
    assert {*on_state} == EXPECTED.keys()
    assert len(on_state) == len(EXPECTED)
    output = project.pulumi("policy", "analyze", "--stack", project.stack, "--policy-pack", str(INSTALLED_PACK))
    assert output.returncode == 1
    for one in EXPECTED:
        assert one.rule in output.stdout or seed_of(one.rule).config
    assert not [secret for secret in SECRETS if secret in output.stdout + output.stderr]
    assert "panic" not in output.stderr


def test_what_can_be_repaired_is_repaired_when_asked_for(environment: dict[str, str], tmp_path: Path) -> None:
    repairable = [rule.name for rule in RULES if rule.remediable]
    seeds = [seed for seed in SEEDS if seed.rule in repairable]
    text = "from tests.policies.on_pulumi import declare\nfrom tests.policies.seeds import SEEDS\n\n"
    text += f"declare(one for seed in SEEDS if seed.rule in {repairable} for one in seed.resources)\n"
    project = Project(tmp_path / "repairs", environment, program(tmp_path / "program", text)).created()
    config = {name: {"enforcementLevel": "remediate"} for name in repairable}
    updated, results = project.judged("up", "--yes", "--skip-preview", config=config)
    assert updated == 0
    assert {*results} == {Reported(seed.rule, seed.culprit.name, "remediate") for seed in seeds}
    assert project.analyzed() == (0, [])
    assert not [secret for secret in SECRETS if secret in project.state_text()]
    result = project.pulumi(
        "policy", "analyze", "--stack", project.stack, "--json", "--policy-pack", str(own_pack(tmp_path))
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert {one.rule for one in reports(result.stdout)} == {"no-subnets", "spend-pool-gpus"}


def own_pack(folder: Path) -> Path:
    """Somebody's pack: some rules of this one, one with a guard of its own, and a rule of theirs."""
    pack = folder / "own"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (pack / "__main__.py").write_text(
        "from kueue_fleet_policies import policies\n"
        "from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy\n\n"
        "def no_subnets(args, report):\n"
        "    if args.resource_type == 'gcp:compute/subnetwork:Subnetwork':\n"
        "        report('ours are made elsewhere')\n\n"
        "PolicyPack('own', [*policies(['Spend', 'Kueue queues', 'gke-private-nodes']),\n"
        "    ResourceValidationPolicy('no-subnets', 'No subnets.', no_subnets, EnforcementLevel.MANDATORY)],\n"
        "    initial_config={'spend-pool-gpus': {'maxGpus': 4}})\n"
    )
    return pack


@pytest.mark.parametrize("stack", STACKS, ids=lambda path: path.stem.removeprefix("Pulumi."))
def test_nothing_mandatory_falls_on_an_environment(environment: dict[str, str], tmp_path: Path, stack: Path) -> None:
    """With one worker each, in a preview and on the exported state; the whole: tests/policies/test_environments.py."""
    name = stack.stem.removeprefix("Pulumi.")
    project = Project(tmp_path / name, environment, ROOT / "stacks", name)
    settings = yaml.safe_load(stack.read_text())
    if "multiKueue" in (fleet := settings["config"]["kueue-fleet:fleet"]):
        with_one_worker(fleet)
    (project.folder / stack.name).write_text(yaml.safe_dump(settings))
    project.created()
    assert_passes(*project.judged("preview"))
    project.up()
    assert_passes(*project.analyzed())


def assert_passes(code: int, found: list[Reported]) -> None:
    assert [str(one) for one in found if one.level != EnforcementLevel.ADVISORY.value] == []
    assert [one.message for one in found if "can't run policy" in one.message] == []
    assert code == 0
