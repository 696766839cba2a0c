"""How the pods of Kueue run: what they ask for, how they spread, and their priority.

`model.kueue_installation` makes values of Kueue's chart of them.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kueue_admission.api import PriorityClassFields
from kueue_admission.api.manifests import priority_class_manifest
from kueue_admission.api.priority_classes import HIGHEST_USER_PRIORITY
from kueue_admission.kernel.base import LabelKey, RuledModel, SpecModel, Whole
from kueue_admission.kernel.form_rules import OUT_OF_RANGE, WRONG_ORDER
from kueue_admission.kernel.given import NOT_GIVEN
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import OptionalQuantityField, Quantity, QuantityField
from kueue_fleet.gke.labels import ZONE

KUEUE_PRIORITY_CLASS: Final = "kueue-fleet-critical"
"""PriorityClass that is made for Kueue and the fleet's controller, unless the file names another one."""
KUEUE_POD_LABELS: Final = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
"""Labels of Kueue's pods. Source: kueue@v0.19.2 charts/kueue/templates/_helpers.tpl."""

# Not typed: to a type checker fields of amounts have no plain default.
_CPU: Final[Any] = Quantity("500m")
_MOST_CPU: Final[Any] = Quantity("2")
_MEMORY: Final[Any] = Quantity("2Gi")


class PodRequests(SpecModel):
    """Guaranteed resources of a pod."""

    cpu: QuantityField = _CPU
    """Default 500m."""
    memory: QuantityField = _MEMORY
    """Default 2Gi: with 512Mi, the chart's default, Kueue is killed when it reads a thousand Workloads at once."""


class PodLimits(SpecModel):
    """Upper bounds for a pod."""

    cpu: QuantityField = _MOST_CPU
    """Default 2."""
    memory: OptionalQuantityField = NOT_GIVEN
    """Default: the request."""


class PodResources(RuledModel):
    """Requests and limits of each pod."""

    requests: PodRequests = Field(default_factory=PodRequests)
    """Guaranteed resources."""
    limits: PodLimits = Field(default_factory=PodLimits)
    """Upper bounds."""

    def own_problems(self) -> Iterator[Problem]:
        """No limit below the request, which the API server refuses."""
        for name in ("cpu", "memory"):
            request, most = getattr(self.requests, name), getattr(self.limits, name)
            if not request:
                yield OUT_OF_RANGE.at(
                    f"requests.{name}", f"{request} is nothing", f"request some {name}, or leave the field out"
                )
            if most is not None and most < request:
                yield WRONG_ORDER.at(
                    f"limits.{name}", f"{most} is less than the request, {request}", "raise the limit or request less"
                )

    def container_resources(self) -> dict[str, Any]:
        """`resources` of the container."""
        limits = {"cpu": str(self.limits.cpu), "memory": str(self.limits.memory or self.requests.memory)}
        return {"requests": {"cpu": str(self.requests.cpu), "memory": str(self.requests.memory)}, "limits": limits}


class TopologySpread(SpecModel):
    """One rule by which the scheduler spreads the pods."""

    topology_key: LabelKey
    """Label of nodes, whose values are the places."""
    max_skew: Annotated[Whole, Field(ge=1)] = 1
    """Largest difference to the number of pods in any other place; default 1."""
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = "ScheduleAnyway"
    """ScheduleAnyway (default): pods may run close together; DoNotSchedule: the pod waits."""


ZONES_AND_NODES: Final = (
    TopologySpread(topology_key=ZONE),
    TopologySpread(topology_key=HOSTNAME_LABEL),
)
"""Pods in different zones, and there on different nodes, where that can be had."""


def spread_constraints(spread: Iterable[TopologySpread]) -> list[dict[str, Any]]:
    """`topologySpreadConstraints` of Kueue's pods; during a rollout the new pods are spread among themselves."""
    return [
        {
            **rule.wire(),
            "labelSelector": {"matchLabels": dict(KUEUE_POD_LABELS)},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for rule in spread
    ]


def kueue_priority_class() -> Manifest:
    """The PriorityClass of Kueue's pods: above every pod of a job.

    Not `system-cluster-critical`, whose pods GKE refuses outside kube-system without a ResourceQuota for them.
    """
    return priority_class_manifest(
        KUEUE_PRIORITY_CLASS,
        PriorityClassFields(value=HIGHEST_USER_PRIORITY, description="Kueue, and what else jobs cannot start without."),
    )
