"""Wheels of engines: what was built is found again where a wheel of it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib import invalidate_caches
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.rehearsal.engines.test_discovery import BY_NAME, program
from tests.rehearsal.fake_go import FakeGo

from kueue_rehearsal.engines import REHEARSAL_ENGINES, EngineCache, build_engines, find_engines
from kueue_rehearsal.engines import wheels as wheels_module
from kueue_rehearsal.engines.wheels import make_wheels, requirements, wheel_version
from kueue_rehearsal.paths import RehearsalError

NAMES = ("etcd", "kueue")


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path / "fake-go")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheels of two engines, of which one has assets, and beside them what installing them leaves."""
    folder = tmp_path_factory.mktemp("installed")
    go, cache = FakeGo(folder / "fake-go"), EngineCache(folder / "builder")
    build_engines(cache, names=NAMES, environ=go.environ)
    install(make_wheels(cache, NAMES, folder / "wheels", go.environ), folder / "site")
    return folder


@pytest.fixture
def wheels(installed: Path) -> list[Path]:
    return sorted((installed / "wheels").iterdir())


@pytest.fixture
def site(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the wheels, on this process's path."""
    copied = shutil.copytree(installed / "site", tmp_path / "site")
    monkeypatch.syspath_prepend(str(copied))
    invalidate_caches()
    return copied


def install(wheels: list[Path], site: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    options: list[str | Path] = ["--offline", "--no-deps", "--python", sys.executable, "--target", site]
    environ = {**os.environ, "UV_CACHE_DIR": str(site.with_name("uv"))}
    subprocess.run([uv, "pip", "install", "--quiet", *options, *wheels], env=environ, check=True)


@pytest.mark.usefixtures("site")
def test_an_installed_wheel_is_used_without_go_and_without_a_cache(tmp_path: Path) -> None:
    empty = EngineCache(tmp_path / "empty")
    engines = find_engines(empty, {"PATH": "/nowhere"})
    etcd = engines.programs["etcd"]
    assert (etcd.version, etcd.origin, etcd.path.read_text()) == ("v3.6.8", "wheel", "built go.etcd.io/etcd/server/v3")
    assert os.access(etcd.path, os.X_OK)
    assert (engines.asset("kueue-chart") / "values.yaml").read_text() == "a: 1"
    assert not {"etcd", "kueue"} & {engine.name for engine in engines.missing()}
    built = build_engines(empty, names=NAMES, environ={"PATH": "/nowhere"})
    assert built.programs["kueue"].origin == "wheel"
    assert not empty.root.exists()


@pytest.mark.usefixtures("site")
def test_a_users_own_program_comes_before_a_wheel(tmp_path: Path) -> None:
    mine = program(tmp_path / "path", "etcd", "etcd Version: 3.6.12")
    assert find_engines(EngineCache(tmp_path / "empty"), {"PATH": str(mine.parent)}).binary("etcd") == mine


@pytest.mark.parametrize("damage", ["other", "cut"])
def test_a_wheel_of_another_release_or_a_damaged_one_is_not_used(site: Path, tmp_path: Path, damage: str) -> None:
    (entry,) = (site / "kueue_fleet_engine_etcd").glob("etcd-*")
    if damage == "other":
        entry.rename(entry.with_name("etcd-0123456789abcdef"))
    else:
        (entry / "etcd").write_text("built")
    engines = find_engines(EngineCache(tmp_path / "empty"), {"PATH": "/nowhere"})
    assert "etcd" not in engines.programs
    (refused,) = engines.refused
    assert refused.path == site / "kueue_fleet_engine_etcd"
    assert "made for another release of kueue-fleet; install the extra `rehearsal` again" in refused.reason


def test_a_wheel_names_its_platform_its_sources_and_their_licences(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[1]) as wheel:
        names = {name.rpartition("/")[2]: name for name in wheel.namelist()}
        sources = wheel.read("kueue_fleet_engine_kueue/SOURCES.md").decode()
        licences = wheel.read(names["LICENSES.txt"]).decode()
        metadata = Parser().parsestr(wheel.read(names["METADATA"]).decode())
    assert wheels[1].name.endswith(f"manylinux2014_{os.uname().machine}.musllinux_1_1_{os.uname().machine}.whl")
    assert metadata["Version"] == wheel_version(BY_NAME["kueue"])
    assert "- example.com/part v2.0.0 h1:y" in sources
    for module in ("example.com/part", "example.com/program", "k8s.io/autoscaler/cluster-autoscaler/apis"):
        assert f"\n{module}\n" in licences


def test_what_was_not_built_is_not_packed(go: FakeGo, tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"etcd: not in .* only what was built there is packed"):
        make_wheels(EngineCache(tmp_path / "cache"), ["etcd"], tmp_path / "wheels", go.environ)


def test_a_wheel_that_an_index_does_not_take_is_refused(
    go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = EngineCache(tmp_path / "cache")
    build_engines(cache, names=["etcd"], environ=go.environ)
    monkeypatch.setattr(wheels_module, "LARGEST_BYTES", 100)
    with pytest.raises(RehearsalError, match=r"an index takes 100: split the engine"):
        make_wheels(cache, ["etcd"], tmp_path / "wheels", go.environ)
    assert list((tmp_path / "wheels").iterdir()) == []


def test_a_release_names_the_wheel_of_each_engine_in_the_catalogues_version() -> None:
    names = [line.partition(";")[0] for line in requirements()]
    assert len(names) == len(REHEARSAL_ENGINES)
    for name, line in zip(REHEARSAL_ENGINES, names, strict=True):
        version = BY_NAME[name].version.removeprefix("v")
        assert line.startswith(f"kueue-fleet-engine-{name}=={version}.post")


def test_files_of_a_wheel_have_no_times(site: Path) -> None:
    manifests = list(site.glob("kueue_fleet_engine_*/*/manifest.json"))
    assert len(manifests) == 3
    assert {time for file in manifests for _, time, _ in json.loads(file.read_text())["files"].values()} == {None}


def test_what_a_release_names_can_be_installed() -> None:
    assert {Requirement(item).name for item in requirements()} == {f"kueue-fleet-engine-{n}" for n in REHEARSAL_ENGINES}
