"""The quotas of a fleet that its controller writes: where they hold, and the nodes and times that they follow."""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from kueue_admission.api import ResourceGroup
from kueue_admission.kernel.base import Count, Flag, SpecModel, Text, Whole
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.names import GPU_RESOURCE
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.kernel.timestamp import Timestamp
from kueue_fleet.settings.quota_sums import lent, placed_groups, summed_groups, with_former
from kueue_fleet.settings.quotas import FleetResourceGroup, ManagerQueue, groups_in, windows_of
from kueue_fleet.settings.windows import CalendarWindow, names_open


class PoolCapacity(SpecModel):
    """What a node pool can hold on a cluster."""

    name: Text
    """Name of the pool."""
    most_nodes: Count = 0
    """The most nodes it ever has."""
    sized: Flag = True
    """Whether the file says how many nodes it has."""
    autoscaled: Flag = False
    """Whether nodes come by themselves."""
    slice_nodes: Count = 1
    """Nodes of one TPU slice; 1 without TPUs."""
    reservation: Text | None = None
    """The specific reservation that its nodes are from."""
    allocatable: Mapping[Text, Whole] | None = None
    """What pods may ask of one node: milli-CPUs, bytes, pieces; None: its machine type is not known."""
    devices: Count = 0
    """GPUs that pods can request of one node, where the rest is not known."""
    closed: Flag = False
    """Whether it waits for its calendar reservation; with `begin` and `end`, as long as nobody looks at a clock."""
    begin: Timestamp | None = None
    """When its calendar reservation begins, where that opens the pool."""
    end: Timestamp | None = None
    """When that ends."""

    def at(self, now: datetime | None) -> Self:
        """The pool as it is at `now`; None: while it is open, if it ever is by its dates."""
        if self.begin is None or self.end is None:
            return self
        return self.model_copy(update={"closed": now is not None and not self.begin <= now < self.end})

    @property
    def is_sized(self) -> bool:
        """Whether it is known how many nodes it has."""
        return self.closed or self.sized

    @property
    def grows(self) -> bool:
        """Whether nodes may come by themselves now."""
        return self.autoscaled and not self.closed

    @property
    def max_nodes(self) -> int:
        """The most nodes it has as it is now."""
        return 0 if self.closed else self.most_nodes

    def on_node(self, resource: str) -> int | None:
        """What pods may ask of one node; None: not known."""
        if self.allocatable is not None:
            return self.allocatable.get(resource)
        return self.devices or None if resource == GPU_RESOURCE else None


class FlavorNodes(SpecModel):
    """A flavor on a cluster."""

    name: Text
    """Name of the flavor."""
    pools: tuple[Text, ...] = ()
    """The pools whose nodes it leads to; none where they are not the fleet's."""
    labels: Mapping[Text, Text] = Field(default_factory=dict)
    """Labels of its nodes, where no pools are known."""
    waits: Flag = False
    """Whether its quota is 0 while a pool is closed."""


class ClusterCapacity(SpecModel):
    """A cluster, as far as quotas on it depend on nodes."""

    name: Text
    """Name of the cluster."""
    runs_jobs: Flag
    """Whether jobs run there."""
    flavors: tuple[FlavorNodes, ...] = ()
    """Its flavors, in the order of the file."""
    pools: tuple[PoolCapacity, ...] = ()
    """The file's node pools there."""
    cohorts: tuple[Text, ...] = ()
    """The cohorts that it needs, parents first."""
    file: Mapping[str, Any] = Field(default_factory=dict)
    """The cluster as the fleet file has it, for `import`."""

    def pool(self, name: str) -> PoolCapacity:
        """The pool of that name. Raises StopIteration."""
        return next(pool for pool in self.pools if pool.name == name)

    def is_closed(self, flavor: str) -> bool:
        """Whether the flavor waits for the calendar reservation of its pool."""
        return any(
            self.pool(name).closed
            for flavor_there in self.flavors
            if flavor_there.name == flavor and flavor_there.waits
            for name in flavor_there.pools
        )


class Lender(SpecModel):
    """A queue or cohort that lends to a queue on its workers."""

    name: Text
    """Name of the ClusterQueue, or of the Cohort."""
    cohort: Flag = False
    """Whether it is a Cohort."""
    flavors: Mapping[Text, tuple[Text, ...]]
    """By worker, the flavors of which it lends."""


class EntryQuotas(SpecModel):
    """Quotas of a Cohort itself, or of a ClusterQueue."""

    name: Text
    """Name of the object."""
    resource_groups: ListOf[FleetResourceGroup] = ()
    """As in the fleet file."""


class QueueQuotas(EntryQuotas):
    """Quotas of a ClusterQueue."""

    cohort_name: Text | None = None
    """Its cohort."""
    quota_follows: Text = "file"
    """As in the fleet file: `file` or `capacity`."""
    slack: Flag = False
    """As in the fleet file."""
    manager: ManagerQueue | None = None
    """As in the fleet file."""
    clusters: tuple[Text, ...] = ()
    """Where it has quotas of its own, in the order of the file."""
    workers: tuple[Text, ...] = ()
    """Where the manager dispatches its jobs, most preferred first; none: it does not."""
    manager_flavors: Mapping[Text, Mapping[Text, Text]] = Field(default_factory=dict)
    """By worker, the manager's flavor for each of its flavors."""
    lenders: tuple[Lender, ...] | None = None
    """Who lends to it, where the manager's copy may borrow no more than that; None: it has no such limit."""

    @property
    def flavor_names(self) -> Set[str]:
        """Its flavors."""
        return {flavor.name for group in self.resource_groups for flavor in group.flavors}

    @property
    def windows(self) -> tuple[str, ...]:
        """The windows in which a quota of it is another one."""
        return windows_of(self.resource_groups)


