"""The programs a rehearsal runs: found on this machine, or built once from their Go modules into the cache.

`catalogue` says what they are, `discovery` where they are, `build` makes what is missing, `toolchain` finds Go,
`cache` keeps the results. `python -m kueue_rehearsal.engines` builds, with `--list` it only looks.
"""

from kueue_rehearsal.engines.build import BuildProgress, build_engines, expected_build_seconds
from kueue_rehearsal.engines.cache import EngineCache
from kueue_rehearsal.engines.catalogue import ENGINES, KUEUE_ENGINES, OPERATOR_ENGINES, REHEARSAL_ENGINES, Engine
from kueue_rehearsal.engines.discovery import Engines, Program, find_engines

__all__ = [
    "ENGINES",
    "KUEUE_ENGINES",
    "OPERATOR_ENGINES",
    "REHEARSAL_ENGINES",
    "BuildProgress",
    "Engine",
    "EngineCache",
    "Engines",
    "Program",
    "build_engines",
    "expected_build_seconds",
    "find_engines",
]
