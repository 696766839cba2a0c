"""A program with three stacks, by the real Pulumi: each is judged as in CI, and a team's stack refers to one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueue_fleet_policies.__main__ import PACK
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from tests.engines.plugin_lab import ROOT, PluginLab, plugin_lab

STACKS = ("dev", "staging", "prod")
CHECK_FLEET = ROOT / "actions" / "check-fleet" / "check-fleet"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[PluginLab]:
    engines = build_engines(EngineCache(engines_dir()), names=["pulumi"])
    with plugin_lab(tmp_path, [engines.binary("pulumi")]) as result:
        yield result


def up(lab: PluginLab, stack: str, folder: Path) -> None:
    lab.run("pulumi", "stack", "init", stack, folder=folder)
    lab.run("pulumi", "up", "--stack", stack, "--yes", "--skip-preview", "--non-interactive", folder=folder)


def test_the_action_takes_each_stack_and_previews_it_with_the_policies(lab: PluginLab) -> None:
    folder = lab.example("three-stacks")
    lab.run("git", "init", "--quiet", "--initial-branch=main", folder=lab.folder)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    lab.run("git", *who, "commit", "--quiet", "--allow-empty", "--message=empty", folder=lab.folder)
    path = f"PATH={lab.environment['PATH']}:{Path(sys.executable).parent}"
    for stack in STACKS:
        lab.run("pulumi", "stack", "init", stack, folder=folder)
        judge = ("--base", "main", "--stack", stack, "--policy-pack", str(PACK))
        output = lab.run("env", path, str(CHECK_FLEET), *judge, f"Pulumi.{stack}.yaml", folder=folder)
        assert f"fleet company-{stack} is valid" in output
        assert "`main` does not have it" in output
        assert "policies: passed" in output
    assert lab.world.objects == {}


def test_a_team_adds_an_entrance_to_the_platform_of_another_stack(lab: PluginLab) -> None:
    folder = lab.example("three-stacks")
    up(lab, "dev", folder)
    namespaces = [result for (_, kind, *_), result in lab.world.objects.items() if kind == "Namespace"]
    assert {created_objects["metadata"]["annotations"]["company.example/owner"] for created_objects in namespaces} == {
        "gpu-platform"
    }
    up(lab, "dev", folder / "team")
    [queue] = [made for (*_, name), made in lab.world.objects.items() if name == "nightly"]
    assert queue["metadata"]["namespace"] == "speech"
    assert queue["spec"]["clusterQueue"] == "shared"
