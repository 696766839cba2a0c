"""Kueue's releases: what each has, as data in a folder for each minor release.

`make release-tables` writes the tables from Kueue's source; `release.toml` is written by hand, with the source of each
fact.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

from kueue_admission.forms.problem import rows_of

DEFAULT_VERSION: Final = "0.19.2"
"""The version of Kueue that a fleet has where its file names none."""


class Gate(NamedTuple):
    """A feature gate of one release."""

    stage: str
    """Alpha, Beta, GA or Deprecated; empty for AllAlpha and AllBeta, and where it is not known."""
    on: bool
    """Whether it is on by default; off where that is not known, which is so where `stage` is empty."""
    locked: bool
    """Whether it can only have its default."""
    needs: tuple[str, ...]
    """Gates that have to be on where it is: Kueue does not start otherwise."""


class UnknownReleaseError(LookupError):
    """Nothing is known here of a release."""


@dataclass(frozen=True)
class Release:
    """One version of Kueue: its minor release's facts, less what later patch releases added."""

    version: str
    """Such as `0.19.2`."""
    minor: str
    """Such as `0.19`, the name of its folder."""

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What `release.toml` says."""
        text = files(__package__).joinpath(self.minor, "release.toml").read_text(encoding="utf-8")
        return tomllib.loads(text)

    @property
    def read(self) -> tuple[str, ...]:
        """The versions whose source the tables are from, oldest first."""
        return tuple(self.facts["read"])

    @property
    def run_here(self) -> bool:
        """Whether this project's tests run it; else its facts are from reading alone."""
        return bool(self.facts["runHere"])

    @cached_property
    def gates(self) -> Mapping[str, Gate]:
        """Its feature gates, by name."""
        return {
            row["gate"]: Gate(
                row["stage"], row["default"] == "true", row["locked"] == "true", tuple(row["needs"].split())
            )
            for row in self.table("gates")
        }

    def gate_is_on(self, gate: str, overrides: Mapping[str, bool] | None) -> bool:
        """Whether `gate` is on with `overrides`; off where the release does not have it."""
        known = self.gates.get(gate)
        return known is not None and (overrides or {}).get(gate, known.on)

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of one of its tables that this version has.

        Raises FileNotFoundError: there is no such table.
        """
        rows = rows_of(__package__, f"{self.minor}/{name}.csv")
        return [row for row in rows if not row.get("since") or _numbers(row["since"]) <= _numbers(self.version)]


@cache
def minors() -> tuple[str, ...]:
    """The minor releases with a folder, oldest first."""
    names = (each.name for each in files(__package__).iterdir() if each.is_dir() and each.name[0].isdigit())
    return tuple(sorted(names, key=_numbers))


@cache
def release(version: str) -> Release:
    """The facts of a version, or of a minor release (`0.18`) at the version that was read.

    Raises UnknownReleaseError: there is no folder for its minor release.
    """
    minor = ".".join(version.split(".")[:2])
    if minor not in minors():
        raise UnknownReleaseError(f"Kueue {version} is not known; known are {', '.join(minors())}")
    return Release(Release(version, minor).read[-1] if version == minor else version, minor)


@cache
def nearest(version: str) -> Release:
    """The facts of a version; where there is no folder for its minor release, those of the nearest one."""
    minor, known = ".".join(version.split(".")[:2]), minors()
    if minor not in known:
        minor = known[0] if _numbers(version) < _numbers(known[0]) else known[-1]
    return Release(version, minor)


def _numbers(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(part) for part in version.split("-")[0].split("."))
