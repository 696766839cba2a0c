"""Programs that are there already are used, when they are the right ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_rehearsal.engines import ENGINES, EngineCache, find_engines
from kueue_rehearsal.engines.discovery import accepts, recorded_version
from kueue_rehearsal.paths import RehearsalError

BY_NAME = {engine.name: engine for engine in ENGINES}


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "cache")


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def go_program(folder: Path, name: str, module: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(b"\x7fELF\0" * 100 + f"path\t{module}/cmd\nmod\t{module}\t{version}\th1:x\n".encode())
    path.chmod(0o755)
    return path


def test_nothing_anywhere(cache: EngineCache) -> None:
    engines = find_engines(cache, {"PATH": "/nowhere"})
    assert engines.programs == {}
    assert engines.missing() == ENGINES
    with pytest.raises(RehearsalError, match=r"etcd: not found .* run `python -m kueue_rehearsal\.engines`"):
        engines.binary("etcd")
    with pytest.raises(RehearsalError, match="kueue-chart: not fetched yet"):
        engines.asset("kueue-chart")


def test_kubebuilder_assets_come_before_path(cache: EngineCache, tmp_path: Path) -> None:
    mine = program(tmp_path / "assets", "etcd", "etcd Version: 3.6.12")
    program(tmp_path / "path", "etcd", "etcd Version: 3.6.8")
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "PATH": str(tmp_path / "path")}
    result = find_engines(cache, environ).programs["etcd"]
    assert (result.path, result.version, result.origin) == (mine, "v3.6.12", "KUBEBUILDER_ASSETS")


def test_path_is_searched_in_order_until_a_version_fits(cache: EngineCache, tmp_path: Path) -> None:
    program(tmp_path / "old", "kube-apiserver", "Kubernetes v1.31.0")
    fits = program(tmp_path / "new", "kube-apiserver", "Kubernetes v1.36.9")
    engines = find_engines(cache, {"PATH": f"{tmp_path / 'old'}:{tmp_path / 'new'}"})
    assert engines.binary("kube-apiserver") == fits
    assert [str(refused.reason) for refused in engines.refused] == ["it is v1.31.0; 1.36.x is needed"]


def test_the_name_must_be_right(cache: EngineCache, tmp_path: Path) -> None:
    program(tmp_path / "path", "server", "etcd Version: 3.6.8")
    assert "etcd" not in find_engines(cache, {"PATH": str(tmp_path / "path")}).programs


def test_a_file_that_cannot_be_run_is_passed_over(cache: EngineCache, tmp_path: Path) -> None:
    program(tmp_path / "path", "etcd", "etcd Version: 3.6.8").chmod(0o644)
    assert "etcd" not in find_engines(cache, {"PATH": str(tmp_path / "path")}).programs


def test_a_program_that_fails_is_not_used(cache: EngineCache, tmp_path: Path) -> None:
    path = program(tmp_path / "path", "etcd", "etcd Version: 3.6.8")
    path.write_text("#!/bin/sh\necho 3.6.8; exit 1\n")
    engines = find_engines(cache, {"PATH": str(tmp_path / "path")})
    assert "etcd" not in engines.programs
    assert [refused.reason for refused in engines.refused] == ["its version cannot be determined; 3.6.x is needed"]


def test_kueue_is_known_by_what_go_recorded_in_it(cache: EngineCache, tmp_path: Path) -> None:
    path = go_program(tmp_path / "path", "kueue", "sigs.k8s.io/kueue", "v0.19.2")
    engines = find_engines(cache, {"PATH": str(tmp_path / "path")})
    assert engines.binary("kueue") == path
    assert BY_NAME["kueue"] in engines.missing(), "its chart and CRDs are still to be fetched"


@pytest.mark.parametrize(("version", "shown"), [("v4.31.0", "v4.31.0"), ("(devel)", "unknown")])
def test_a_users_own_provider_is_used_whatever_its_version_is(
    cache: EngineCache, tmp_path: Path, version: str, shown: str
) -> None:
    module = BY_NAME["pulumi-kubernetes"].module
    path = go_program(tmp_path / "path", "pulumi-resource-kubernetes", module, version)
    engines = find_engines(cache, {"PATH": str(tmp_path / "path")})
    result = engines.programs["pulumi-resource-kubernetes"]
    assert (result.path, result.version, result.origin) == (path, shown, "PATH")
    assert engines.refused == ()


@pytest.mark.parametrize("version", ["v0.19.1", "v0.19.20", "(devel)"])
def test_another_kueue_is_not_used(cache: EngineCache, tmp_path: Path, version: str) -> None:
    go_program(tmp_path / "path", "kueue", "sigs.k8s.io/kueue", version)
    engines = find_engines(cache, {"PATH": str(tmp_path / "path")})
    assert "kueue" not in engines.programs
    assert len(engines.refused) == 1


def test_an_empty_file_has_no_version(tmp_path: Path) -> None:
    path = tmp_path / "kueue"
    path.touch()
    assert recorded_version(path, "sigs.k8s.io/kueue") is None


@pytest.mark.parametrize(
    ("engine", "version", "fits"),
    [
        ("kubernetes", "v1.36.3", True),
        ("kubernetes", "v1.360.0", False),
        ("kubernetes", "v1.35.9", False),
        ("helm", "v3.8.0", True),
        ("helm", "v4.0.0", False),
        ("kwok", "v0.8.0", True),
        ("kwok", "v0.8.1", False),
    ],
)
def test_versions_that_fit(engine: str, version: str, fits: bool) -> None:
    assert accepts(BY_NAME[engine], version) is fits


def test_the_cache_is_used_when_nothing_else_is_there(cache: EngineCache) -> None:
    engine = BY_NAME["etcd"]
    folder = cache.store("etcd", engine.source_hash(), lambda target: program(target, "etcd", "x").touch())
    result = find_engines(cache, {"PATH": ""}).programs["etcd"]
    assert (result.path, result.version, result.origin) == (folder / "etcd", "v3.6.8", "cache")