class ManagerSums(SpecModel):
    """How the manager's quotas are derived."""

    headroom_percent: Count = 0
    """What they have beyond the workers' sum, in percent."""
    manager_flavor_name: Text
    """As in the fleet file."""
    former_manager_flavor_names: tuple[Text, ...] = ()
    """As in the fleet file."""


class FleetQuotas(SpecModel):
    """The fleet as far as quotas depend on it."""

    manager: Text | None = None
    """Name of the manager, if there is one."""
    clusters: tuple[ClusterCapacity, ...]
    """Every cluster, in the order of the file."""
    cohorts: tuple[EntryQuotas, ...] = ()
    """The cohorts."""
    cluster_queues: tuple[QueueQuotas, ...] = ()
    """The queues, in the order of the file."""
    multi_kueue: ManagerSums | None = None
    """Where there is a manager."""
    reservations: Mapping[Text, Count] = Field(default_factory=dict)
    """Machines of the file's reservations, by name."""
    windows: ListOf[CalendarWindow] = ()
    """The windows in which a quota is another one."""

    def cluster(self, name: str) -> ClusterCapacity:
        """The cluster of that name. Raises StopIteration."""
        return next(cluster for cluster in self.clusters if cluster.name == name)

    def queue(self, name: str) -> QueueQuotas | None:
        """The queue of that name, if there is one."""
        return next((queue for queue in self.cluster_queues if queue.name == name), None)

    def having(self, groups: Mapping[str, Sequence[FleetResourceGroup]]) -> Self:
        """The fleet with other quotas of these queues."""
        queues = tuple(
            queue.model_copy(update={"resource_groups": groups[queue.name]}) if queue.name in groups else queue
            for queue in self.cluster_queues
        )
        return self.model_copy(update={"cluster_queues": queues})

    def at(self, now: datetime) -> Self:
        """The fleet as it is at `now`, by the dates of its pools and by its windows."""
        return self.pools_at(now).within(names_open(self.windows, now))

    def pools_at(self, now: datetime | None) -> Self:
        """The fleet with its pools as they are at `now`; None: with all open that ever are by their dates."""
        clusters = tuple(
            cluster.model_copy(update={"pools": tuple(pool.at(now) for pool in cluster.pools)})
            for cluster in self.clusters
        )
        return self.model_copy(update={"clusters": clusters})

    def within(self, windows: Set[str]) -> Self:
        """The fleet while these windows are open."""
        queues = (queue for queue in self.cluster_queues if windows & set(queue.windows))
        return self.having({queue.name: groups_in(queue.resource_groups, windows) for queue in queues})

    def clusters_written(self, queue: QueueQuotas) -> tuple[str, ...]:
        """Where the controller writes the queue's quotas; on the manager not those that are written by hand."""
        if queue.quota_follows == "file" and not queue.windows:
            return ()
        manager = self.manager if queue.workers else None
        cluster_names = {*queue.clusters, *([] if manager is None else [manager])}
        if queue.manager is not None:
            cluster_names.discard(manager or "")
        return tuple(cluster.name for cluster in self.clusters if cluster.name in cluster_names)

    def groups_on(self, groups: Iterable[FleetResourceGroup], cluster: str) -> Sequence[ResourceGroup]:
        """The resource groups with the flavors and amounts of `cluster`."""
        there = self.cluster(cluster)
        names = {flavor.name for flavor in there.flavors}
        if self.multi_kueue is not None and cluster == self.manager:
            names.add(self.multi_kueue.manager_flavor_name)
        return placed_groups(groups, cluster, names, there.is_closed)

    def quotas_on(self, queue: QueueQuotas, cluster: str) -> Sequence[ResourceGroup]:
        """The queue's quotas on `cluster`; on the manager that dispatches it, by hand or derived from the workers'."""
        if cluster != self.manager or not queue.workers:
            return self.groups_on(queue.resource_groups, cluster)
        if queue.manager is not None:
            return queue.manager.resource_groups
        quotas = (
            (queue.manager_flavors[worker][flavor.name], quota)
            for worker in queue.workers
            for group in self.groups_on(queue.resource_groups, worker)
            for flavor in group.flavors
            if flavor.name in queue.manager_flavors.get(worker, {})
            for quota in flavor.resources
        )
        sums = self.multi_kueue
        derived_groups = summed_groups(queue.resource_groups, quotas, sums.headroom_percent if sums is not None else 0)
        names = () if sums is None else (sums.manager_flavor_name, *sums.former_manager_flavor_names)
        return with_former(derived_groups, self._borrowable(queue), names, in_cohort=queue.cohort_name is not None)

    def _borrowable(self, queue: QueueQuotas) -> Mapping[str, Quantity] | None:
        if queue.lenders is None:
            return None
        groups = {(False, cluster_queue.name): cluster_queue.resource_groups for cluster_queue in self.cluster_queues}
        groups |= {(True, cohort.name): cohort.resource_groups for cohort in self.cohorts}
        placed_groups_there = (
            (self.groups_on(groups[lender.cohort, lender.name], worker), flavor)
            for lender in queue.lenders
            for worker, flavors in lender.flavors.items()
            for flavor in flavors
        )
        return lent(placed_groups_there, self.multi_kueue.headroom_percent if self.multi_kueue is not None else 0)
