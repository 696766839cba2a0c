"""What the committed go.mod files say, and what decides a cache key."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kueue_fleet.fleet_file.model.operators import KubeRay, LeaderWorkerSet, Trainer
from kueue_rehearsal.engines import catalogue
from kueue_rehearsal.engines.catalogue import ENGINES, OPERATOR_ENGINES, REHEARSAL_ENGINES, Engine, module_version

BY_NAME = {engine.name: engine for engine in ENGINES}


def test_versions_come_from_go_mod() -> None:
    versions = {engine.name: engine.version for engine in ENGINES}
    assert versions == {
        "etcd": "v3.6.8",
        "kubernetes": "v1.36.3",
        "kueue": "v0.19.2",
        "jobset": "v0.11.0",
        "kuberay": "v1.6.2",
        "lws": "v0.9.0",
        "trainer": "v2.2.1",
        "kwok": "v0.8.0",
        "helm": "v3.20.2",
        "pulumi": "v3.246.0",
        "pulumi-kubernetes": "v4.25.0",
        "pulumi-yaml": "v1.30.0",
        "pulumi-nodejs": "v3.246.0",
        "prometheus": "v0.315.0",
        "kueue-0.17": "v0.17.1",
        "kueue-0.18": "v0.18.3",
    }


def test_a_rehearsal_needs_neither_helm_nor_a_language_host_but_its_own() -> None:
    assert {engine.name for engine in ENGINES} - {engine.name for engine in ENGINES if engine.for_some_fleets} - set(
        REHEARSAL_ENGINES
    ) == {
        "helm",
        "pulumi-yaml",
        "pulumi-nodejs",
        "prometheus",
    }


@pytest.mark.parametrize("folder", sorted({engine.folder for engine in ENGINES}), ids=lambda folder: folder.name)
def test_the_tools_of_a_go_mod_are_the_programs_of_its_engines(folder: Path) -> None:
    go_mod = (folder / "go.mod").read_text()
    tools = re.findall(r"^(?:tool |\t)([^\s(]\S*)$", go_mod, re.MULTILINE)
    programs = {package for engine in ENGINES if engine.folder == folder for _, package in engine.binaries}
    assert set(tools) == programs
    assert (folder / "go.sum").stat().st_size > 0


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_modules_of_assets_are_in_go_mod(engine: Engine) -> None:
    go_mod = (engine.folder / "go.mod").read_text()
    assert all(module_version(go_mod, asset.module).startswith("v") for asset in engine.assets)


def test_the_linker_is_told_the_version() -> None:
    assert "-X sigs.k8s.io/kueue/pkg/version.GitVersion=v0.19.2" in BY_NAME["kueue"].linker_flags
    assert BY_NAME["jobset"].linker_flags == "-s -w"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("require example.com/a v1.2.3", "v1.2.3"),
        ("\texample.com/a v1.2.3 // indirect", "v1.2.3"),
        ("require example.com/a v1.2.3\nreplace example.com/a => example.com/b v0.0.1", "v0.0.1"),
        ("example.com/a v1.2.3\nexample.com/a/v2 v2.0.0", "v1.2.3"),
    ],
)
def test_module_version(line: str, version: str) -> None:
    assert module_version(line, "example.com/a") == version


def test_a_module_that_is_not_required() -> None:
    with pytest.raises(LookupError, match=r"example\.com/a"):
        module_version("require example.com/b v1.0.0", "example.com/a")


def test_the_key_changes_with_sources_and_flags_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = BY_NAME["jobset"].source_hash()
    shutil.copytree(BY_NAME["jobset"].folder, tmp_path / "shared")
    monkeypatch.setattr(catalogue, "SOURCES", tmp_path)
    engine = replace(BY_NAME["jobset"])
    assert engine.folder == tmp_path / "shared"
    assert engine.source_hash() == key
    assert replace(engine, build_seconds=1).source_hash() == key
    assert replace(engine, extra_flags=("-X a=b",)).source_hash() != key
    with (engine.folder / "go.sum").open("a") as file:
        file.write("\n")
    assert engine.source_hash() != key


def test_operators_are_those_of_the_fleet_file_and_of_kueue() -> None:
    kueue = (BY_NAME["kueue"].folder / "go.mod").read_text()
    operators = {"kubeRay": KubeRay(), "leaderWorkerSet": LeaderWorkerSet(), "trainer": Trainer()}
    engines = {field: BY_NAME[name] for field, name in OPERATOR_ENGINES.items()}
    declared = {field: f"v{operator.version}" for field, operator in operators.items()}
    assert {field: engine.version for field, engine in engines.items()} == declared
    assert {field: module_version(kueue, engine.module) for field, engine in engines.items()} == declared
    # Each chart is of the same version, also where it is in a module of its own.
    charts = {
        field: module_version((engine.folder / "go.mod").read_text(), engine.assets[0].module)
        for field, engine in engines.items()
    }
    assert charts == declared
