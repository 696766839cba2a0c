"""`python -m kueue_rehearsal.engines [OPTION] [ENGINE…]`: builds what is missing, lists it, or packs it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from kueue_rehearsal.engines.build import BuildProgress, build_engines
from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import ENGINES, REHEARSAL_ENGINES
from kueue_rehearsal.engines.discovery import Engines, find_engines
from kueue_rehearsal.engines.wheels import make_wheels, requirements
from kueue_rehearsal.paths import RehearsalError, engines_dir

_PLAIN_SECONDS = 15.0


class _Printer:
    """One line that changes on a terminal; else a line for each phase, and one every 15 s."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last: tuple[str, str] | None = None
        self._printed_at = 0.0

    def __call__(self, progress: BuildProgress) -> None:
        text = f"{progress.fraction:4.0%}  {progress.engines}: {progress.phase}, {progress.elapsed_seconds:.0f} s"
        step = (progress.engines, progress.phase)
        if self._terminal:
            end = "\n" if progress.phase == "done" else ""
            print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
        elif step != self._last or progress.elapsed_seconds - self._printed_at >= _PLAIN_SECONDS:
            print(text, file=sys.stderr, flush=True)
            self._printed_at = progress.elapsed_seconds
        self._last = step


def _table(engines: Engines) -> str:
    rows = []
    for engine in ENGINES:
        for name, _ in engine.binaries:
            program = engines.programs.get(name)
            where = f"{program.version:<10} {program.origin:<18} {program.path}" if program else "not built"
            rows.append(f"{name:<26} {where}")
        rows += [f"{asset.name:<26} {engines.assets.get(asset.name, 'not fetched')}" for asset in engine.assets]
    rows += [f"not used: {refused_entry.path}: {refused_entry.reason}" for refused_entry in engines.refused]
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 when everything asked for is there."""
    parser = argparse.ArgumentParser(prog="python -m kueue_rehearsal.engines", description=__doc__)
    parser.add_argument(
        "--list", action="store_true", help="only show what is there; exit code 1 if anything is missing"
    )
    parser.add_argument(
        "--wheels", type=Path, metavar="FOLDER", help="also pack those of a rehearsal into wheels there"
    )
    parser.add_argument(
        "--rehearsal", action="store_true", help="those that every rehearsal runs, and the ENGINEs that are named"
    )
    parser.add_argument("--requirements", action="store_true", help="only print the wheels that a release names")
    parser.add_argument(
        "engines", nargs="*", metavar="ENGINE", help="only these engines; default: all but those of some fleets"
    )
    options = parser.parse_args(arguments)
    if options.requirements:
        print("\n".join(requirements()))
        return 0
    cache = EngineCache(engines_dir())
    if options.rehearsal or (options.wheels and not options.engines):
        options.engines += REHEARSAL_ENGINES
    try:
        engines = find_engines(cache) if options.list else build_engines(cache, _Printer(), options.engines or None)
        if options.wheels:
            for wheel in make_wheels(cache, options.engines, options.wheels, os.environ):
                print(f"{wheel} ({wheel.stat().st_size / 1e6:.0f} MB)", flush=True)
            return 0
    except RehearsalError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the next build continues from here", file=sys.stderr)
        return 130
    print(_table(engines))
    wanted_names = set(options.engines) or {engine.name for engine in ENGINES if not engine.for_some_fleets}
    return 1 if any(engine.name in wanted_names for engine in engines.missing()) else 0


if __name__ == "__main__":
    sys.exit(main())
