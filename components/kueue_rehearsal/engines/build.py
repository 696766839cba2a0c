"""Makes the engines that are not there: compiles programs and copies assets out of their Go modules, into the cache.

Engines of one go.mod are one `go build`, so that one is linked while the next is compiled.

An interrupted build leaves nothing half done; what Go had compiled by then is kept in Go's own build cache, so that
the next attempt continues from there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import yaml

from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import BUILD_FLAGS, ENGINES, Asset, Engine, LoneChart
from kueue_rehearsal.engines.discovery import Engines, find_engines
from kueue_rehearsal.engines.patched import copy_patched
from kueue_rehearsal.engines.toolchain import GoToolchain, find_go, install_go, usable_cores
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.child_process import die_with_parent, log_tail

_POLL_SECONDS = 0.25
_DOWNLOAD_SILENCE_SECONDS = 3.0
_GIB = 1024**3
_RESULTS_GIB = 0.8  # all programs together
_MEASURED_ON_CORES = 2

_NO_SPACE = ("no space left on device", "disk quota exceeded")
_REFUSED = (
    "SECURITY ERROR",
    "checksum mismatch",
    "missing go.sum entry",
    "403 Forbidden",
    "404 Not Found",
    "410 Gone",
    "dial tcp",
    "i/o timeout",
    "proxyconnect",
    "module lookup disabled",
    "reading https://",
    "reading http://",
    "TLS handshake",
    "updates to go.mod needed",
)


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How far the build is."""

    engines: str
    """Names of those that are built together."""
    phase: str
    """`waiting` for another builder, `toolchain`, `downloading`, `compiling`, `copying` or `done`."""
    elapsed_seconds: float
    """Since these engines were begun."""
    fraction: float
    """Of all that has to be built, 0 to 1: a guess from measured times, corrected by how fast this machine proves."""


ProgressListener = Callable[[BuildProgress], None]
"""Called with how far a build is."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Engines that one `go build` makes, from one go.mod."""

    engines: tuple[Engine, ...]

    @property
    def names(self) -> str:
        return ", ".join(engine.name for engine in self.engines)

    @property
    def folder(self) -> Path:
        return self.engines[0].folder

    @property
    def seconds(self) -> float:
        """As measured; at least 1, for what is only copied."""
        return max(float(sum(engine.build_seconds for engine in self.engines)), 1.0)


class _Pace:
    """Guesses the fraction done from measured build times, and learns this machine's speed from what is finished."""

    def __init__(self, groups: Iterable[_Group], cores: int) -> None:
        self._total = sum(group.seconds for group in groups)
        self._done = 0.0
        self._spent = 0.0
        self._scale = _MEASURED_ON_CORES / min(max(cores, 1), 8)

    @property
    def seconds(self) -> float:
        """Of all, before any is built."""
        return self._total * self._scale

    def fraction(self, group: _Group, elapsed_seconds: float) -> float:
        guess = min(elapsed_seconds / max(group.seconds * self._scale, 0.1), 0.95) * group.seconds
        return min((self._done + guess) / self._total, 1.0)

    def finish(self, group: _Group, elapsed_seconds: float) -> None:
        self._done += group.seconds
        self._spent += elapsed_seconds
        self._scale = self._spent / self._done


class _Report:
    """Progress of one group."""

    def __init__(self, group: _Group, pace: _Pace, listener: ProgressListener) -> None:
        self._group = group
        self._pace = pace
        self._listener = listener
        self._started = time.monotonic()
        self.phase = "waiting"

    def __call__(self, phase: str | None = None) -> None:
        self.phase = phase or self.phase
        elapsed_seconds = time.monotonic() - self._started
        if self.phase == "done":
            self._pace.finish(self._group, elapsed_seconds)
        fraction = self._pace.fraction(self._group, 0.0 if self.phase == "done" else elapsed_seconds)
        self._listener(BuildProgress(self._group.names, self.phase, elapsed_seconds, fraction))


