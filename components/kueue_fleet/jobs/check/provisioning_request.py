"""The pod sets of a job's ProvisioningRequest, as Kueue merges them, and whether GKE takes the request.

Source: kueue@v0.19.2 pkg/controller/admissionchecks/provisioning/controller.go (mergePodSets, requiredPodSets,
arePodSetsSimilar).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kueue_admission.api import ProvisioningRequestConfigSpec
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.known_messages import known_message
from kueue_admission.kernel.manifest import maps_in
from kueue_admission.kernel.names import SINGLE_POD_SET_REFUSAL
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, of_job, of_pod_set

_SCHEDULING: Final = ("resources", "nodeSelector", "tolerations", "affinity", "resourceClaims")
_SIMILAR: Final = "IdenticalWorkloadSchedulingRequirements"


def refused_by_gke(config: ProvisioningRequestConfigSpec, pod_sets: Sequence[PodSetTemplate]) -> str:
    """Why GKE does not take the request for these pods; empty where it does, or where none is made."""
    if config.provisioning_class_name != QUEUED_PROVISIONING_CLASS or len(pod_sets) < 2:
        return ""
    merged_sets = _merge(config, pod_sets)
    if len(merged_sets) < 2:
        return ""
    names = " and ".join("+".join(pod_set.name for pod_set in group) for group in merged_sets)
    return f"GKE refuses a ProvisioningRequest of {len(merged_sets)} PodSets ({names}): {SINGLE_POD_SET_REFUSAL}"


@job_check
def check_provisioning_requests(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What GKE would say of the jobs."""
    for config in requests_of(fleet, job.queue):
        refusal = refused_by_gke(config, job.pod_sets)
        if refusal:
            yield of_job(job.document, known_message("KF111"), refusal, _fix(config, job.pod_sets))
            break


@job_check
def warn_of_volumes(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Volumes whose claims are made with the pods, which GKE asks for before it has nodes for them.

    Source: https://github.com/kubernetes/autoscaler/issues/7321, https://github.com/kubernetes-sigs/kueue/issues/2389
    """
    for config in requests_of(fleet, job.queue):
        for pod_set in _requested(config, job.pod_sets):
            names = [volume.get("name") for volume in maps_in(_spec(pod_set).get("volumes")) if volume.get("ephemeral")]
            if names and config.provisioning_class_name == QUEUED_PROVISIONING_CLASS:
                wrong = f"has the generic ephemeral volume {names[0]}, whose claim is not there before the pod is"
                fix = "use an emptyDir, or a claim that is bound"
                fault = Fault(f"{wrong}: GKE provisions no nodes for it (NotSchedulableInNodepool)", fix, JOB)
                yield of_pod_set(job, pod_set, fault, "warning")


def requests_of(fleet: FleetSpec, queue: str) -> Iterator[ProvisioningRequestConfigSpec]:
    """How the admission checks of a ClusterQueue ask for capacity."""
    for entry in fleet.cluster_queues:
        for name in entry.check_names if entry.name == queue else ():
            check = fleet.check(name)
            if check is not None and check.provisioning_request is not None:
                yield check.provisioning_request


def _fix(config: ProvisioningRequestConfigSpec, pod_sets: Sequence[PodSetTemplate]) -> str:
    if config.pod_set_merge_policy != _SIMILAR:
        similar = config.model_copy(update={"pod_set_merge_policy": _SIMILAR})
        if len(_merge(similar, pod_sets)) == 1:
            return f"set podSetMergePolicy: {_SIMILAR} in the check's provisioningRequest"
    first, second = (group[0] for group in _merge(config, pod_sets)[:2])
    different = ", ".join(_differences(first, second)) or "pod templates"
    return (
        f"give the pods of both the same requests, node selector, tolerations and affinity (different now: "
        f"{different}) and set podSetMergePolicy: {_SIMILAR}, or leave the GPUs to one of them"
    )


def _merge(config: ProvisioningRequestConfigSpec, pod_sets: Iterable[PodSetTemplate]) -> list[list[PodSetTemplate]]:
    """The pod sets that the request asks for, those that Kueue makes one of together."""
    merged_sets: list[list[PodSetTemplate]] = []
    for pod_set in _requested(config, pod_sets):
        for group in merged_sets:
            if _can_merge(config.pod_set_merge_policy, group[0], pod_set):
                group.append(pod_set)
                break
        else:
            merged_sets.append([pod_set])
    return merged_sets


def _requested(config: ProvisioningRequestConfigSpec, pod_sets: Iterable[PodSetTemplate]) -> Iterator[PodSetTemplate]:
    """Those that are in the request."""
    managed = frozenset(config.managed_resources)
    return (pod_set for pod_set in pod_sets if pod_set.count and (not managed or managed & _resources(pod_set)))


def _can_merge(policy: str | None, one: PodSetTemplate, other: PodSetTemplate) -> bool:
    if policy == "IdenticalPodTemplates":
        return bool(_comparable(one.template) == _comparable(other.template))
    return policy is not None and not any(_differences(one, other))


def _differences(one: PodSetTemplate, other: PodSetTemplate) -> Iterator[str]:
    """The fields of the pods by which Kueue does not merge them."""
    for field in ("containers", "initContainers"):
        if _requests(one, field) != _requests(other, field):
            yield f"requests of {field}"
    for field in _SCHEDULING:
        if (_comparable(_spec(one).get(field)) or None) != (_comparable(_spec(other).get(field)) or None):
            yield field


def _spec(pod_set: PodSetTemplate) -> Mapping[str, Any]:
    return pod_set.template.get("spec") or {}


def _requests(pod_set: PodSetTemplate, field: str) -> list[Any]:
    containers = _spec(pod_set).get(field) or ()
    return [_comparable({"requests": (container.get("resources") or {}).get("requests")}) for container in containers]


def _resources(pod_set: PodSetTemplate) -> frozenset[str]:
    """What the containers request, or limit."""
    containers = [*(_spec(pod_set).get("initContainers") or ()), *(_spec(pod_set).get("containers") or ())]
    resources_of_containers = [container.get("resources") or {} for container in containers]
    return frozenset(
        name for one in resources_of_containers for kind in ("requests", "limits") for name in one.get(kind) or ()
    )


def _comparable(value: Any, key: str = "") -> Any:
    """The value so that what the API server takes for equal is equal: 1 and 1000m, nothing and empty."""
    if isinstance(value, Mapping):
        if key in ("requests", "limits"):
            return {name: Quantity(str(amount)) for name, amount in value.items()}
        parts = {name: _comparable(part, str(name)) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in ({}, [], None)}
    if isinstance(value, (list, tuple)):
        return [_comparable(part) for part in value]
    return value
