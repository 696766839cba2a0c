"""Both kinds of priority class; their fields stand at the top of the object, not under `spec`."""

from kueue_fleet.kueue.component import ModelComponent
from kueue_fleet.kueue_api import PriorityClassFields, WorkloadPriorityClassFields
from kueue_fleet.kueue_api.manifests import priority_class_manifest, workload_priority_class_manifest


class PriorityClass(ModelComponent[PriorityClassFields]):
    """Kubernetes' priority of pods."""

    pulumi_type = "kueue-fleet:index:PriorityClass"
    kind = "PriorityClass"
    model = PriorityClassFields
    render = priority_class_manifest
    # Running pods keep their priority.
    replaced_by = ("value", "preemptionPolicy")


class WorkloadPriorityClass(ModelComponent[WorkloadPriorityClassFields]):
    """Kueue's priority of jobs in their queue."""

    pulumi_type = "kueue-fleet:index:WorkloadPriorityClass"
    kind = "WorkloadPriorityClass"
    model = WorkloadPriorityClassFields
    render = workload_priority_class_manifest