def build_engines(
    cache: EngineCache,
    listener: ProgressListener = lambda progress: None,
    names: Iterable[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Engines:
    """Everything that is there, after building what was not: the engines in `names`, by default all but those that only
    some fleets need.

    `listener` is called several times a second while something is built, and not at all when nothing is missing.
    Raises RehearsalError: no toolchain, no disk, a module refused, a build failed.
    """
    engines = find_engines(cache, environ)
    missing_names = _missing(engines, names)
    if not missing_names:
        return engines
    groups = _groups(missing_names)
    go = find_go(environ)
    pace = _Pace(groups, usable_cores())
    if go is None:
        _Report(groups[0], pace, listener)("toolchain")
        _check_disk({cache.root: 0.3})
        go = install_go(cache, environ)
    _check_disk(_needed_disk(cache, go, [engine for engine in missing_names if engines.lacks_program(engine)]))
    for group in groups:
        _make(group, cache, go, engines, _Report(group, pace, listener))
    return find_engines(cache, environ)


def expected_build_seconds(
    cache: EngineCache, names: Iterable[str] | None = None, environ: Mapping[str, str] = os.environ
) -> float:
    """About how long `build_engines` takes for the same engines, in seconds; 0 where none is missing.

    A guess from times that were measured with an empty cache of Go, on two cores.
    """
    missing_names = _missing(find_engines(cache, environ), names)
    return _Pace(_groups(missing_names), usable_cores()).seconds if missing_names else 0.0


def _missing(engines: Engines, names: Iterable[str] | None) -> list[Engine]:
    wanted_names = {engine.name for engine in ENGINES if not engine.for_some_fleets} if names is None else set(names)
    unknown = wanted_names - {engine.name for engine in ENGINES}
    if unknown:
        known_names = ", ".join(engine.name for engine in ENGINES)
        raise RehearsalError(f"{', '.join(sorted(unknown))}: no such engine; the engines are {known_names}")
    return [engine for engine in engines.missing() if engine.name in wanted_names]


def _groups(engines: Iterable[Engine]) -> list[_Group]:
    """Engines by their go.mod, in the order of the first of each."""
    folders: dict[Path, list[Engine]] = {}
    for engine in engines:
        folders.setdefault(engine.folder, []).append(engine)
    return [_Group(tuple(members)) for members in folders.values()]


def _make(group: _Group, cache: EngineCache, go: GoToolchain, engines: Engines, report: _Report) -> None:
    report()
    with cache.locked(group.folder.name, waiting=report):
        # Another builder may have made them while this one waited.
        uncompiled_engines = [
            engine
            for engine in group.engines
            if engines.lacks_program(engine) and cache.entry(engine.name, engine.source_hash()) is None
        ]
        if uncompiled_engines:
            report("compiling")
            _compile(_Group(tuple(uncompiled_engines)), cache, go, report)
        for engine in group.engines:
            key = engine.assets_hash()
            if engines.lacks_asset(engine) and cache.entry(f"{engine.name}-assets", key) is None:
                report("copying")
                cache.store(f"{engine.name}-assets", key, partial(_copy_assets, engine, cache, go, report))
    report("done")


def _needed_disk(cache: EngineCache, go: GoToolchain, engines: list[Engine]) -> dict[Path, float]:
    """GiB for each folder; nothing for Go's caches of someone who has built these engines before cannot be known."""
    if not engines:
        return {cache.root: 0.05}
    caches = sum(engine.build_gib for engine in engines)
    return {cache.root: _RESULTS_GIB, go.build_cache: caches * 0.75, go.module_cache: caches * 0.25}


def _check_disk(needed_gib: Mapping[Path, float]) -> None:
    """Raises RehearsalError when a file system has less free than all of its folders together need."""
    by_device: dict[int, tuple[Path, float]] = {}
    for folder, gib in needed_gib.items():
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        device = existing.stat().st_dev
        first, total = by_device.get(device, (folder, 0.0))
        by_device[device] = (first, total + gib)
    for folder, gib in by_device.values():
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free / _GIB
        if free < gib:
            raise RehearsalError(
                f"{folder}: building the engines needs about {gib:.1f} GiB of disk, {free:.1f} GiB are free; "
                "free some, or set KUEUE_FLEET_CACHE_DIR, GOCACHE and GOMODCACHE to folders on a larger disk"
            )


def _compile(group: _Group, cache: EngineCache, go: GoToolchain, report: _Report) -> None:
    log = cache.log(group.folder.name)
    log.write_text("")
    mains = [(package, engine) for engine in group.engines for _, package in engine.binaries]
    linker = [f"-ldflags={package}={engine.linker_flags}" for package, engine in mains]
    with cache.building(f"{group.folder.name}-programs") as target, _workdir(group.engines) as workdir:
        packages = [package for package, _ in mains]
        with _standard_library(go, workdir):
            _prepare_sources(group, workdir, cache, go, report)
            # Downloads the modules of these packages and no others.
            _run_go(group.names, go, ["list", "-deps", "-mod=readonly", *packages], workdir, log, report)
        _run_go(group.names, go, ["build", *BUILD_FLAGS, *linker, "-o", f"{target}/", *packages], workdir, log, report)
        for engine in group.engines:
            cache.store(engine.name, engine.source_hash(), partial(_take_programs, engine, target, log))


@contextmanager
def _standard_library(go: GoToolchain, workdir: Path) -> Iterator[None]:
    """Compiles Go's own packages beside the block, which downloads modules and leaves the processors idle.

    What goes wrong here goes wrong again in the build that follows, which says it.
    """
    argv = ["build", *BUILD_FLAGS, "std"]
    with _go(go, argv, workdir, subprocess.DEVNULL, subprocess.DEVNULL) as process:
        yield
        process.wait()


def _prepare_sources(group: _Group, workdir: Path, cache: EngineCache, go: GoToolchain, report: _Report) -> None:
    """Puts beside go.mod what programs embed and the patched copies of modules, and names these in go.mod."""
    patched_modules = tuple(dict.fromkeys(module for engine in group.engines for module in engine.patched))
    embedded_assets = [asset for engine in group.engines for asset in engine.embedded]
    modules = sorted({module.module for module in patched_modules} | {asset.module for asset in embedded_assets})
    folders = download_modules(group.engines[0], modules, cache, go, report)
    for asset in embedded_assets:
        shutil.copyfile(_inside(folders[asset.module], asset, group.names), workdir / asset.name)
    for module in patched_modules:
        copy_patched(module, folders[module.module], workdir / module.folder)
    lines = (workdir / "go.mod").read_text().splitlines(keepends=True)
    replaced_lines = tuple(f"replace {module.module} => " for module in patched_modules)
    lines = [line for line in lines if not line.startswith(replaced_lines)]
    (workdir / "go.mod").write_text("".join((*lines, "\n", *(module.replacement for module in patched_modules))))


def _take_programs(engine: Engine, path: Path, log: Path, folder: Path) -> None:
    for name, package in engine.binaries:
        program = path / program_name(package)
        if not program.exists():
            raise RehearsalError(f"{engine.name}: go build made no {name}; see {log}")
        program.rename(folder / name)


def program_name(package: str) -> str:
    """How `go build` names the program of a package: after its last folder that is not a major version."""
    return re.sub(r"/v\d+$", "", package).rpartition("/")[2]


def _copy_assets(engine: Engine, cache: EngineCache, go: GoToolchain, report: _Report, folder: Path) -> None:
    modules = sorted({asset.module for asset in engine.assets})
    folders = download_modules(engine, modules, cache, go, report)
    for asset in engine.assets:
        source = _inside(folders[asset.module], asset, engine.name)
        copy_plainly(source, folder / asset.name)
        if isinstance(asset, LoneChart):
            description = folder / asset.name / "Chart.yaml"
            alone = {
                key: value for key, value in yaml.safe_load(description.read_text()).items() if key != "dependencies"
            }
            description.write_text(yaml.safe_dump(alone, sort_keys=False))


def _inside(module: Path, asset: Asset, engine: str) -> Path:
    if not (module / asset.path).exists():
        raise RehearsalError(
            f"{engine}: {asset.path} is not in {asset.module}; "
            "run `go clean -modcache` if the module cache may be damaged"
        )
    return module / asset.path


def download_modules(
    engine: Engine, modules: Iterable[str], cache: EngineCache, go: GoToolchain, report: _Report | None = None
) -> dict[str, Path]:
    """The folder of each module, in the version that the engine's go.mod names; fetched where it is not there.

    Raises RehearsalError when a module cannot be downloaded.
    """
    if not (module_list := list(modules)):
        return {}  # go would take none for all
    group = _Group((engine,))
    report = report or _Report(group, _Pace([group], 1), lambda _: None)
    with _workdir([engine]) as workdir:
        log = cache.log(engine.folder.name)
        output = _run_go(engine.name, go, ["mod", "download", "-json", *module_list], workdir, log, report)
    return {entry["Path"]: Path(entry["Dir"]) for entry in _json_values(output)}


def copy_plainly(source: Path, target: Path) -> None:
    """Copies a file or a folder without its modes: those in Go's module cache are read-only."""
    if source.is_file():
        shutil.copyfile(source, target)
        return
    target.mkdir()
    for child in sorted(source.iterdir()):
        copy_plainly(child, target / child.name)


def _json_values(text: str) -> list[dict[str, str]]:
    decoder = json.JSONDecoder()
    values, rest = [], text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


@contextmanager
def _workdir(engines: Iterable[Engine]) -> Iterator[Path]:
    """A folder with go.mod and go.sum of the engines, and the sources of those that are ours."""
    with tempfile.TemporaryDirectory(prefix="kueue-fleet-engine-") as name:
        workdir = Path(name)
        for engine in engines:
            for source in engine.sources:
                (workdir / source).parent.mkdir(exist_ok=True)
                shutil.copyfile(engine.folder / source, workdir / source)
        yield workdir


@contextmanager
def _go(
    go: GoToolchain, argv: list[str], workdir: Path, stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """go in a folder, for this block; whatever of it still runs at the end, or when this process dies, is killed."""
    process = subprocess.Popen(
        [str(go.executable), *argv],
        cwd=workdir,
        env=dict(go.environment),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _run_go(label: str, go: GoToolchain, argv: list[str], workdir: Path, log: Path, report: _Report) -> str:
    """Runs go in a folder; returns what it printed.

    Raises RehearsalError with the cause and what to do about it.
    """
    with tempfile.TemporaryFile() as stdout, log.open("ab") as errors:
        begin = errors.tell()
        with _go(go, argv, workdir, stdout, errors) as process:
            _watch(process, log, begin, report)
        if process.returncode != 0:
            with log.open("rb") as file:
                file.seek(begin)
                raise RehearsalError(explain_failure(label, file.read().decode(errors="replace"), log))
        stdout.seek(0)
        return stdout.read().decode()


def _watch(process: subprocess.Popen[bytes], log: Path, begin: int, report: _Report) -> None:
    while True:
        try:
            process.wait(_POLL_SECONDS)
            return
        except subprocess.TimeoutExpired:
            if report.phase == "copying":
                report()
            else:
                report("downloading" if _is_downloading(log, begin) else "compiling")


def _is_downloading(log: Path, begin: int) -> bool:
    """Go names each module when it begins to download it, and is silent when it compiles."""
    stat = log.stat()
    if stat.st_size <= begin or time.time() - stat.st_mtime > _DOWNLOAD_SILENCE_SECONDS:
        return False
    return log_tail(log, 1).startswith("go: downloading")


def explain_failure(label: str, text: str, log: Path) -> str:
    """One sentence on why go failed to build what LABEL names, and what to do."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("go: downloading", "#"))]
    for line in lines:
        if any(sign in line for sign in _NO_SPACE):
            return f"{label}: the disk became full while building ({line}); free some space and run it again"
    for line in lines:
        if any(sign in line for sign in _REFUSED):
            return (
                f"{label}: a Go module could not be downloaded ({line}); "
                "check the network and GOPROXY, then run it again: what is built already is kept"
            )
    last = lines[-1] if lines else "it said nothing"
    return f"{label}: go failed ({last}); see {log}"
