"""How the simulated cloud of a rehearsal behaves: config `kueue-fleet:rehearsal` of a stack.

A real `pulumi up` does not read it; `kueue_rehearsal.simulation_settings` does, while a rehearsal runs.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from kueue_admission.kernel.base import Count, Number, RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import WRONG_ORDER, WRONG_TYPE
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.model.gcp_names import Zone
from kueue_fleet.fleet_file.model.zone_rules import zone_problems
from kueue_fleet.fleet_file.rules.clusters import UNKNOWN_MACHINE
from kueue_fleet.gke.machines import machine_type

_Seconds = Annotated[Number, Field(ge=0)]
_Percent = Annotated[Count, Field(le=100)]


class StockRange(RuledModel):
    """GPUs that DWS can give out at once, changing between two amounts."""

    low: Count
    """GPUs of each kind when there are fewest."""
    high: Count
    """GPUs of each kind when there are most."""

    def own_problems(self) -> Iterator[Problem]:
        """The amounts in order."""
        if self.low > self.high:
            yield WRONG_ORDER.at("low", f"{self.low} is more than high, {self.high}", "write a smaller one")


class NodesSection(SpecModel):
    """How fast nodes come and go; a real GPU node needs about 90 s."""

    provision_seconds: _Seconds = 1.0
    """From the first sight of a pod that fits nowhere to its node; default 1."""
    idle_seconds: _Seconds = 30.0
    """How long a node stays empty before it is removed; default 30. GKE waits 10 minutes."""


class SpotSection(SpecModel):
    """How often Spot nodes are reclaimed at random."""

    reclaims_per_hour: _Seconds = 0.0
    """Of each Spot node, on average; default 0: only when asked for."""


class DwsSection(RuledModel):
    """What DWS has, and how it answers. Times in seconds; amounts in GPUs of each region and accelerator."""

    low: Count = 0
    """Fewest GPUs of each kind that a region has; default 0."""
    high: Count = 8
    """Most GPUs of each kind that a region has; default 8."""
    interval_seconds: Annotated[Number, Field(gt=0)] = 15.0
    """How often the stock changes; default 15."""
    stock: Mapping[Text, StockRange] = Field(default_factory=dict)
    """GPUs to give out at once, by `region/accelerator`, `region` or `accelerator`; the first that fits counts."""
    accept_seconds: _Seconds = 0.5
    """From a request to its acceptance; default 0.5."""
    least_wait_seconds: _Seconds = 1.0
    """Shortest wait from acceptance to provisioning, even with enough stock; default 1."""
    most_wait_seconds: _Seconds = 4.0
    """Longest wait of a request while there is enough stock; default 4."""
    booking_seconds: _Seconds = 600.0
    """How long idle nodes are kept for a request; default 600, as GKE does."""
    idle_seconds: _Seconds = 5.0
    """How long nodes stay after a request's pods; default 5. GKE waits for the booking's end, then 10 minutes."""
    fail_percent: _Percent = 0
    """Share of requests that end as Failed; default 0."""
    fail_percent_in: Mapping[Text, _Percent] = Field(default_factory=dict)
    """The same for single regions."""
    revoke_percent: _Percent = 0
    """Share of requests whose nodes are taken away again; default 0."""
    revoke_seconds: _Seconds = 10.0
    """How long after their arrival such nodes are taken away; default 10."""

    def own_problems(self) -> Iterator[Problem]:
        """Limits in order."""
        yield from self._in_order("low", "high", "low", "high")
        yield from self._in_order("least_wait_seconds", "most_wait_seconds", "leastWaitSeconds", "mostWaitSeconds")

    @where_read
    def _in_order(self, low: str, high: str, low_alias: str, high_alias: str) -> Iterator[Problem]:
        least, most = getattr(self, low), getattr(self, high)
        if least > most:
            wrong = f"{least:g} is more than {high_alias}, {most:g}"
            yield WRONG_ORDER.at(low_alias, wrong, "write a smaller one, or both")


class ReservationSection(RuledModel):
    """Machines that somebody else has reserved."""

    name: Text
    """Name that node pools give."""
    zone: Zone
    """Its zone."""
    machine_type: Text
    """Type of its machines."""
    count: Count
    """Machines."""

    def own_problems(self) -> Iterator[Problem]:
        """A zone that exists; machines that are known."""
        yield from zone_problems("zone", self.zone)
        if machine_type(self.machine_type) is None:
            yield UNKNOWN_MACHINE.at(
                "machineType", f"{self.machine_type} is not in the catalogue", "make sure that it exists"
            )


class RehearsalSection(SpecModel):
    """The value of `kueue-fleet:rehearsal`. What is left out keeps its default."""

    seed: Count = 1
    """Seed of everything that is drawn: DWS's stock and waits, reclaimed nodes; default 1."""
    nodes: NodesSection = Field(default_factory=NodesSection)
    """How fast nodes come and go; real GPU nodes need about 90 s."""
    spot: SpotSection = Field(default_factory=SpotSection)
    """How often Spot nodes are taken back."""
    dws: DwsSection = Field(default_factory=DwsSection)
    """What DWS has, and how it answers."""
    reservations: ListOf[ReservationSection] = ()
    """Reservations that exist besides the stack's own."""


def read_rehearsal_section(data: Any) -> tuple[RehearsalSection | None, list[Problem]]:
    """The section in the config's value `data`, and every problem; paths are relative to the section.

    Where a problem is an error, only a part of the section may have been read.
    """
    if not isinstance(data, Mapping):
        return None, [WRONG_TYPE.at("", "is not a map of fields", "write seed:, nodes:, spot:, dws: below it")]
    section, problems = read_form(RehearsalSection, data)
    return section, [*problems, *(problems_in(section) if section is not None else ())]
