"""Where the nodes of a pool come from: reserved, on demand, spot, Dynamic Workload Scheduler (DWS).

Frozen models with the rules of one entry alone; those between pools and reservations are in `check.node_pools` and
`check.reservations`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import AtLeastOne, Count, Flag, RuledModel, SpecModel, Text
from kueue_admission.kernel.described import Hint
from kueue_admission.kernel.duration import DurationField, duration
from kueue_admission.kernel.form_rules import NEEDED, OUT_OF_RANGE, listed_twice
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.timestamp import TimestampField
from kueue_fleet.fleet_file.model.gcp_names import Project, ProjectId, Region, ResourceName, Zone
from kueue_fleet.fleet_file.model.tagged import Tagged
from kueue_fleet.fleet_file.rules.clusters import COMMITMENT, UNUSUAL_DURATION

COST_CONFIRMATION: Final = "I-accept-the-cost"
"""What `confirm` of a commitment has to say: it cannot be cancelled."""


class Reserved(Tagged):
    """Nodes from one specific reservation."""

    type: Literal["reserved"] = "reserved"
    """Always `reserved`."""
    reservation: ResourceName = Field(kw_only=False)
    """Name of the reservation; one of this file's, or one that exists."""
    project: ProjectId | None = None
    """Project that shares the reservation; default: the cluster's own."""
    block: ResourceName | None = None
    """A block of the reservation; the pool must then have `zones`."""
    sub_block: ResourceName | None = None
    """A sub-block of the block."""

    def own_problems(self) -> Iterator[Problem]:
        """A sub-block is in a block."""
        if self.sub_block is not None and self.block is None:
            yield NEEDED.at("subBlock", f"{self.sub_block} is set, but no block", "set block too, or remove subBlock")


class OnDemand(Tagged):
    """Nodes at the list price, as long as there are any."""

    type: Literal["onDemand"] = "onDemand"
    """Always `onDemand`."""
    affinity: Literal["Any"] | None = None
    """`Any`: nodes first take machines of the reservations that any machine may use, of the project, then of those that
    are shared with it (ANY_RESERVATION); default: not said."""


class Spot(Tagged):
    """Cheap nodes that Google reclaims when it needs them, with 30 seconds' notice."""

    type: Literal["spot"] = "spot"
    """Always `spot`."""


class FlexStart(Tagged):
    """Nodes that DWS provides when it has them, for a limited time."""

    type: Literal["flexStart"] = "flexStart"
    """Always `flexStart`."""
    queued_provisioning: Flag = True
    """Whether nodes come only for ProvisioningRequests, all of a request's at once; default true."""
    max_run_duration: DurationField = duration("168h")
    """How long a node lives, at most seven days; default 168h."""


