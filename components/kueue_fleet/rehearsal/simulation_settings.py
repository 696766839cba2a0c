"""How the simulated cloud of a rehearsal behaves: config `kueue-fleet:rehearsal` of a stack.

In: the config's value. Out: `SimulationSettings` for the services of each cluster, and `reservations` that exist
besides those that the stack makes. The value is checked like the fleet is: all problems at once, each with its path.
A real `pulumi up` does not read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from kueue_fleet.rehearsal.dws_decisions import DwsSettings
from kueue_fleet.rehearsal.node_pool_rules import Reservation
from kueue_fleet.rehearsal.paths import RehearsalError
from kueue_fleet.rehearsal.spot import SpotSettings
from kueue_fleet.spec.base import Count, Number, SpecModel, Text
from kueue_fleet.spec.messages import errors_in, explain

CONFIG_KEY = "kueue-fleet:rehearsal"
"""Key of the stack's config with the settings of a rehearsal."""

_Seconds = Annotated[Number, Field(ge=0)]
_Percent = Annotated[Count, Field(le=100)]


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How fast the simulated cloud is. Times in seconds; a real one needs about 90 s for a GPU node."""

    provision_seconds: float = 1.0
    """From the first sight of a pod that fits nowhere to its node."""
    idle_seconds: float = 30.0
    """How long a node stays empty before it is removed; GKE waits 10 minutes."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How the simulated cloud behaves."""

    nodes: NodeSettings = field(default_factory=NodeSettings)
    dws: DwsSettings = field(default_factory=DwsSettings)
    spot: SpotSettings = field(default_factory=SpotSettings)
    reservations: tuple[Reservation, ...] = ()
    """Those that exist besides the stack's own."""


class StockRange(SpecModel):
    """GPUs that DWS can give out at once, changing between two amounts."""

    low: Count
    """GPUs of each kind when there are fewest."""
    high: Count
    """GPUs of each kind when there are most."""


class NodesSection(SpecModel):
    """`nodes`: see NodeSettings."""

    provision_seconds: _Seconds | None = None
    """From the first sight of a pod that fits nowhere to its node; default 1."""
    idle_seconds: _Seconds | None = None
    """How long a node stays empty before it goes; default 30."""


class SpotSection(SpecModel):
    """`spot`: see SpotSettings."""

    reclaims_per_hour: _Seconds | None = None
    """Of each Spot node, on average; default 0: only when asked for."""


class DwsSection(SpecModel):
    """`dws`: see DwsSettings."""

    low: Count | None = None
    """Fewest GPUs of each kind that a region has."""
    high: Count | None = None
    """Most GPUs of each kind that a region has."""
    interval_seconds: Annotated[Number, Field(gt=0)] | None = None
    """How often the stock changes."""
    stock: Mapping[Text, StockRange] | None = None
    """By `region/accelerator`, `region` or `accelerator`; the first that fits counts."""
    accept_seconds: _Seconds | None = None
    """From a request to its acceptance."""
    least_wait_seconds: _Seconds | None = None
    """Shortest wait of a request, even with enough stock."""
    most_wait_seconds: _Seconds | None = None
    """Longest wait of a request while there is enough stock."""
    booking_seconds: _Seconds | None = None
    """How long idle nodes are kept for a request."""
    idle_seconds: _Seconds | None = None
    """How long nodes stay after a request's pods."""
    fail_percent: _Percent | None = None
    """Share of requests that end as Failed."""
    fail_percent_in: Mapping[Text, _Percent] | None = None
    """The same for single regions."""
    revoke_percent: _Percent | None = None
    """Share of requests whose nodes are taken away again."""
    revoke_seconds: _Seconds | None = None
    """How long after their arrival such nodes are taken away."""


class ReservationSection(SpecModel):
    """One of `reservations`: machines that somebody else has reserved."""

    name: Text
    """Name that node pools give."""
    zone: Text
    """Its zone."""
    machine_type: Text
    """Type of its machines."""
    count: Count
    """Machines."""


