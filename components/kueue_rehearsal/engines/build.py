"""Makes the engines that are not there: compiles programs and copies assets out of their Go modules, into the cache.

An interrupted build leaves nothing half done; what Go had compiled by then is kept in Go's own build cache, so that
the next attempt continues from there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import ENGINES, Engine, LoneChart
from kueue_rehearsal.engines.discovery import Engines, find_engines
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

    engine: str
    phase: str
    """`waiting` for another builder, `toolchain`, `downloading`, `compiling`, `copying` or `done`."""
    elapsed_seconds: float
    """Since this engine was begun."""
    fraction: float
    """Of all that has to be built, 0 to 1: a guess from measured times, corrected by how fast this machine proves."""


ProgressListener = Callable[[BuildProgress], None]
"""Called with how far a build is."""


class _Pace:
    """Guesses the fraction done from measured build times, and learns this machine's speed from finished engines."""

    def __init__(self, engines: Iterable[Engine], cores: int) -> None:
        self._expected = {engine.name: float(engine.build_seconds) for engine in engines}
        self._total = sum(self._expected.values()) or 1.0
        self._done = 0.0
        self._spent = 0.0
        self._scale = _MEASURED_ON_CORES / min(max(cores, 1), 8)

    @property
    def seconds(self) -> float:
        """Of all, before any is built."""
        return self._total * self._scale

    def fraction(self, engine: str, elapsed: float) -> float:
        expected = self._expected[engine]
        guessed = min(elapsed / max(expected * self._scale, 0.1), 0.95) * expected
        return min((self._done + guessed) / self._total, 1.0)

    def finished(self, engine: str, elapsed: float) -> None:
        self._done += self._expected[engine]
        self._spent += elapsed
        self._scale = self._spent / self._done


class _Report:
    """Progress of one engine."""

    def __init__(self, engine: Engine, pace: _Pace, listener: ProgressListener) -> None:
        self._engine = engine
        self._pace = pace
        self._listener = listener
        self._started = time.monotonic()
        self.phase = "waiting"

    def __call__(self, phase: str | None = None) -> None:
        self.phase = phase or self.phase
        elapsed = time.monotonic() - self._started
        if self.phase == "done":
            self._pace.finished(self._engine.name, elapsed)
            fraction = self._pace.fraction(self._engine.name, 0.0)
        else:
            fraction = self._pace.fraction(self._engine.name, elapsed)
        self._listener(BuildProgress(self._engine.name, self.phase, elapsed, fraction))


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
    found = find_engines(cache, environ)
    missing = _missing(found, names)
    if not missing:
        return found
    compiled = [engine for engine in missing if found.lacks_program(engine)]
    go = find_go(environ)
    pace = _Pace(missing, usable_cores())
    if go is None:
        _Report(missing[0], pace, listener)("toolchain")
        _check_disk({cache.root: 0.3})
        go = install_go(cache, environ)
    _check_disk(_needed_disk(cache, go, compiled))
    for engine in missing:
        _make(engine, cache, go, found, _Report(engine, pace, listener))
    return find_engines(cache, environ)


def expected_build_seconds(
    cache: EngineCache, names: Iterable[str] | None = None, environ: Mapping[str, str] = os.environ
) -> float:
    """About how long `build_engines` takes for the same engines, in seconds; 0 where none is missing.

    A guess from times that were measured with an empty cache of Go, on two cores.
    """
    missing = _missing(find_engines(cache, environ), names)
    return _Pace(missing, usable_cores()).seconds if missing else 0.0


def _missing(found: Engines, names: Iterable[str] | None) -> list[Engine]:
    wanted = {engine.name for engine in ENGINES if not engine.for_some_fleets} if names is None else set(names)
    unknown = wanted - {engine.name for engine in ENGINES}
    if unknown:
        known = ", ".join(engine.name for engine in ENGINES)
        raise RehearsalError(f"{', '.join(sorted(unknown))}: no such engine; the engines are {known}")
    return [engine for engine in found.missing() if engine.name in wanted]


def _make(engine: Engine, cache: EngineCache, go: GoToolchain, found: Engines, report: _Report) -> None:
    report()
    with cache.locked(engine.name, waiting=report):
        key, assets_key = engine.source_hash(), engine.assets_hash()
        # Another builder may have made them while this one waited.
        if found.lacks_program(engine) and cache.entry(engine.name, key) is None:
            report("compiling")
            cache.store(engine.name, key, lambda folder: _compile(engine, folder, cache, go, report))
        if found.lacks_asset(engine) and cache.entry(f"{engine.name}-assets", assets_key) is None:
            report("copying")
            cache.store(
                f"{engine.name}-assets", assets_key, lambda folder: _copy_assets(engine, folder, cache, go, report)
            )
    report("done")


