"""The stand-ins under the real `pulumi`, against a real API server and the real supervisor."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from forked_python import forked_python
from kueue_rehearsal.engines import EngineCache, Engines, build_engines
from kueue_rehearsal.paths import RehearsalPaths, engines_dir
from kueue_rehearsal.processes.ends import still_running
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, start_supervisor
from kueue_rehearsal.pulumi_cli import make_pulumi_home
from kueue_rehearsal.standins.executables import KUBERNETES, PARTS, install_standins
from one_cluster import PATIENCE_SECONDS, wait_until

COMMAND_SECONDS = 120
CLUSTER = "east"
PRELUDE = """
import json, os, pulumi
import pulumi_kubernetes as k8s
from pulumi import ResourceOptions as Options
KUBECONFIG = os.environ["TRIAL_KUBECONFIG"]
def cluster(name="east", **settings):
    return k8s.Provider(name, kubeconfig=KUBECONFIG, cluster_identifier="p/l/" + name, **settings)
"""


@dataclass
class Trial:
    """A cluster, and everything that `pulumi` needs to work on it."""

    paths: RehearsalPaths
    engines: Engines
    supervisor: RunningSupervisor
    kubeconfig: dict[str, Any]


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    engines = build_engines(EngineCache(engines_dir()), names=("etcd", "kubernetes", "pulumi", "pulumi-kubernetes"))
    root = Path(tempfile.mkdtemp(prefix="standins-"))
    paths = RehearsalPaths(root)
    try:
        with start_supervisor(paths, services="none") as supervisor:
            install_standins(paths.bin, forked_python(), present=kubernetes_provider(engines))
            description = supervisor.client.put_cluster(CLUSTER, project="p", location="europe-west4", autopilot=True)
            yield Trial(paths, engines, supervisor, _kubeconfig(description))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def kubernetes_provider(engines: Engines) -> dict[str, Path]:
    return {KUBERNETES.executable: engines.binary(KUBERNETES.executable)}


def _kubeconfig(description: Mapping[str, Any]) -> dict[str, Any]:
    cluster = {
        "server": f"https://{description['endpoint']}",
        "certificate-authority-data": description["caCertificate"],
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CLUSTER,
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": CLUSTER, "user": {"exec": plugin}}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": CLUSTER}}],
    }


@dataclass
class Stack:
    """One Pulumi project with one stack, whose program a test writes."""

    folder: Path
    environment: dict[str, str]

    def write(self, program: str) -> None:
        # Python takes old byte code for that of a program as long that was written in the same second.
        shutil.rmtree(self.folder / "__pycache__", ignore_errors=True)
        Path(self.folder, "__main__.py").write_text(PRELUDE + program, encoding="utf-8")

    def pulumi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *arguments, "--non-interactive"]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )

    def run(self, *arguments: str) -> dict[str, int]:
        """The summary of a command that must succeed: resources by what happened to them."""
        result = self.pulumi(*arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return _summary(result.stdout)

    def up(self, program: str) -> dict[str, int]:
        self.write(program)
        return self.run("up", "--yes", "--skip-preview")

    def refused(self, program: str, *arguments: str) -> str:
        """What `pulumi up` says when it fails, as it must."""
        self.write(program)
        result = self.pulumi(*(arguments or ("up", "--yes", "--skip-preview")))
        assert result.returncode != 0, result.stdout
        return result.stdout + result.stderr

    @property
    def state_text(self) -> str:
        return Path(self.environment["TRIAL_STATE"], ".pulumi/stacks/trial/dev.json").read_text(encoding="utf-8")

    def outputs(self, resource_name: str) -> dict[str, Any]:
        """A resource's outputs, with secrets in clear."""
        result = self.pulumi("stack", "export", "--show-secrets")
        resources = json.loads(result.stdout)["deployment"]["resources"]
        return next(dict(item["outputs"]) for item in resources if item["urn"].endswith(f"::{resource_name}"))


def _summary(text: str) -> dict[str, int]:
    block = text.rpartition("Resources:")[2]
    result = re.findall(r"^\s*(?:[-+~]+\s*)?(\d+) (\w+)", block.partition("Duration")[0], re.MULTILINE)
    return {word: int(number) for number, word in result}


