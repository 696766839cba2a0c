"""Where each program and asset is now: KUBEBUILDER_ASSETS, PATH, an installed wheel, or the cache. Builds nothing."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import ENGINES, Engine
from kueue_rehearsal.paths import RehearsalError

BUILD_COMMAND = "python -m kueue_rehearsal.engines"
"""What a user types to have the engines built."""
INSTALLED_GROUP = "kueue_fleet.engines"
"""Entry points of the engines' wheels: the engine's name, and the package that holds its entries of a cache."""
_VERSION = re.compile(rb"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.-]+)?)")
_VERSION_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was found."""

    name: str
    path: Path
    version: str
    """As its engine or the program itself says, such as `v1.36.3`."""
    origin: str
    """`KUBEBUILDER_ASSETS`, `PATH`, `wheel` or `cache`."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A program of the right name that is not used."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Engines:
    """The programs and assets that are there."""

    programs: Mapping[str, Program]
    assets: Mapping[str, Path]
    refused: tuple[Refused, ...] = ()

    def binary(self, name: str) -> Path:
        """The program's path.

        Raises RehearsalError when it is neither found nor built.
        """
        program = self.programs.get(name)
        if program is None:
            raise RehearsalError(f"{name}: not found on this machine and not built; run `{_build_command(name)}`")
        return program.path

    def asset(self, name: str) -> Path:
        """The path of a file or folder that came with an engine's module: see `catalogue`.

        Raises RehearsalError when it has not been fetched.
        """
        path = self.assets.get(name)
        if path is None:
            raise RehearsalError(f"{name}: not fetched yet; run `{_build_command(name)}`")
        return path

    def missing(self) -> tuple[Engine, ...]:
        """The engines of which a program or an asset is not there, in the order they are built."""
        return tuple(engine for engine in ENGINES if self.lacks_program(engine) or self.lacks_asset(engine))

    def lacks_program(self, engine: Engine) -> bool:
        """Whether any of its programs is neither found nor built."""
        return any(name not in self.programs for name, _ in engine.binaries)

    def lacks_asset(self, engine: Engine) -> bool:
        """Whether any of its assets is neither in a wheel nor in the cache."""
        return any(asset.name not in self.assets for asset in engine.assets)


def _build_command(name: str) -> str:
    """What has a program or an asset built; what only some fleets need is built on request."""
    asked_engines = (
        engine.name
        for engine in ENGINES
        if engine.for_some_fleets and name in (*dict(engine.binaries), *(asset.name for asset in engine.assets))
    )
    return " ".join((BUILD_COMMAND, *asked_engines))


def find_engines(cache: EngineCache, environ: Mapping[str, str] = os.environ) -> Engines:
    """Looks for programs under KUBEBUILDER_ASSETS, on PATH, in installed wheels and in the cache, in this order.

    Assets are in wheels and in the cache only.
    """
    programs: dict[str, Program] = {}
    assets: dict[str, Path] = {}
    refused_entries: list[Refused] = []
    wheels = _installed_wheels()
    for engine in ENGINES:
        places = [(root, origin) for root, origin in ((wheels.get(engine.name), "wheel"), (cache, "cache")) if root]
        built_entry = _first_entry(places, engine.name, engine.source_hash())
        for name, _ in engine.binaries:
            program = _find_program(engine, name, environ, refused_entries)
            if program is None and built_entry is not None:
                program = Program(name, built_entry[0] / name, engine.version, built_entry[1])
            if program is not None:
                programs[name] = program
        if engine.assets and (asset_entry := _first_entry(places, f"{engine.name}-assets", engine.assets_hash())):
            assets.update((asset.name, asset_entry[0] / asset.name) for asset in engine.assets)
        if engine.name in wheels and wheels[engine.name].entry(engine.name, engine.source_hash()) is None:
            reason = "it is damaged, or made for another release of kueue-fleet; install the extra `rehearsal` again"
            refused_entries.append(Refused(wheels[engine.name].root, reason))
    return Engines(programs, assets, tuple(refused_entries))


def program_place(engines: Engines, cache: EngineCache, name: str) -> Path:
    """Where a program is, or one that only some fleets need will be: a fleet may get it while its clusters run.

    Raises RehearsalError for any other program that is neither found nor built.
    """
    engine = next((engine for engine in ENGINES if engine.name == name), None)
    if name in engines.programs or engine is None or not engine.for_some_fleets:
        return engines.binary(name)
    return cache.folder(name, engine.source_hash()) / name


def _installed_wheels() -> dict[str, EngineCache]:
    """What each installed wheel brings, by engine: a package laid out as a cache folder."""
    packages = {point.name: find_spec(point.value) for point in entry_points(group=INSTALLED_GROUP)}
    return {
        name: EngineCache(Path(spec.submodule_search_locations[0]))
        for name, spec in packages.items()
        if spec and spec.submodule_search_locations
    }


def _first_entry(places: Iterable[tuple[EngineCache, str]], name: str, key: str) -> tuple[Path, str] | None:
    """The first place that has the whole entry: its folder there, and what the place is called."""
    entries = ((root.entry(name, key), origin) for root, origin in places)
    return next(((folder, origin) for folder, origin in entries if folder), None)


def _find_program(
    engine: Engine, name: str, environ: Mapping[str, str], refused_entries: list[Refused]
) -> Program | None:
    places = [(folder, "KUBEBUILDER_ASSETS") for folder in (environ.get("KUBEBUILDER_ASSETS"),) if folder]
    places += [(folder, "PATH") for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    for folder, origin in places:
        path = Path(folder).absolute() / name
        if not (path.is_file() and os.access(path, os.X_OK)):
            continue
        version = program_version(engine, path)
        if engine.own_first:
            return Program(name, path, version or "unknown", origin)
        if version is None:
            refused_entries.append(Refused(path, f"its version cannot be determined; {_wanted(engine)} is needed"))
        elif not accepts(engine, version):
            refused_entries.append(Refused(path, f"it is {version}; {_wanted(engine)} is needed"))
        else:
            return Program(name, path, version, origin)
    return None


def _wanted(engine: Engine) -> str:
    return f"{engine.accepts}.x" if engine.accepts else engine.version


def accepts(engine: Engine, version: str) -> bool:
    """Whether a found program of this version can stand in for the one that would be built."""
    if not engine.accepts:
        return version.removeprefix("v") == engine.version.removeprefix("v")
    return version.removeprefix("v").startswith(engine.accepts + ".")


def program_version(engine: Engine, path: Path) -> str | None:
    """The version a program reports, or Go recorded in it; None when neither says."""
    if not engine.version_command:
        return recorded_version(path, engine.module)
    try:
        done = subprocess.run(
            [path, *engine.version_command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stdout)
    return "v" + match[1].decode() if match and done.returncode == 0 else None


def recorded_version(path: Path, module: str) -> str | None:
    """The version of the main module in Go's build information, as `go version -m` prints it."""
    marker = f"\nmod\t{module}\tv".encode()
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            start = content.find(marker)
            if start < 0:
                return None
            text = content[start + len(marker) - 1 : start + len(marker) + 100]
    return text.split(b"\t")[0].split(b"\n")[0].decode(errors="replace")
