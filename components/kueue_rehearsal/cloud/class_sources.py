"""Nodes by a compute class: of its first priority that has some.

Machines of DWS flex-start are as many as the rehearsal's stock has; reservations, Spot and on-demand nodes always
come. The taint that GKE puts on nodes of a class, and has pods of the class tolerate, is not modelled.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    ACCELERATOR_COUNT,
    COMPUTE_CLASS,
    FLEX_START,
    INSTANCE_TYPE,
    MACHINE_FAMILY,
    SPOT,
    ZONE,
)
from kueue_fleet.gke.machines import machine_type
from kueue_rehearsal.cloud.node_sources import AutoProvisioning
from kueue_rehearsal.cloud.node_templates import NodeTemplate
from kueue_rehearsal.cloud.pod_needs import PodNeeds


@dataclass(slots=True)
class ClassSource:
    """The nodes of one class."""

    name: str
    spec: Manifest
    """`spec` of the ComputeClass."""
    provisioning: AutoProvisioning
    """What makes its nodes; they get the class as a label."""

    def offer(self, needs: PodNeeds) -> NodeTemplate | str:
        """A node of the first priority that has one, for a pod that selects the class."""
        if needs.node_selector.get(COMPUTE_CLASS) != self.name:
            return f"compute class {self.name}: the pod does not select it"
        reason = "it has no priorities"
        for index, priority in enumerate(self.spec.get("priorities") or ()):
            offer_there = self.provisioning.offer(replace(needs, node_selector=_selector(needs, priority)))
            if not isinstance(offer_there, str):
                return offer_there
            reason = f"priorities[{index}]: {offer_there}"
        return f"compute class {self.name}: {reason}"

    def take(self, template: NodeTemplate) -> None:
        """Counts the node."""
        self.provisioning.take(template)


def _selector(needs: PodNeeds, priority: Manifest) -> dict[str, str]:
    """What a pod selects, with the node that the priority describes in the place of the class."""
    machine, gpu = machine_type(priority.get("machineType") or ""), priority.get("gpu") or {}
    wanted_labels: dict[str, Any] = {
        INSTANCE_TYPE: priority.get("machineType"),
        MACHINE_FAMILY: priority.get("machineFamily"),
        ACCELERATOR: gpu.get("type") or (machine and machine.gpus and machine.accelerator),
        ACCELERATOR_COUNT: gpu.get("count") and str(gpu["count"]),
        SPOT: "true" if priority.get("spot") else None,
        FLEX_START: "true" if (priority.get("flexStart") or {}).get("enabled") else None,
        ZONE: next(iter((priority.get("location") or {}).get("zones") or ()), None),
    }
    rest = {key: value for key, value in needs.node_selector.items() if key != COMPUTE_CLASS}
    return {**{key: value for key, value in wanted_labels.items() if value}, **rest}
