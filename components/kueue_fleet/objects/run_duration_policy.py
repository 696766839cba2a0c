"""A job that asks DWS for longer than it grants is refused when it is submitted.

A ValidatingAdmissionPolicy with its binding, where the fleet asks DWS for capacity; else nothing. Without it, Kueue
puts the number into a ProvisioningRequest, which fails once the job has its turn, on each worker again. The API server
evaluates it; no webhook has to run.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest (maxRunDurationSeconds, at most seven
days); kueue@v0.19.2 apis/kueue/v1beta2/provisioningrequestconfig_types.go (annotations with the prefix
provreq.kueue.x-k8s.io/ become parameters).
"""

from __future__ import annotations

from typing import Final

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import RUN_DURATION_ANNOTATION
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS
from kueue_fleet.objects.policies import denying_policy

NAME: Final = "kueue-fleet-run-duration"
"""Of the ValidatingAdmissionPolicy and its binding."""
_JOB_KINDS: Final = (
    ("batch", "v1", ("jobs",)),
    ("jobset.x-k8s.io", "*", ("jobsets",)),
    ("leaderworkerset.x-k8s.io", "*", ("leaderworkersets",)),
    ("kubeflow.org", "*", ("*",)),
    ("ray.io", "*", ("rayjobs", "rayclusters", "rayservices")),
    ("workload.codeflare.dev", "*", ("appwrappers",)),
)
"""What Kueue queues and makes ProvisioningRequests for."""


def render_run_duration_policy(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The policy and its binding on `cluster`, if the fleet asks DWS for capacity."""
    classes = {
        check.provisioning_request.provisioning_class_name
        for check in fleet.admission_checks
        if check.provisioning_request is not None
    }
    if QUEUED_PROVISIONING_CLASS not in classes or cluster not in fleet.cluster_names:
        return []
    value = f"object.metadata.annotations['{RUN_DURATION_ANNOTATION}']"
    most = FLEX_START_MAX_SECONDS
    advice = f"DWS grants 1 to {most} seconds, which is seven days; write less, or cut the job into shorter ones"
    asks = f"has(object.metadata.annotations) && '{RUN_DURATION_ANNOTATION}' in object.metadata.annotations"
    validation = {
        "expression": f"{value}.matches('^[0-9]{{1,6}}$') && int({value}) >= 1 && int({value}) <= {most}",
        "messageExpression": f"'metadata.annotations[{RUN_DURATION_ANNOTATION}]: ' + {value} + ': {advice}'",
        "message": f"metadata.annotations[{RUN_DURATION_ANNOTATION}]: {advice}",
        "reason": "Invalid",
    }
    return denying_policy(NAME, _JOB_KINDS, ("asks-for-a-run-duration", asks), [validation])
