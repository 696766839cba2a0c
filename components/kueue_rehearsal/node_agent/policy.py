"""Which pods run on this node: a MutatingAdmissionPolicy that sends them here, and a taint that keeps all others away.

Pods whose image has a program run here. So do the other pods of Deployments and StatefulSets that ask for no device and
no node: they cannot run, and it is better to see `ErrImagePull` than a simulated pod that seems to work. Pods of jobs,
whatever Kueue queues, and those of DaemonSets, which belong to their nodes, stay for the simulated nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kueue_rehearsal.cloud.pod_policies import added_toleration, await_policies, pod_policy
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

NODE_LABEL = "kueue-fleet.dev/system-node"
"""Label of the node for system pods."""
POLICY_NAME = "kueue-fleet-system-node"
"""Name of the policy that sends pods with programs here to that node."""

_CONTROLLED = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, "
    "o.kind in ['ReplicaSet', 'StatefulSet'])"
)
_QUEUED = (
    "has(object.metadata.labels) && ('kueue.x-k8s.io/queue-name' in object.metadata.labels "
    "|| 'leaderworkerset.sigs.k8s.io/name' in object.metadata.labels)"
)
_WANTS_NODE = "has(object.spec.nodeSelector) && size(object.spec.nodeSelector) > 0"
_WANTS_DEVICE = (
    "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) "
    "&& c.resources.limits.exists(r, r.contains('/')))"
)
_SELECTOR = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{NODE_LABEL}': 'true'}}}}"


async def install_policy(api: ControlPlaneApi, images: Iterable[str]) -> None:
    """Makes the API server send pods here; returns once it does. `images` are the last parts of repositories.

    Raises ApiError.
    """
    known_images = sorted(images)
    pattern = "|".join(re.escape(image) for image in known_images)
    program_condition = f"object.spec.containers.exists(c, c.image.matches(r'(^|/)({pattern})([:@]|$)'))"
    stranded_condition = f"({_CONTROLLED}) && !({_QUEUED}) && !({_WANTS_NODE}) && !({_WANTS_DEVICE})"
    mutation = f"[{_SELECTOR}] + {added_toleration(NODE_LABEL)}"
    for path, body in pod_policy(POLICY_NAME, f"({program_condition}) || ({stranded_condition})", mutation):
        await api.apply(path, body)
    await await_policies(
        api,
        {"containers": [{"name": "probe", "image": known_images[0]}]},
        lambda spec: NODE_LABEL in (spec.get("nodeSelector") or {}),
    )
