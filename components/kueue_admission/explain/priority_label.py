"""A priority label of a job that its Workload does not follow.

Source: kueue@v0.19.2 pkg/controller/jobframework/reconciler.go (classifyWorkloadsForPriorityUpdate),
https://github.com/kubernetes-sigs/kueue/issues/13781.
"""

from __future__ import annotations

from collections.abc import Iterable

from kueue_admission.kernel.manifest import Manifest, inside, key_of
from kueue_admission.kernel.names import PRIORITY_LABEL
from kueue_admission.read.manifests import label_of, owners_of
from kueue_admission.read.printed import PrintedWorkload, WorkloadState

_FOLLOWS = "WorkloadPriorityClass"


def priority_label_without_effect(workload: Manifest, manifests: Iterable[Manifest]) -> str:
    """A sentence about the label of the Workload's job, where it changes nothing; else empty."""
    class_reference = inside(workload, "spec", "priorityClassRef")
    owners, state = set(owners_of(workload)), PrintedWorkload.of(workload).state
    # Kueue gives a Workload a class after its creation only as long as that has no quota.
    is_fixed = class_reference.get("kind") != _FOLLOWS if class_reference else state is not WorkloadState.PENDING
    is_fixed = is_fixed and state is not WorkloadState.FINISHED
    for job in manifests if owners and is_fixed else ():
        name = inside(job, "metadata", "labels").get(PRIORITY_LABEL)
        if name and (job["kind"], key_of(job)) in owners:
            why = (
                f"{class_reference.get('kind')} {class_reference.get('name')}"
                if class_reference
                else "no priority class when it got its quota"
            )
            return (
                f"The label {PRIORITY_LABEL}: {name} of {label_of(job)} does nothing: the Workload's priority is from "
                f"{why}, and Kueue does not change that; make the job again for the priority of {name}."
            )
    return ""
