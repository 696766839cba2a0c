"""Kueue's releases: what each has, as data in a folder for each minor release.

`make release-tables` writes the tables from Kueue's source; `release.toml` is written by hand, with the source of each
fact.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, NamedTuple

from kueue_admission.kernel.tables import read_table
from kueue_admission.kernel.versions import minor_of, numbers_of
from kueue_admission.kernel.yaml_text import load_yaml

DEFAULT_VERSION: Final = "0.19.2"
"""The version of Kueue that a fleet has where its file names none."""
KEEPS_JOBS_OF_LOST: Final = "an admitted worker that is away keeps its job until workerLostTimeout"
"""One of `Release.behaviours`."""
ADMITS_UNCOUNTED: Final = "a job of which its queue counts nothing is admitted on the manager without a worker"
"""One of `Release.behaviours`."""


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
        return tomllib.loads(self._text("release.toml"))

    def _text(self, name: str) -> str:
        return files(__package__).joinpath(self.minor, name).read_text(encoding="utf-8")

    @property
    def read(self) -> tuple[str, ...]:
        """The versions whose source the tables are from, oldest first."""
        return tuple(self.facts["read"])

    @property
    def served(self) -> tuple[str, ...]:
        """Versions of `kueue.x-k8s.io` that it serves."""
        return tuple(self.facts["served"])

    @property
    def most_pod_sets(self) -> int:
        """Pod sets that a Workload has at most."""
        return int(self.facts["podSets"])

    @property
    def run_here(self) -> bool:
        """Whether this project's tests run it; otherwise its facts come from reading alone."""
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

    def has_gate(self, name: str) -> bool:
        """Whether it has a feature gate."""
        return name in self.gates

    def gate_is_on(self, gate: str, overrides: Mapping[str, bool] | None) -> bool:
        """Whether `gate` is on with `overrides`; off where the release does not have it."""
        gate_default = self.gates.get(gate)
        return gate_default is not None and (overrides or {}).get(gate, gate_default.on)

    def configuration(self) -> dict[str, Any]:
        """The Configuration that its chart has by default; a copy of it for the caller."""
        return deepcopy(self._configuration)

    @cached_property
    def _configuration(self) -> dict[str, Any]:
        file = "configuration.yaml"
        defaults: dict[str, Any] = load_yaml(self._text(file), file)
        return defaults

    @cached_property
    def _fields(self) -> frozenset[tuple[str, str, str]]:
        return frozenset((row["of"], row["version"], row["field"]) for row in self.table("fields"))

    def has_field(self, of: str, version: str, field: str) -> bool:
        """Whether `of`, a kind or `Configuration`, has a field in a version of its API, such as `spec.clusters[]`."""
        return (of, version, field) in self._fields

    def fields_of(self, of: str, version: str, above: str) -> frozenset[str]:
        """The fields of `of` whose path begins with `above`."""
        return frozenset(
            field for kind, api, field in self._fields if (kind, api) == (of, version) and field.startswith(above)
        )

    @cached_property
    def behaviours(self) -> Mapping[str, str]:
        """What Kueue does by itself that users reckon with: yes, no or not known."""
        return {row["behaviour"]: row["state"] for row in self.table("behaviours")}

    @cached_property
    def chart_values(self) -> Mapping[str, str]:
        """The values of its chart and their defaults, by dotted path."""
        return {row["name"]: row["value"] for row in self.table("chart") if row["part"] == "value"}

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of one of its tables that this version has.

        Raises FileNotFoundError: there is no such table.
        """
        rows = read_table(__package__, f"{self.minor}/{name}.csv")
        return [row for row in rows if not row.get("since") or numbers_of(row["since"]) <= numbers_of(self.version)]


@cache
def minors() -> tuple[str, ...]:
    """The minor releases with a folder, oldest first."""
    names = (entry.name for entry in files(__package__).iterdir() if entry.is_dir() and entry.name[0].isdigit())
    return tuple(sorted(names, key=numbers_of))


@cache
def release(version: str) -> Release:
    """The facts of a version, or of a minor release (`0.18`) at the version that was read.

    Raises UnknownReleaseError: there is no folder for its minor release.
    """
    minor = minor_of(version)
    if minor not in minors():
        raise UnknownReleaseError(f"Kueue {version} is not known; known are {', '.join(minors())}")
    return Release(Release(version, minor).read[-1] if version == minor else version, minor)


@cache
def nearest(version: str) -> Release:
    """The facts of a version as `release` has them; without a folder for its minor release those of the nearest one."""
    minor, known_minors = minor_of(version), minors()
    if version in known_minors:
        return release(version)
    if minor not in known_minors:
        minor = known_minors[0] if numbers_of(version) < numbers_of(known_minors[0]) else known_minors[-1]
    return Release(version, minor)
