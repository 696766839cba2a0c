"""The status of a fleet as plain values, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Final

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.goals import Judged
from kueue_admission.read.lost_capacity import LostCapacity
from kueue_admission.read.printed import Printed, PrintedNode, PrintedWorkload
from kueue_fleet.fleet_file.spending import BudgetUse

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""


@dataclass(frozen=True)
class ClusterObjects:
    """What a cluster's API server listed; or why it did not."""

    role: str
    """manager, worker or standalone."""
    objects: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    """Plural, such as `clusterqueues`, → objects."""
    unreachable: str = ""
    """Why it could not be read; empty: it could."""
    views: Sequence[PrintedWorkload] | None = None
    """Its Workloads again, where their views are kept for more than one look. None: they are not."""

    def knows(self, plural: str) -> bool:
        """Whether it listed the objects of a kind."""
        return plural in self.objects

    def of(self, plural: str) -> Sequence[Printed]:
        """The objects of a kind."""
        return [Printed.of(manifest) for manifest in self.objects.get(plural, ())]

    @property
    def workloads(self) -> Iterator[PrintedWorkload]:
        """Its Workloads; for one look, views of 100,000 take more time to keep than to make again.

        Without variants, whose state and quota are those of the Workload of their job.
        """
        every = map(PrintedWorkload.of, self.objects.get("workloads", ())) if self.views is None else self.views
        return (workload for workload in every if not workload.parent)

    @property
    def nodes(self) -> Sequence[PrintedNode]:
        """Its Nodes."""
        return [PrintedNode.of(node) for node in self.objects.get("nodes", ())]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One cluster."""

    name: str
    role: str
    reachable: bool
    message: str
    """What is wrong with it; empty: nothing."""
    connected: bool | None
    """For a worker: whether the manager says so. None: not known."""
    pending: int | None
    """Workloads without quota. None, here and in the next two: its Workloads could not be read."""
    reserved: int | None
    """Workloads with quota that wait for their checks, or that were evicted or deleted and have not yet ended."""
    admitted: int | None


@dataclass(frozen=True, slots=True)
class Use:
    """Use of one resource on one flavor, in Kubernetes' quantities."""

    flavor: str
    resource: str
    used: str
    """Reserved, borrowed amounts included."""
    nominal: str
    borrowed: str


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One ClusterQueue on one cluster."""

    name: str
    cluster: str
    active: bool
    reason: str
    """Why it is not active, in Kueue's words; the jobs that keep it, if it is deleted."""
    pending: int
    admitted: int
    use: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class PendingWorkload:
    """A workload that is not admitted yet, or that the manager admitted without a worker (NotDispatched)."""

    namespace: str
    name: str
    """Of the job it belongs to."""
    queue: str
    """LocalQueue."""
    cluster: str
    reason: str
    """The dominant reason in Kueue's own tokens."""
    message: str
    waiting_seconds: float
    keeps: str = ""
    """What it has reserved on the manager, where no worker that it was offered to can ever hold it."""


@dataclass(frozen=True, slots=True)
class StuckWorkload:
    """A job that waits for what does not come by itself."""

    cluster: str
    namespace: str
    name: str
    """Of the job; of the ProvisioningRequest's Workload."""
    why: str
    """Reason of the controller's event about it, where there is a controller: StuckEviction, StuckCopy, StuckCheck,
    LostJob, LostEnd or ProvisioningTimeout; NotDispatched, about which there is none."""
    message: str
    seconds: float
    """For how long."""


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """A ProvisioningRequest that has no capacity yet, or lost it."""

    cluster: str
    namespace: str
    name: str
    state: str
    message: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class CalendarStatus:
    """A node pool of a calendar reservation that has not ended."""

    pool: str
    cluster: str
    reservation: str
    starts: str
    ends: str
    """Both as Kubernetes writes times."""
    days_left: int
    """Whole days until it ends; until it begins where `is_open` is false."""
    is_open: bool


@dataclass(frozen=True, slots=True)
class TeamUse:
    """What a team has of the fleet; None: what says so could not be read."""

    team: str
    jobs: int | None
    """Admitted Workloads: those that run, or may; none that the manager admitted without a worker."""
    gpus: int | None
    """GPUs for which its Workloads have quota, those that wait for a check or a worker among them."""
    borrowed: int | None
    """GPUs that its ClusterQueues borrow; None also if other teams use each of them, too."""
    waiting_jobs: int | None
    """Workloads that are not admitted, as in `FleetStatus.pending`."""
    waiting_gpus: int | None