@pytest.fixture(scope="module")
def untouched(trial: Trial, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """A project with a stack in which nothing has been done: `pulumi stack init` takes half a second of CPU."""
    return _stack(trial, tmp_path_factory.mktemp("untouched"), new=True)


@pytest.fixture
def stack(trial: Trial, untouched: Stack, tmp_path: Path) -> Stack:
    shutil.copytree(untouched.folder.parent, tmp_path, dirs_exist_ok=True, symlinks=True)
    return _stack(trial, tmp_path, new=False)


def _stack(trial: Trial, root: Path, *, new: bool) -> Stack:
    state, home, temporary, folder = root / "state", root / "home", root / "tmp", root / "project"
    for item in (state, temporary, folder):
        item.mkdir(exist_ok=not new)
    path = os.pathsep.join([str(trial.paths.bin), str(trial.engines.binary("pulumi").parent), os.environ["PATH"]])
    environment = {
        "PATH": path,
        "HOME": str(root),
        "TMPDIR": str(temporary),
        "PULUMI_HOME": str(make_pulumi_home(home)),
        "PULUMI_CONFIG_PASSPHRASE": "trial",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_STACK": "dev",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "KUEUE_FLEET_SUPERVISOR": str(trial.paths.socket),
        "KUEUE_FLEET_REHEARSAL": str(trial.paths.root),
        "TRIAL_KUBECONFIG": json.dumps(trial.kubeconfig),
        "TRIAL_STATE": str(state),
    }
    backend = f'backend: {{url: "file://{state}"}}\n'
    Path(folder, "Pulumi.yaml").write_text(f"name: trial\nruntime: python\n{backend}", encoding="utf-8")
    result = Stack(folder, environment)
    result.write("")
    if new:
        initialised = result.pulumi("stack", "init", "dev")
        assert initialised.returncode == 0, initialised.stderr
    return result


FLEET_OF_ONE = """
import pulumi_gcp as gcp
network = gcp.compute.Network("network", name="net", project="trial-project", auto_create_subnetworks=False)
account = gcp.serviceaccount.Account("nodes", account_id="gke-nodes", project="trial-project")
role = gcp.projects.IAMMember("role", project="trial-project", role="roles/x", member=account.member)
gke = gcp.container.Cluster("gke", name="west", project="trial-project", location="us-west1", enable_autopilot=True,
    network=network.self_link, ip_allocation_policy={}, resource_labels={"step": "STEP"},
    deletion_protection=PROTECTED, opts=Options(depends_on=[role]))
def kubeconfig(endpoint, ca):
    config = json.loads(KUBECONFIG)
    config["clusters"][0]["cluster"] = {"server": "https://" + endpoint, "certificate-authority-data": ca}
    return json.dumps(config)
text = pulumi.Output.all(gke.endpoint, gke.master_auth.cluster_ca_certificate).apply(lambda a: kubeconfig(*a))
inside = k8s.Provider("west", kubeconfig=text, cluster_identifier="trial-project/us-west1/west")
ns = k8s.core.v1.Namespace("ns", metadata={"name": "inside"}, opts=Options(provider=inside))
pulumi.export("email", account.email)
"""


def test_a_gke_cluster_is_a_control_plane_of_the_rehearsal(trial: Trial, stack: Stack) -> None:
    def program(step: str, protected: bool) -> str:
        return FLEET_OF_ONE.replace("STEP", step).replace("PROTECTED", str(protected))

    stack.write(program("one", True))
    assert stack.run("preview") == {"to": 7}
    assert stack.up(program("one", True)) == {"created": 7}
    assert stack.up(program("one", True)) == {"unchanged": 7}
    assert stack.outputs("ns")["metadata"]["name"] == "inside"
    assert stack.outputs("nodes")["email"] == "gke-nodes@trial-project.iam.gserviceaccount.com"
    west = trial.supervisor.client.get_cluster("west")
    assert (west["project"], west["location"], west["autopilot"]) == ("trial-project", "us-west1", True)
    assert stack.up(program("two", True)) == {"updated": 1, "unchanged": 6}

    text = stack.pulumi("destroy", "--yes", "--skip-preview").stdout
    assert "Cannot destroy cluster because deletion_protection is set to true" in text
    assert stack.up(program("two", False))["updated"] == 1
    stack.run("destroy", "--yes", "--skip-preview")
    assert "west" not in [cluster["name"] for cluster in trial.supervisor.client.clusters()]


def test_google_cloud_properties_that_the_sdk_does_not_have_are_refused(stack: Stack) -> None:
    program = """
pulumi.CustomResource("gcp:container/cluster:Cluster", "x", {"name": "x", "project": "p", "location": "us-west1",
    "releaseChannel": {"chanel": "REGULAR"}}, Options(version="10.2.0"))
"""
    text = stack.refused(program, "preview")
    assert "releaseChannel.chanel: pulumi-gcp has no such property; did you mean channel?" in text


def test_a_program_that_fails_says_so_once(stack: Stack) -> None:
    text = stack.refused("def inner():\n    raise ValueError('no such fleet')\ninner()\n")
    assert text.count("ValueError: no such fleet") == 1
    assert "Program failed with an unhandled exception" in text
    assert "program_runner.py" not in text
    text = stack.refused("raise pulumi.RunError('clusters: none; add one')\n")
    assert "clusters: none; add one" in text
    assert "Traceback" not in text


def test_a_program_gets_its_config_with_secrets_marked(stack: Stack) -> None:
    stack.run("config", "set", "plain", "7")
    stack.run("config", "set", "--secret", "hidden", "behind-the-curtain")
    stack.up("""
config = pulumi.Config()
pulumi.export("where", [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization()])
pulumi.export("plain", config.require_int("plain"))
pulumi.export("hidden", config.require_secret("hidden"))
""")
    outputs = json.loads(stack.pulumi("stack", "output", "--json").stdout)
    assert outputs == {"where": ["trial", "dev", "organization"], "plain": 7, "hidden": "[secret]"}
    assert "behind-the-curtain" not in stack.state_text


def test_a_policy_pack_is_run(stack: Stack, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    Path(pack, "PulumiPolicy.yaml").write_text("runtime: python\n", encoding="utf-8")
    Path(pack, "__main__.py").write_text(
        "from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy\n"
        "def rule(args, report):\n"
        "    if args.resource_type == 'kubernetes:core/v1:Namespace':\n"
        "        report('no namespaces here')\n"
        "PolicyPack('pack', enforcement_level=EnforcementLevel.MANDATORY, policies=[\n"
        "    ResourceValidationPolicy(name='none', description='none', validate=rule)])\n",
        encoding="utf-8",
    )
    program = 'p = cluster()\nk8s.core.v1.Namespace("ns", metadata={"name": "judged"}, opts=Options(provider=p))\n'
    assert "no namespaces here" in stack.refused(program, "preview", "--policy-pack", str(pack))


def test_nothing_is_left_of_a_killed_pulumi(trial: Trial, stack: Stack, tmp_path: Path) -> None:
    install_standins(tmp_path / "bin", Path(sys.executable), present=kubernetes_provider(trial.engines))
    stack.environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{stack.environment['PATH']}"
    stack.write("""
k8s.core.v1.ConfigMap("stuck", metadata={"annotations": {"pulumi.com/waitFor": "condition=Never"}},
    opts=Options(provider=cluster()))
""")
    process = subprocess.Popen(
        ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"],
        cwd=stack.folder,
        env=stack.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def children() -> list[psutil.Process] | None:
        """Those of Pulumi, once the program and the provider are among them."""
        result = psutil.Process(process.pid).children(recursive=True)
        commands = " ".join(" ".join(child.cmdline()) for child in result)
        return result if all(part in commands for part in ("program_runner.py", KUBERNETES.executable)) else None

    started = wait_until(children)
    process.kill()
    process.wait()
    assert still_running(started, PATIENCE_SECONDS) == []
    stack.pulumi("cancel", "--yes")


def test_plugins_say_that_they_are_stand_ins(trial: Trial, stack: Stack) -> None:
    for part in PARTS:
        if part is KUBERNETES:
            continue
        assert "stand-in" in Path(trial.paths.bin, part.executable).read_text(encoding="utf-8")
    about = stack.pulumi("about").stdout
    assert "+standin" in about
