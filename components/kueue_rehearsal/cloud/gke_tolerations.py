"""The tolerations that GKE's own admission adds to pods, as policies of the API server."""

from __future__ import annotations

from kueue_fleet.gke.labels import ARCHITECTURE, ARM_TAINT, GPU_RESOURCE, QUEUED, SPOT, TPU_RESOURCE
from kueue_rehearsal.cloud.pod_needs import CONSUME_ANNOTATIONS
from kueue_rehearsal.cloud.pod_policies import added_toleration, await_policies, pod_policy
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi


async def install_tolerations(api: ControlPlaneApi) -> None:
    """Makes the API server add the tolerations that GKE's own admission adds to pods; returns once it does.

    To pods that ask for GPUs or TPUs (as the plugin ExtendedResourceToleration does), for Spot or Arm nodes, or for a
    request's capacity. Raises ApiError.
    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/prepare-arm-workloads-for-deployment (Arm).
    """
    consumes = " || ".join(f"'{annotation}' in object.metadata.annotations" for annotation in CONSUME_ANNOTATIONS)
    has = "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && '{}' in c.resources.limits)"
    selects = (
        "has(object.spec.nodeSelector) && '{0}' in object.spec.nodeSelector && object.spec.nodeSelector['{0}'] == '{1}'"
    )
    conditions = {
        GPU_RESOURCE: ("kueue-fleet-gpu", has.format(GPU_RESOURCE)),
        TPU_RESOURCE: ("kueue-fleet-tpu", has.format(TPU_RESOURCE)),
        QUEUED: ("kueue-fleet-queued", f"has(object.metadata.annotations) && ({consumes})"),
        SPOT: ("kueue-fleet-spot", selects.format(SPOT, "true")),
        ARCHITECTURE: ("kueue-fleet-arm", selects.format(ARCHITECTURE, ARM_TAINT.value)),
    }
    for key, (name, condition) in conditions.items():
        for path, body in pod_policy(name, condition, added_toleration(key)):
            await api.apply(path, body)
    container = {"name": "probe", "image": "probe", "resources": {"limits": {GPU_RESOURCE: "1", TPU_RESOURCE: "1"}}}
    await await_policies(
        api,
        {"containers": [container], "nodeSelector": {SPOT: "true", ARCHITECTURE: ARM_TAINT.value}},
        lambda spec: set(conditions) <= {one.get("key") for one in spec.get("tolerations") or ()},
        {CONSUME_ANNOTATIONS[0]: "probe"},
    )