class RehearsalConfig(SpecModel):
    """The value of `kueue-fleet:rehearsal`. What is left out keeps its default."""

    seed: Count | None = None
    """Of everything that is drawn: DWS's stock and waits, reclaimed nodes."""
    nodes: NodesSection = Field(default_factory=NodesSection)
    """How fast nodes come and go."""
    spot: SpotSection = Field(default_factory=SpotSection)
    """How often Spot nodes are taken back."""
    dws: DwsSection = Field(default_factory=DwsSection)
    """What DWS has, and how it answers."""
    reservations: tuple[ReservationSection, ...] = ()
    """Reservations that exist besides the stack's own."""


def parse_settings(data: Any, source: str) -> SimulationSettings:
    """The settings in the config's value `data`; `source` is the file it came from, for messages.

    Raises RehearsalError with every problem.
    """
    if data is None:
        return SimulationSettings()
    where = f"{source}: config.{CONFIG_KEY}"
    if not isinstance(data, Mapping):
        raise RehearsalError(f"{where}: is not a map of fields; write seed:, nodes:, spot:, dws: below it")
    try:
        config = RehearsalConfig.model_validate(data)
    except ValidationError as error:
        problems = [one for detail in errors_in(error) for one in explain(detail, RehearsalConfig, data)]
        raise RehearsalError("\n".join(f"{where}.{problem}" for problem in problems)) from None
    problems_of_ranges = list(_ranges(config.dws))
    if problems_of_ranges:
        raise RehearsalError("\n".join(f"{where}.dws.{problem}" for problem in problems_of_ranges))
    return _settings(config)


def _ranges(dws: DwsSection) -> list[str]:
    plain = DwsSettings()
    pairs = [("low", "high", dws.low, dws.high, plain.low, plain.high)]
    pairs.append(
        (
            "leastWaitSeconds",
            "mostWaitSeconds",
            *(dws.least_wait_seconds, dws.most_wait_seconds, plain.least_wait_seconds, plain.most_wait_seconds),
        )  # type: ignore[arg-type]
    )
    found = []
    for low_name, high_name, low, high, plain_low, plain_high in pairs:
        least, most = plain_low if low is None else low, plain_high if high is None else high
        if least > most:
            found.append(f"{low_name}: {least:g} is more than {high_name}, {most:g}; write a smaller one, or both")
    for place, each in (dws.stock or {}).items():
        if each.low > each.high:
            found.append(f"stock[{place}].low: {each.low} is more than high, {each.high}; write a smaller one")
    return found


def _settings(config: RehearsalConfig) -> SimulationSettings:
    def given(section: SpecModel) -> dict[str, Any]:
        return {key: getattr(section, key) for key in section.model_fields_set if getattr(section, key) is not None}

    dws = given(config.dws)
    if "stock" in dws:
        dws["stock"] = {place: (each.low, each.high) for place, each in dws["stock"].items()}
    if "fail_percent_in" in dws:
        dws["fail_percent_in"] = dict(dws["fail_percent_in"])
    seed: dict[str, Any] = {} if config.seed is None else {"seed": config.seed}
    return SimulationSettings(
        nodes=replace(NodeSettings(), **given(config.nodes)),
        dws=replace(DwsSettings(), **seed, **dws),
        spot=replace(SpotSettings(), **seed, **given(config.spot)),
        reservations=tuple(Reservation(one.name, one.zone, one.machine_type, one.count) for one in config.reservations),
    )


class SettingsFile:
    """The settings of a running rehearsal: a file that is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._settings = SimulationSettings()

    def current(self) -> SimulationSettings:
        """The settings now; the defaults where there is no file. Raises RehearsalError for one that is wrong."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return self._settings
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._settings = parse_settings(json.loads(self._path.read_text()), str(self._path))
            self._stamp = stamp
        return self._settings
