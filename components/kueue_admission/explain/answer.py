"""What an explanation consists of: plain data, amounts as the core counts them (CPU in thousandths)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kueue_admission.read.dispatch_report import ParsedReport
from kueue_admission.read.lost_capacity import LostCapacity

if TYPE_CHECKING:
    # The controller, which explains too, tries no change.
    from kueue_admission.explain.changes import Change


@dataclass(frozen=True, slots=True)
class Request:
    """What one pod set asks for in total."""

    pod_set: str
    count: int
    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Holding:
    """What the workload itself holds of one flavor."""

    flavor: str
    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """A workload that holds some of a flavor's resource. `queue` is its ClusterQueue."""

    workload: str
    queue: str
    priority: int
    amount: int


@dataclass(frozen=True, slots=True)
class ResourceFigures:
    """The quota of one resource in one flavor, as the workload's ClusterQueue sees it.

    `nominal` None: the queue has no quota for it; `borrowing_limit` None: no limit. `capacity` is what the queue could
    have if no other workload used any, `free` what it could have now, `missing` how much more is asked for than that.
    `holders` are the largest, of `holder_count`, in the whole cohort tree.
    """

    resource: str
    asked: int
    nominal: int | None
    borrowing_limit: int | None
    used_by_queue: int
    used_in_cohort: int | None
    capacity: int
    free: int
    missing: int
    holders: tuple[Holder, ...] = ()
    holder_count: int = 0


