"""Both kinds of priority class; their fields stand at the top of the object, not under `spec`."""

import pulumi

from kueue_fleet.kueue.component import ObjectComponent, manifest_of
from kueue_fleet.kueue_api import Manifest, PriorityClassFields, WorkloadPriorityClassFields
from kueue_fleet.kueue_api.manifests import priority_class_manifest, workload_priority_class_manifest


class PriorityClass(ObjectComponent):
    """Kubernetes' priority of pods."""

    pulumi_type = "kueue-fleet:index:PriorityClass"
    kind = "PriorityClass"

    def __init__(
        self,
        name: str,
        spec: PriorityClassFields | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the class. Another value or preemption policy replaces it; running pods keep their priority."""
        self._declare(
            name,
            manifest_of(self.kind, spec, object_name or name, PriorityClassFields, priority_class_manifest),
            opts,
            replace_on_changes=["value", "preemptionPolicy"],
        )


class WorkloadPriorityClass(ObjectComponent):
    """Kueue's priority of jobs in their queue."""

    pulumi_type = "kueue-fleet:index:WorkloadPriorityClass"
    kind = "WorkloadPriorityClass"

    def __init__(
        self,
        name: str,
        spec: WorkloadPriorityClassFields | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the class."""
        self._declare(
            name,
            manifest_of(
                self.kind, spec, object_name or name, WorkloadPriorityClassFields, workload_priority_class_manifest
            ),
            opts,
        )