def _needed_disk(cache: EngineCache, go: GoToolchain, compiled: list[Engine]) -> dict[Path, float]:
    """GiB for each folder; nothing for Go's caches of someone who has built these engines before cannot be known."""
    if not compiled:
        return {cache.root: 0.05}
    caches = sum(engine.build_gib for engine in compiled)
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


def _compile(engine: Engine, folder: Path, cache: EngineCache, go: GoToolchain, report: _Report) -> None:
    log = cache.log(engine.name)
    log.write_text("")
    folders = download_modules(engine, sorted({each.module for each in engine.embedded}), cache, go, report)
    embedded = {each.name: folders[each.module] / each.path for each in engine.embedded}
    for name, package in engine.binaries:
        target = folder / name
        argv = ["build", *engine.build_flags, f"-ldflags={engine.linker_flags}", "-o", str(target), package]
        _run_go(engine, go, argv, log, report, embedded)
        if not target.exists():
            raise RehearsalError(f"{engine.name}: go build made no {name}; see {log}")


def _copy_assets(engine: Engine, folder: Path, cache: EngineCache, go: GoToolchain, report: _Report) -> None:
    folders = download_modules(engine, sorted({asset.module for asset in engine.assets}), cache, go, report)
    for asset in engine.assets:
        source = folders[asset.module] / asset.path
        if not source.exists():
            raise RehearsalError(
                f"{engine.name}: {asset.path} is not in {asset.module}; "
                "run `go clean -modcache` if the module cache may be damaged"
            )
        copy_plainly(source, folder / asset.name)
        if isinstance(asset, LoneChart):
            description = folder / asset.name / "Chart.yaml"
            alone = {
                key: value for key, value in yaml.safe_load(description.read_text()).items() if key != "dependencies"
            }
            description.write_text(yaml.safe_dump(alone, sort_keys=False))


def download_modules(
    engine: Engine, modules: Iterable[str], cache: EngineCache, go: GoToolchain, report: _Report | None = None
) -> dict[str, Path]:
    """The folder of each module, in the version that the engine's go.mod names; fetched where it is not there.

    Raises RehearsalError when a module cannot be downloaded.
    """
    if not (asked := list(modules)):
        return {}  # go would take none for all
    argv = ["mod", "download", "-json", *asked]
    said = _run_go(
        engine, go, argv, cache.log(engine.name), report or _Report(engine, _Pace([engine], 1), lambda _: None)
    )
    return {entry["Path"]: Path(entry["Dir"]) for entry in _json_values(said)}


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


def _run_go(
    engine: Engine,
    go: GoToolchain,
    argv: list[str],
    log: Path,
    report: _Report,
    beside: Mapping[str, Path] | None = None,
) -> str:
    """Runs go in a copy of the engine's folder, with the files BESIDE; returns what it printed.

    Raises RehearsalError with the cause and what to do about it.
    """
    with tempfile.TemporaryDirectory(prefix="kueue-fleet-engine-") as workdir, log.open("ab") as errors:
        for name, source in {**{name: engine.folder / name for name in engine.sources}, **(beside or {})}.items():
            shutil.copyfile(source, Path(workdir) / name)
        begin = errors.tell()
        output = Path(workdir) / "stdout"
        with output.open("wb") as stdout:
            process = subprocess.Popen(
                [str(go.executable), *argv],
                cwd=workdir,
                env=dict(go.environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=errors,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
            try:
                _watch(process, log, begin, report)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        if process.returncode != 0:
            with log.open("rb") as file:
                file.seek(begin)
                raise RehearsalError(explain_failure(engine, file.read().decode(errors="replace"), log))
        return output.read_text()


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


def explain_failure(engine: Engine, said: str, log: Path) -> str:
    """One sentence on why go failed, and what to do."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("go: downloading", "#"))]
    for line in lines:
        if any(sign in line for sign in _NO_SPACE):
            return f"{engine.name}: the disk became full while building ({line}); free some space and run it again"
    for line in lines:
        if any(sign in line for sign in _REFUSED):
            return (
                f"{engine.name}: a Go module could not be downloaded ({line}); "
                "check the network and GOPROXY, then run it again: what is built already is kept"
            )
    last = lines[-1] if lines else "it said nothing"
    return f"{engine.name}: go failed ({last}); see {log}"