@dataclass(frozen=True, slots=True)
class Spared:
    """Workloads of one ClusterQueue that hold what is missing and are not preempted, for one reason.

    `why` is a word for programs, `reason` the sentence; `workloads` are the first of `count`.
    """

    queue: str
    why: str
    reason: str
    workloads: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class FlavorFigures:
    """One flavor of the ClusterQueue: what speaks against it, in Kueue's sentences, and its quotas.

    `tried` is false where the search stopped before it. `is_of_workers`: jobs in it run on worker clusters, so that its
    quota stands for that of the workers' flavors.
    """

    flavor: str
    tried: bool
    against: tuple[str, ...]
    resources: tuple[ResourceFigures, ...]
    spared: tuple[Spared, ...] = ()
    is_of_workers: bool = False


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that cannot take a pod, for one reason; `nodes` are the first of `count`, `why` is a word for programs."""

    why: str
    reason: str
    nodes: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class DomainRoom:
    """How many pods fit into a domain of the wanted level: now, and without the workloads that Kueue placed there."""

    domain: str
    pods: int
    empty: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Why a pod set cannot be placed in the topology of a flavor.

    `mode` is `required`, `preferred` or empty, `level` the wanted level; `room_level` is that of `rooms`, with slices
    their own. `nodes` is how many nodes have the flavor's `node_labels`; None: no node at all is among the objects.
    `unseen` are nodes that pods cannot use, of
    which Kueue counts the room: it looks at taints and selectors only where the lowest level is the host. `rooms` are
    the largest of `domains` domains.
    """

    pod_set: str
    count: int
    flavor: str
    topology: str
    levels: tuple[str, ...]
    mode: str
    level: str
    room_level: str
    slices: str
    node_labels: str
    nodes: int | None
    lacking: tuple[NodeGroup, ...]
    unseen: tuple[NodeGroup, ...]
    rooms: tuple[DomainRoom, ...]
    domains: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending workload ahead of the one that is explained."""

    workload: str
    priority: int
    reason: str


@dataclass(frozen=True, slots=True)
class Position:
    """The place among the pending workloads of the ClusterQueue, from 1; `ahead` lists the first ones."""

    place: int
    of: int
    strategy: str
    ahead: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckStanding:
    """An AdmissionCheck of the workload that is not Ready; `undo` says what becomes of one that failed."""

    name: str
    controller: str
    state: str
    message: str
    undo: str


@dataclass(frozen=True, slots=True)
class Link:
    """An object below the ClusterQueue that is missing or not Active, or names one that is.

    `reason` is Kueue's, or `NotFound`, `NoParameters`, `Unknown`, or empty for a MultiKueueConfig, which has no
    conditions; `undo` is empty where the cause is the next link.
    """

    kind: str
    name: str
    reason: str
    message: str
    undo: str = ""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A workload that stands in the way of one for which there is room, in the next cycles. `queue`: its ClusterQueue.

    `does`, a word for programs: `getsQuota`, `holdsBack` (it finds nothing to preempt), `preempts` (it takes what is
    free beside what it preempts), `preemptsTheSame`, `isHead` (of the same queue, and stays that), `podsNotReady`.
    `amounts` are what it gets or holds back as flavor, resource and amount, `reason` is why it waits itself, in Kueue's
    token. `first` is why its turn comes first: `borrowing` (it borrows less), `priority`, `age`, `fairSharing`,
    `itsQueue` (both wait in one queue).
    """

    workload: str
    queue: str
    priority: int
    does: str
    amounts: tuple[tuple[str, str, int], ...] = ()
    reason: str = ""
    first: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """Kueue's condition QuotaReserved=False of the workload.

    `is_current`: nothing in the input is newer, so that Kueue decided on what the input shows. `agrees` is false where
    it refuses what the core would admit, or names another reason.
    """

    reason: str
    message: str
    is_current: bool
    agrees: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why `workload` is in `state`, which is `Absent` on a cluster without its queue.

    `reason` is Kueue's token, None where Kueue has no Workload to give one for.
    """

    workload: str
    cluster: str
    state: str
    reason: str | None
    message: str
    headline: str
    local_queue: str = ""
    cluster_queue: str = ""
    cohort: str = ""
    priority: int = 0
    evicted_for: str = ""
    """Why it was evicted before, in Kueue's tokens; empty if it was not."""
    evicted_message: str = ""
    replaces: str = ""
    """The slice of the same elastic job whose place it takes once it has quota for what it needs beyond that one."""
    requests: tuple[Request, ...] = ()
    holdings: tuple[Holding, ...] = ()
    flavors: tuple[FlavorFigures, ...] = ()
    placements: tuple[Placement, ...] = ()
    checks: tuple[CheckStanding, ...] = ()
    links: tuple[Link, ...] = ()
    """What is missing or not Active below its ClusterQueue, each with its cause behind it."""
    nodes: tuple[str, ...] = ()
    """What its flavors' nodes are to its pods beyond what Kueue counts, more of it by who knows their provider."""
    goals: tuple[str, ...] = ()
    """How its wait compares with goals, by who knows them; else nothing."""
    lost: tuple[LostCapacity, ...] = ()
    """What its ClusterQueue's flavors lost, where their quotas follow capacity and it waits for quota."""
    position: Position | None = None
    victims: tuple[Holder, ...] = ()
    turns: tuple[str, ...] = ()
    """The workloads that get quota in the next cycles before it is decided."""
    blockers: tuple[Blocker, ...] = ()
    """Who stands in its way though there is room for it now."""
    written: Written | None = None
    """What Kueue itself wrote last, where the input has it."""
    equal_before: str = ""
    """An equal workload that failed, for which Kueue has not looked at this one, and written nothing on it."""
    changes: tuple[Change, ...] = ()
    next_step: str = ""
    is_there: bool = True
    """Whether it is on the cluster; if not, this is what would happen to it there."""
    is_copy: bool = False
    """Whether MultiKueue made it on this worker, from one of the manager."""
    is_unplaceable: bool = False
    """Whether no worker can ever hold it."""
    dispatch: ParsedReport | None = None
    """What the fleet's own dispatcher decided last about it, and why; None if nothing."""
    not_known: tuple[str, ...] = ()
    """What could not be read of the cluster, and may change this."""
    code: str | None = None
    """Of `known_messages`: what Kueue says, or the headline, where Kueue says nothing."""