class Calendar(Tagged):
    """Nodes from a reservation that DWS Calendar grants for a future time."""

    type: Literal["calendar"] = "calendar"
    """Always `calendar`."""
    reservation: ResourceName = Field(kw_only=False)
    """Name of the future reservation; one of `futureReservations`, or one that was requested elsewhere."""
    start: TimestampField
    """When it begins."""
    duration: DurationField
    """How long it lasts; at the end Google removes the nodes and the reservation."""
    active: Flag | None = None
    """Whether the pool has nodes and its flavor quota; default: from start to end, at the time of each `pulumi up`."""

    @property
    def end(self) -> datetime:
        """When it ends."""
        return self.start + timedelta(microseconds=self.duration.nanoseconds // 1000)


Capacity = Annotated[Reserved | OnDemand | Spot | FlexStart | Calendar, Field(discriminator="type")]
"""Where nodes come from: one of the classes, told apart by `type`."""


class AttachedAccelerator(SpecModel):
    """GPUs that are attached to each machine."""

    type: Text
    """Such as nvidia-tesla-t4."""
    count: AtLeastOne
    """GPUs on each machine."""


class ReservationEntry(RuledModel):
    """A specific reservation, created by this fleet. It costs as much as its machines, used or not."""

    name: ResourceName = Field(kw_only=False)
    """Name of the reservation in Google Cloud."""
    zone: Zone
    """The zone that its machines are in."""
    machine_type: Text
    """Type of its machines."""
    count: AtLeastOne
    """Machines."""
    accelerator: AttachedAccelerator | None = None
    """GPUs attached to each machine, for N1 machines; others come with theirs."""
    local_ssd_count: Count = 0
    """Local SSDs of 375 GB on each machine, beyond those that come with it."""
    shared_with: ListOfText[Project] = ()
    """Numbers of other projects that may use it; with an id, later changes of the list are not made, since Google
    answers with numbers.
    """
    purpose: Literal["primary", "backup"] = "primary"
    """primary: for daily use; backup: for times when other machines are out. `check` then warns if its pool's flavor
    does not come after others in a queue, with fallback."""

    def own_problems(self) -> Iterator[Problem]:
        """Projects once each."""
        yield from self.listed_once("shared_with", "project")


class FutureReservationEntry(RuledModel):
    """A request to DWS Calendar for machines at a future time."""

    name: ResourceName = Field(kw_only=False)
    """Name of the request, and of the resulting reservation."""
    zone: Zone
    """Zone of the machines."""
    machine_type: Text
    """Type of the machines."""
    count: AtLeastOne
    """Machines."""
    start: TimestampField
    """When the machines are needed."""
    duration: DurationField
    """For how long."""
    planning_status: Literal["DRAFT", "SUBMITTED"] = "DRAFT"
    """DRAFT (default): not requested yet; SUBMITTED: requested, and you pay for what Google grants."""
    shared_with: ListOfText[Project] = ()
    """Numbers of other projects that may use it; with an id, later changes of the list are not made, since Google
    answers with numbers.
    """

    @property
    def end(self) -> datetime:
        """When the machines go."""
        return self.start + timedelta(microseconds=self.duration.nanoseconds // 1000)

    def own_problems(self) -> Iterator[Problem]:
        """Some time; projects once each.

        Source: https://cloud.google.com/compute/docs/instances/create-future-reservations-calendar-mode
        """
        yield from self.listed_once("shared_with", "project")
        if self.duration.nanoseconds <= 0:
            yield OUT_OF_RANGE.at("duration", f"{self.duration} is not longer than 0", "write how long, such as 336h")
        elif not 24 * 3600 <= self.duration.seconds <= 90 * 24 * 3600:
            wrong = f"{self.duration}, but DWS Calendar reserves for 1 to 90 days"
            yield UNUSUAL_DURATION.at("duration", wrong, "write 24h to 2160h, or make sure that Google grants it")


class CommitmentResource(RuledModel):
    """An amount of one resource that is paid for the whole term."""

    type: Literal["VCPU", "MEMORY", "ACCELERATOR", "LOCAL_SSD"]
    """What is committed to."""
    amount: AtLeastOne
    """vCPUs, MB of memory, GPUs, or GB of local SSD, as the API counts them."""
    accelerator_type: Text | None = None
    """The kind of GPU, for ACCELERATOR."""

    def own_problems(self) -> Iterator[Problem]:
        """GPUs, and only they, are of a kind."""
        if (self.type == "ACCELERATOR") != (self.accelerator_type is not None):
            has_no_accelerator = self.accelerator_type is None
            yield NEEDED.at(
                "acceleratorType",
                f"not set, but type is {self.type}" if has_no_accelerator else f"set, but type is {self.type}",
                "set it, such as nvidia-l4" if has_no_accelerator else "remove it, or set type to ACCELERATOR",
            )


class CommitmentEntry(RuledModel):
    """A committed-use contract. It cannot be cancelled, nor deleted."""

    name: ResourceName = Field(kw_only=False)
    """Name of the commitment in Google Cloud."""
    region: Annotated[Region, Hint("add a region of Google Cloud, such as region: europe-west4")]
    """The region that it holds in."""
    plan: Literal["TWELVE_MONTH", "THIRTY_SIX_MONTH"]
    """How long it is paid: one year or three."""
    type: Text = "GENERAL_PURPOSE"
    """Family of machines, as the API has it, such as GRAPHICS_OPTIMIZED (G2) or ACCELERATOR_OPTIMIZED (A2)."""
    resources: Annotated[ListOf[CommitmentResource], Field(min_length=1)]
    """What is paid for."""
    reservations: ListOfText[Text] = ()
    """Reservations of this file that it pays for; GPUs and local SSDs need one."""
    confirm: Text | None = None
    """Must be I-accept-the-cost."""

    def own_problems(self) -> Iterator[Problem]:
        """Confirmed; each resource once; GPUs with a reservation, and one reservation at most."""
        yield from self._confirmed()
        seen_pairs: set[tuple[str, str | None]] = set()
        for index, resource in enumerate(self.resources):
            key = (resource.type, resource.accelerator_type)
            if key in seen_pairs:
                yield listed_twice(f"resources[{index}]", resource.type, "resource")
            seen_pairs.add(key)
        bound = [resource.type for resource in self.resources if resource.type in ("ACCELERATOR", "LOCAL_SSD")]
        if bound and not self.reservations:
            yield COMMITMENT.at(
                "reservations",
                f"none, but {bound[0]} can be committed only together with a reservation of it",
                "name the reservations that hold these machines",
            )
        if len(self.reservations) > 1:
            yield COMMITMENT.at(
                "reservations",
                f"are {len(self.reservations)}, but Google's provider takes one for a commitment",
                "split the commitment",
            )

    @where_read
    def _confirmed(self) -> Iterator[Problem]:
        if self.confirm != COST_CONFIRMATION:
            yield COMMITMENT.at(
                "confirm",
                f'"{self.confirm}" is given' if self.confirm else "is missing, and a commitment cannot be cancelled",
                f"write confirm: {COST_CONFIRMATION} once whoever pays has agreed",
            )
