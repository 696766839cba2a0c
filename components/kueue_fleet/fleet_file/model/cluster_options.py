"""What a Standard cluster has of its own beside the pools of the file: its system pool and node auto-provisioning.

What flavors may expect of auto-provisioning is compared in `check.flavor_pools`.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from kueue_admission.kernel import suggest
from kueue_admission.kernel.base import Count, Flag, RuledModel, Text
from kueue_admission.kernel.form_rules import NEEDED, NOT_ALLOWED, WRONG_ORDER, listed_twice
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.gcp_names import Zone
from kueue_fleet.gke.machines import MOST_DISK_GB, accelerators
from kueue_fleet.gke.pool_rules import ASKED_BY_PODS


class SystemPool(RuledModel):
    """The nodes that Kueue, JobSet and cluster services run on."""

    machine_type: Text = "e2-standard-4"
    """Type of the machines; default e2-standard-4."""
    spot: Flag = False
    """Whether they are Spot VMs; default false."""
    total_min_node_count: Annotated[Count, Field(ge=1)] = 1
    """In all zones together; default 1."""
    total_max_node_count: Annotated[Count, Field(ge=1)] = 3
    """In all zones together; default 3."""
    disk_size_gb: Annotated[Count, Field(ge=10, le=MOST_DISK_GB)] = 100
    """Boot disk in GB; default 100."""

    def own_problems(self) -> Iterator[Problem]:
        """The limits in order."""
        if self.total_min_node_count > self.total_max_node_count:
            yield WRONG_ORDER.at(
                "totalMinNodeCount",
                f"{self.total_min_node_count} is more than totalMaxNodeCount, {self.total_max_node_count}",
                "write a smaller minimum",
            )


class ResourceLimit(RuledModel):
    """How much of one resource the whole cluster has, the pools of the file included."""

    resource_type: Annotated[Text, Field(min_length=1)] = Field(kw_only=False)
    """cpu, memory (in GB), or a kind of GPU such as nvidia-l4."""
    minimum: Count = 0
    """Least of the whole cluster; default 0."""
    maximum: Annotated[int, Field(strict=True, ge=1)]
    """Most of the whole cluster, with pools of the file."""

    def own_problems(self) -> Iterator[Problem]:
        """A resource that GKE limits, and limits in order."""
        known_names = ("cpu", "memory", *sorted(accelerators()))
        if self.resource_type not in known_names:
            yield NOT_ALLOWED.at(
                "resourceType",
                f"{self.resource_type} is not a resource that GKE limits",
                suggest.instead(self.resource_type, known_names, "resources"),
            )
        if self.minimum > self.maximum:
            yield WRONG_ORDER.at(
                "minimum", f"{self.minimum} is more than maximum, {self.maximum}", "write a smaller minimum"
            )


class NodeAutoProvisioning(RuledModel):
    """GKE makes node pools for pods that fit no other, within limits that count all nodes of the cluster.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-auto-provisioning
    """

    resource_limits: Annotated[ListOf[ResourceLimit], Field(min_length=1)]
    """Needs cpu and memory; kinds of GPU without a limit are not provisioned."""
    zones: ListOfText[Zone] = ()
    """Where; default: the cluster's zones."""
    autoscaling_profile: Literal["OPTIMIZE_UTILIZATION", "BALANCED"] = "OPTIMIZE_UTILIZATION"
    """How soon empty nodes are removed; default OPTIMIZE_UTILIZATION, sooner."""

    @classmethod
    def not_here(cls, name: str) -> tuple[str, str] | None:
        """Of node pools: the nodes that GKE makes are as the pods ask for which it makes them."""
        wrong = "is a field of node pools, which GKE does not take for nodes that it makes by itself"
        return (wrong, ASKED_BY_PODS[name]) if name in ASKED_BY_PODS else None

    def limit(self, resource_type: str) -> int | None:
        """The maximum of a resource; None where there is none."""
        return next((limit.maximum for limit in self.resource_limits if limit.resource_type == resource_type), None)

    def own_problems(self) -> Iterator[Problem]:
        """Both cpu and memory; each resource once."""
        names = [limit.resource_type for limit in self.resource_limits]
        for index, limit in enumerate(self.resource_limits):
            if limit.resource_type in names[:index]:
                yield listed_twice(f"resourceLimits[{index}]", limit.resource_type, "resource")
        missing_names = [name for name in ("cpu", "memory") if name not in names]
        if missing_names:
            yield NEEDED.at(
                "resourceLimits",
                f"no limit for {' and '.join(missing_names)}, which GKE wants",
                "add it, with a maximum",
            )