@dataclass(frozen=True, slots=True)
class TeamWeek:
    """What a team used since Monday 00:00 UTC, as far as Workloads still say so."""

    team: str
    gpu_hours: float
    """As pods request them: a share of a GPU counts as one."""
    whole_gpu_hours: float
    """The same in whole GPUs."""
    usd_least: float
    usd_most: float
    """Above `usd_least` where it is not known which flavor a job had."""
    unpriced: Mapping[str, float]
    """Hours that are not in these amounts, by what they are: `GPU hours of a3-highgpu-8g`."""
    not_in_usd: tuple[str, ...]
    """Prices that are not known."""
    started: int
    """Workloads that were admitted in this week."""
    mean_wait_seconds: float | None
    """From their creation to their last admission; None: none was admitted."""
    longest_wait_seconds: float | None
    waiting_seconds: float
    """How long the longest of those that wait now has waited; 0: none waits."""


@dataclass(frozen=True, slots=True)
class QueueTop:
    """GPUs, or chips of TPUs, of a ClusterQueue on a cluster."""

    queue: str
    cluster: str
    resource: str
    quota: int
    """Nominal, over its flavors."""
    used: int
    """Reserved, borrowed ones included."""
    borrowed: int
    free: int
    """Of its quota what it does not use itself; others of its cohort may."""
    pending: int
    """What its Workloads without quota ask for."""


@dataclass(frozen=True, slots=True)
class FlavorTop:
    """GPUs, or chips of TPUs, of a flavor on a cluster, with its nodes."""

    flavor: str
    cluster: str
    resource: str
    capacity: tuple[str, ...]
    """Where its nodes come from; empty: from no pool of the file."""
    nodes: int | None
    """Ready ones; None: nodes could not be read."""
    most_nodes: int | None
    """None: GKE makes its nodes, as on Autopilot, and no file says how many at most."""
    on_nodes: int | None
    """What the ready nodes have."""
    used: int
    """What jobs have quota for, over all queues."""


@dataclass(frozen=True, slots=True)
class Top:
    """Who uses the fleet."""

    fleet: str
    unreachable: Mapping[str, str]
    """Clusters that could not be read, and why."""
    queues: tuple[QueueTop, ...]
    flavors: tuple[FlavorTop, ...]
    teams: tuple[TeamUse, ...]
    weeks: tuple[TeamWeek, ...]
    budgets: tuple[BudgetUse, ...]
    prices: str
    """Of when the prices are."""
    finished: int | None
    """Finished Workloads of teams that are still there; None: not known, like `weeks` and `budgets`."""
    finished_since: str | None
    """When the first of these ended."""
    kept: str | None
    """How long Kueue keeps them; None: as long as their jobs."""
    goals: tuple[Judged, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every cluster could be read."""
        return not self.unreachable

    def as_json(self) -> dict[str, Any]:
        """As one document; times in seconds, names in camelCase."""
        document: dict[str, Any] = _camel({"schemaVersion": SCHEMA_VERSION, **asdict(self)})
        document["goals"] = [goal.to_dict() for goal in self.goals]
        return document


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """A fleet at one moment."""

    fleet: str
    clusters: tuple[ClusterStatus, ...]
    queues: tuple[QueueStatus, ...]
    pending: tuple[PendingWorkload, ...]
    requests: tuple[RequestStatus, ...]
    rotate_by: date | None
    """Day by which the workers' credentials are to be rotated; None: they are not tokens."""
    days_left: int | None
    calendars: tuple[CalendarStatus, ...] = ()
    teams: tuple[TeamUse, ...] = ()
    budgets: tuple[BudgetUse, ...] = ()
    stuck: tuple[StuckWorkload, ...] = ()
    """The longest first."""
    goals: tuple[Judged, ...] = ()
    lost: tuple[LostCapacity, ...] = ()
    """What queues may not use, though the fleet file gives it, because nodes are missing."""

    @property
    def is_complete(self) -> bool:
        """Whether every cluster could be read."""
        return all(cluster.reachable for cluster in self.clusters)

    def as_json(self) -> dict[str, Any]:
        """As one document; times in seconds, names in camelCase."""
        document = {"schemaVersion": SCHEMA_VERSION, **asdict(self)}
        document["rotate_by"] = self.rotate_by.isoformat() if self.rotate_by else None
        camel: dict[str, Any] = _camel(document)
        camel["lost"] = [{**asdict(loss), "amounts": dict(loss.amounts)} for loss in self.lost]
        camel["goals"] = [goal.to_dict() for goal in self.goals]
        return camel


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(key): _camel(item) for key, item in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list | tuple) else value


def _name(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(part.capitalize() for part in rest)
