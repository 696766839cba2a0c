"""Short constructors of the entries that most fleets have.

Each makes a model of the fleet file, and takes all of its fields; its name, and what comes with it, by position. What
is made is that model: `Pool(...) == NodePoolEntry(...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from kueue_admission.api import AdmissionChecksStrategy, AdmissionCheckStrategyRule
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel.arguments import checked
from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.given import InitVar
from kueue_admission.kernel.names import GPU_RESOURCE, TPU_RESOURCE
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.entries import (
    AdmissionCheckEntry,
    ClusterQueueEntry,
    FlavorEntry,
    ProvisioningRequestCheckArgs,
)
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.pool_fields import PoolAutoscaling
from kueue_fleet.gke.labels import ACCELERATOR, QUEUED_PROVISIONING_CLASS, SPOT
from kueue_fleet.settings.quotas import FleetFlavorQuotas, FleetResourceGroup, FleetResourceQuota

_Role = Literal["manager", "worker", "standalone"]


class _OfOneRole(ClusterEntry):
    if not TYPE_CHECKING:

        def __new__(cls, **fields: Any) -> ClusterEntry:
            """The entry."""
            return ClusterEntry(role=cls.model_fields["role"].default, **fields)


class Manager(_OfOneRole):
    """The cluster that takes the jobs and dispatches them: a `ClusterEntry` of role manager."""

    role: _Role = Field(default="manager", init=False)
    """Always manager."""


class Worker(_OfOneRole):
    """A cluster that runs jobs of the manager: a `ClusterEntry` of role worker."""

    role: _Role = Field(default="worker", init=False)
    """Always worker."""


class Standalone(_OfOneRole):
    """The only cluster of a fleet, which takes jobs and runs them: a `ClusterEntry` of role standalone."""

    role: _Role = Field(default="standalone", init=False)
    """Always standalone."""


class Pool(NodePoolEntry):
    """Like nodes of Standard clusters: a `NodePoolEntry`."""

    nodes: InitVar[int | None] = None
    """Nodes in each zone, fixed; `node_count` of the entry."""
    min_nodes: InitVar[int] = 0
    """Fewest nodes in all zones together, with `max_nodes`; default 0."""
    max_nodes: InitVar[int | None] = None
    """Most nodes in all zones together: as many as are needed; `autoscaling` of the entry."""

    if not TYPE_CHECKING:

        @checked
        def __new__(
            cls, nodes: int | None = None, min_nodes: int = 0, max_nodes: int | None = None, **fields: Any
        ) -> NodePoolEntry:
            """The entry."""
            if nodes is not None:
                fields["node_count"] = nodes
            if min_nodes or max_nodes is not None:
                fields["autoscaling"] = PoolAutoscaling(total_min_node_count=min_nodes, total_max_node_count=max_nodes)
            return NodePoolEntry(**fields)


class Flavor(FlavorEntry):
    """A kind of node: a `FlavorEntry`. Of a pool of the fleet: `Flavor("h100", node_pool="h100")`."""

    gpu: InitVar[str | None] = None
    """The GPU of nodes that GKE makes by itself, such as nvidia-l4."""
    spot: InitVar[bool] = False
    """Whether these are Spot nodes; default false."""

    if not TYPE_CHECKING:

        @checked
        def __new__(cls, gpu: str | None = None, spot: bool = False, **fields: Any) -> FlavorEntry:
            """The entry."""
            labels = {ACCELERATOR: gpu} if gpu is not None else {}
            if spot:
                labels[SPOT] = "true"
            if labels:
                fields["node_labels"] = {**labels, **fields.get("node_labels", {})}
            return FlavorEntry(**fields)


class DwsCheck(AdmissionCheckEntry):
    """The check that asks Dynamic Workload Scheduler for nodes before a job starts: an `AdmissionCheckEntry`."""

    managed_resources: InitVar[Sequence[str]] = (GPU_RESOURCE,)
    """Only jobs that ask for one of these wait for it; default: GPUs."""
    provisioning_request: ProvisioningRequestCheckArgs | None = Field(default=None, init=False)
    """Always that of DWS with queued provisioning."""

    if not TYPE_CHECKING:

        @checked
        def __new__(cls, managed_resources: Sequence[str] = (GPU_RESOURCE,), **fields: Any) -> AdmissionCheckEntry:
            """The entry."""
            request = ProvisioningRequestCheckArgs(
                provisioning_class_name=QUEUED_PROVISIONING_CLASS, managed_resources=managed_resources
            )
            return AdmissionCheckEntry(provisioning_request=request, **fields)


class Queue(ClusterQueueEntry):
    """Quota of some flavors, and how jobs wait for it: a `ClusterQueueEntry`, for jobs of every namespace.

    With another `namespace_selector` it is for those that match.
    """

    quotas: InitVar[Mapping[str, Sequence[FleetResourceQuota]]] = Field(kw_only=False)
    """The amounts, by flavor, most preferred first: `{"h100": Quota(gpu=4, cpu=36, memory="160Gi")}`. All flavors have
    quotas of the same resources."""
    checks: InitVar[Sequence[str] | Mapping[str, Sequence[str]]] = ()
    """Names of AdmissionChecks; or the flavors that each is for, by its name: `{"dws": ["h100"]}`."""

    if not TYPE_CHECKING:

        @checked
        def __new__(
            cls,
            quotas: Mapping[str, Sequence[FleetResourceQuota]],
            checks: Sequence[str] | Mapping[str, Sequence[str]] = (),
            **fields: Any,
        ) -> ClusterQueueEntry:
            """The entry."""
            if checks:
                of_flavors = checks if isinstance(checks, Mapping) else dict.fromkeys(checks, ())
                rules = [AdmissionCheckStrategyRule(name, on_flavors=on) for name, on in of_flavors.items()]
                fields["admission_checks_strategy"] = AdmissionChecksStrategy(admission_checks=rules)
            fields.setdefault("namespace_selector", LabelSelector())
            return ClusterQueueEntry(resource_groups=[_group(quotas)], **fields)


def _group(quotas: Mapping[str, Iterable[FleetResourceQuota]]) -> FleetResourceGroup:
    flavors = [FleetFlavorQuotas(name, tuple(amounts)) for name, amounts in quotas.items()]
    covered_names = dict.fromkeys(quota.name for flavor in flavors for quota in flavor.resources)
    return FleetResourceGroup(covered_resources=tuple(covered_names), flavors=flavors)


@checked
def Quota(  # noqa: N802  (reads as the models beside it)
    *,
    gpu: int | None = None,
    tpu: int | None = None,
    cpu: Quantity | int | str | None = None,
    memory: Quantity | int | str | None = None,
    ephemeral_storage: Quantity | int | str | None = None,
    borrow: int | None = None,
    lend: int | None = None,
) -> tuple[FleetResourceQuota, ...]:
    """How much of one flavor a queue may use, on each cluster that has the flavor.

    GPUs and chips of TPUs are counted in pieces, CPUs as `36` or `"500m"`, memory and ephemeral storage as `"160Gi"`.
    `borrow` is how many GPUs, or chips of TPUs, may be borrowed beyond that from the cohort, and `lend` how many of its
    own others may use; without them, as many as there are. CPU and memory have no such limits.

    Raises:
        SpecError: an amount cannot be read, or a limit is given without GPUs or TPUs.
    """
    device_counts = {GPU_RESOURCE: gpu, TPU_RESOURCE: tpu}
    others = {"cpu": cpu, "memory": memory, "ephemeral-storage": ephemeral_storage}
    if gpu is tpu is None and (borrow, lend) != (None, None):
        problem = NEEDED.at("Quota", "borrow and lend are limits of gpu and tpu, of which there is none", "give one")
        raise SpecError([problem])
    return (
        *(
            FleetResourceQuota(name, amount, borrowing_limit=borrow, lending_limit=lend)
            for name, amount in device_counts.items()
            if amount is not None
        ),
        *(FleetResourceQuota(name, amount) for name, amount in others.items() if amount is not None),
    )
