"""Building, with a stand-in for Go that compiles nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.rehearsal.fake_go import FakeGo

import kueue_fleet
from kueue_rehearsal.engines import (
    ENGINES,
    OPERATOR_ENGINES,
    BuildProgress,
    EngineCache,
    build_engines,
    find_engines,
)
from kueue_rehearsal.engines import build as build_module
from kueue_rehearsal.engines.__main__ import main
from kueue_rehearsal.engines.build import copy_plainly, explain_failure
from kueue_rehearsal.engines.discovery import program_place
from kueue_rehearsal.paths import RehearsalError

DEADLINE_SECONDS = 60.0


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path / "fake-go")


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def _plenty_of_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    set_free(monkeypatch, lambda path: 100.0)


def set_free(monkeypatch: pytest.MonkeyPatch, free_gib: Callable[[Path], float]) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, int(free_gib(Path(path)) * 1024**3)))


def test_everything_is_built_once(go: FakeGo, cache: EngineCache) -> None:
    engines = build_engines(cache, environ=go.environ)
    for_some = {engine.name for engine in ENGINES if engine.for_some_fleets}
    assert {engine.name for engine in engines.missing()} == for_some
    assert engines.binary("etcd").read_text() == "built go.etcd.io/etcd/server/v3"
    assert (engines.asset("kueue-chart") / "values.yaml").read_text() == "a: 1"
    assert engines.asset("provisioning-request-crd").is_file()
    programs = {package for engine in ENGINES if not engine.for_some_fleets for _, package in engine.binaries}
    assert {argument for build in go.builds() for argument in build["arguments"]} >= programs
    heard: list[BuildProgress] = []
    build_engines(cache, heard.append, environ=go.environ)
    assert heard == []


def test_engines_of_one_go_mod_are_one_build(go: FakeGo, cache: EngineCache) -> None:
    build_engines(cache, environ=go.environ)
    folders = {engine.folder for engine in ENGINES if not engine.for_some_fleets}
    assert len(go.builds()) == len(folders)
    build_engines(cache, names=OPERATOR_ENGINES.values(), environ=go.environ)
    assert len(go.builds()) == len(folders) + 1


def test_operators_are_built_when_they_are_asked_for(go: FakeGo, cache: EngineCache) -> None:
    with pytest.raises(RehearsalError, match=r"lws: not found .* run `python -m kueue_rehearsal.engines lws`"):
        build_engines(cache, names=["etcd"], environ=go.environ).binary("lws")
    engines = build_engines(cache, names=OPERATOR_ENGINES.values(), environ=go.environ)
    for name in OPERATOR_ENGINES.values():
        assert engines.binary(name).read_text().startswith("built ")
        assert (engines.asset(f"{name}-chart") / "Chart.yaml").is_file()
    # The charts that Trainer's names are not in its module, and helm would refuse it.
    assert yaml.safe_load((engines.asset("trainer-chart") / "Chart.yaml").read_text()) == {"name": "trainer"}


def test_an_operator_that_is_built_later_has_its_place_already(go: FakeGo, cache: EngineCache) -> None:
    before = find_engines(cache, {"PATH": "/nowhere"})
    place = program_place(before, cache, "lws")
    built = build_engines(cache, names=["lws"], environ=go.environ)
    assert built.binary("lws") == place == program_place(built, cache, "lws")
    with pytest.raises(RehearsalError, match="jobset: not found"):
        program_place(before, cache, "jobset")


def test_flags_and_environment_are_ours(go: FakeGo, cache: EngineCache) -> None:
    build_engines(cache, names=["kwok"], environ=go.environ)
    (build,) = go.builds()
    arguments, environment = build["arguments"], build["environment"]
    assert arguments[:4] == ["build", "-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=false"]
    assert arguments[4] == "-ldflags=sigs.k8s.io/kwok/cmd/kwok=-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0"
    assert arguments[-1] == "sigs.k8s.io/kwok/cmd/kwok"
    assert environment["GOFLAGS"] == ""
    assert environment["CGO_ENABLED"] == "0"
    assert [name for name in build["files"] if "/" not in name] == ["go.mod", "go.sum"]


def test_what_a_program_embeds_lies_beside_its_source(go: FakeGo, cache: EngineCache) -> None:
    build_engines(cache, names=["pulumi-kubernetes"], environ=go.environ)
    [build] = go.builds()
    assert {f"pulumi-resource-kubernetes/{name}" for name in ("main.go", "schema.json")} <= {*build["files"]}
    assert not [name for name in build["files"] if name.startswith("pulumi-language-nodejs")]


def test_modules_are_built_without_what_no_rehearsal_runs(go: FakeGo, cache: EngineCache) -> None:
    build_engines(cache, names=["pulumi"], environ=go.environ)
    [build] = go.builds()
    assert "patched/github.com_pulumi_pulumi_pkg_v3/backend/diy/backend.go" in build["files"]


def test_programs_that_are_there_are_not_built(go: FakeGo, cache: EngineCache) -> None:
    etcd = go.folder / "etcd"
    etcd.write_text("#!/bin/sh\necho etcd Version: 3.6.1\n")
    etcd.chmod(0o755)
    engines = build_engines(cache, names=["etcd"], environ=go.environ)
    assert engines.binary("etcd") == etcd
    assert go.builds() == []


def test_assets_alone_are_fetched_without_compiling(go: FakeGo, cache: EngineCache) -> None:
    jobset = go.folder / "jobset"
    jobset.write_bytes(b"\nmod\tsigs.k8s.io/jobset\tv0.11.0\th1:x\n")
    jobset.chmod(0o755)
    engines = build_engines(cache, names=["jobset"], environ=go.environ)
    assert engines.binary("jobset") == jobset
    assert engines.asset("jobset-chart").is_dir()
    assert go.builds() == []


def test_a_damaged_program_is_built_again(go: FakeGo, cache: EngineCache) -> None:
    path = build_engines(cache, names=["etcd"], environ=go.environ).binary("etcd")
    path.write_text("cut")
    build_engines(cache, names=["etcd"], environ=go.environ)
    assert path.read_text() == "built go.etcd.io/etcd/server/v3"


def test_progress_goes_from_nothing_to_everything(go: FakeGo, cache: EngineCache) -> None:
    heard: list[BuildProgress] = []
    build_engines(cache, heard.append, names=["etcd", "kueue"], environ=go.environ)
    fractions = [progress.fraction for progress in heard]
    assert fractions == sorted(fractions)
    assert fractions[0] < 0.001
    assert fractions[-1] == 1.0
    assert [progress.phase for progress in heard if progress.engines == "etcd, kueue"][-1] == "done"
    assert "copying" in {progress.phase for progress in heard if progress.engines == "etcd, kueue"}


def test_downloads_are_told_from_compiling(go: FakeGo, cache: EngineCache) -> None:
    go.fails("slow 0.8")
    heard: list[BuildProgress] = []
    build_engines(cache, heard.append, names=["kwok"], environ=go.environ)
    assert "downloading" in {progress.phase for progress in heard}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("write /tmp/x: no space left on device", "etcd: the disk became full while building .*; free some space"),
        (
            "go: example.com/a@v1: reading https://proxy.golang.org/x: 403 Forbidden",
            "etcd: a Go module could not be downloaded .*check the network and GOPROXY, then run it again",
        ),
        ("verifying example.com/a@v1: checksum mismatch", "etcd: a Go module could not be downloaded"),
        ("./main.go:3: undefined: x", r"etcd: go failed \(\./main\.go:3: undefined: x\); see .*shared\.log"),
    ],
)
def test_a_failed_build_is_one_sentence_and_leaves_nothing(
    go: FakeGo, cache: EngineCache, said: str, sentence: str
) -> None:
    go.fails(f"# package\n{said}")
    with pytest.raises(RehearsalError, match=sentence) as caught:
        build_engines(cache, names=["etcd"], environ=go.environ)
    assert "\n" not in str(caught.value)
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == []
    go.fails("")
    assert build_engines(cache, names=["etcd"], environ=go.environ).binary("etcd").exists()


def test_a_go_that_says_nothing() -> None:
    assert "it said nothing" in explain_failure("etcd", "go: downloading x v1\n", Path("/log"))


def test_too_little_disk_is_noticed_before_anything_is_built(
    go: FakeGo, cache: EngineCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free(monkeypatch, lambda path: 2.0)
    with pytest.raises(RehearsalError, match=r"needs about \d\.\d GiB of disk, 2\.0 GiB are free; free some, or set"):
        build_engines(cache, environ=go.environ)
    assert go.builds() == []
    assert not cache.root.exists()


def test_each_file_system_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_free(monkeypatch, lambda path: 5.0 if path == tmp_path else 0.1)
    build_module._check_disk({tmp_path / "new" / "folder": 4.0})
    with pytest.raises(RehearsalError, match="/proc/self"):
        build_module._check_disk({tmp_path: 4.0, Path("/proc/self"): 0.5})
    with pytest.raises(RehearsalError, match=r"8\.0 GiB"):
        build_module._check_disk({tmp_path: 4.0, tmp_path / "other": 4.0})


def test_an_unknown_engine_is_refused_with_the_known_ones(cache: EngineCache) -> None:
    with pytest.raises(RehearsalError, match="kubernete: no such engine; the engines are etcd, kubernetes, kueue"):
        build_engines(cache, names=["kubernete"])


def test_an_interrupted_builder_stops_go_and_leaves_nothing_half_built(
    go: FakeGo, cache: EngineCache, tmp_path: Path
) -> None:
    go.fails("slow 600")
    environ = {
        **go.environ,
        "PYTHONPATH": str(Path(kueue_fleet.__path__[0]).parent),
        "KUEUE_FLEET_CACHE_DIR": str(tmp_path),
    }
    argv = [sys.executable, "-m", "kueue_rehearsal.engines", "etcd"]
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as builder:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not go.builds():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        target = str(go.builds()[0]["arguments"])
        os.kill(builder.pid, signal.SIGINT)
        output, _ = builder.communicate(timeout=DEADLINE_SECONDS)
    assert builder.returncode == 130
    assert "interrupted; the next build continues from here" in output
    assert "Traceback" not in output
    assert "etcd" in target
    assert [path.name for path in (tmp_path / "engines").iterdir() if path.is_dir()] == []


def test_read_only_modules_are_copied_writable(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_text("x")
    (source / "sub" / "file").chmod(0o444)
    (source / "sub").chmod(0o555)
    copy_plainly(source, tmp_path / "copy")
    (source / "sub").chmod(0o755)
    copied = tmp_path / "copy" / "sub"
    assert (copied / "file").read_text() == "x"
    assert copied.stat().st_mode & 0o200
    assert (copied / "file").stat().st_mode & 0o200


def test_the_command_lists_without_building(
    go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUEUE_FLEET_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(go.folder))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert main(["--list"]) == 1
    assert "kube-apiserver             not built" in capsys.readouterr().out
    assert main(["etcd"]) == 0
    assert main(["--list", "etcd"]) == 0
    assert "v3.6.8" in capsys.readouterr().out
    go.fails("boom")
    assert main(["kwok"]) == 1
    assert "kwok: go failed (boom)" in capsys.readouterr().err
