"""Which pods run on this node: a MutatingAdmissionPolicy that sends them here, and a taint that keeps all others away.

Pods whose image has a program run here. So do the other pods of Deployments, DaemonSets and StatefulSets that ask for
no device and no node: they cannot run, and it is better to see `ErrImagePull` than a simulated pod that seems to
work. Pods of jobs, and whatever Kueue queues, stay for the simulated nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kueue_fleet.rehearsal.kube_api import Json

NODE_LABEL = "kueue-fleet.dev/system-node"
POLICY_NAME = "kueue-fleet-system-node"
_ADMISSION = "admissionregistration.k8s.io/v1"

_CONTROLLED = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, "
    "o.kind in ['ReplicaSet', 'DaemonSet', 'StatefulSet'])"
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
_TOLERATION = f"Object.spec.tolerations{{key: '{NODE_LABEL}', operator: 'Exists', effect: 'NoSchedule'}}"
_SELECTOR = f"JSONPatch{{op: 'add', path: '/spec/nodeSelector', value: {{'{NODE_LABEL}': 'true'}}}}"
_MUTATION = (
    f"[{_SELECTOR}] + (has(object.spec.tolerations) ? "
    f"[JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {_TOLERATION}}}] : "
    f"[JSONPatch{{op: 'add', path: '/spec/tolerations', value: [{_TOLERATION}]}}])"
)


def admission_objects(images: Iterable[str]) -> list[tuple[str, Json]]:
    """(API path, object) of the policy and its binding, for server-side apply."""
    pattern = "|".join(re.escape(image) for image in sorted(images))
    known = f"object.spec.containers.exists(c, c.image.matches('(^|/)({pattern})([:@]|$)'))"
    stranded = f"({_CONTROLLED}) && !({_QUEUED}) && !({_WANTS_NODE}) && !({_WANTS_DEVICE})"
    policy: Json = {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": POLICY_NAME},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "matchConditions": [{"name": "system-pod", "expression": f"({known}) || ({stranded})"}],
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": _MUTATION},
                }
            ],
        },
    }
    binding: Json = {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY_NAME},
        "spec": {"policyName": POLICY_NAME},
    }
    root = f"/apis/{_ADMISSION}"
    return [
        (f"{root}/mutatingadmissionpolicies/{POLICY_NAME}", policy),
        (f"{root}/mutatingadmissionpolicybindings/{POLICY_NAME}", binding),
    ]


def probe_pod(image: str, node_name: str) -> Json:
    """A pod to be created with dryRun: it comes back with the node's label once the API server applies the policy.

    As a mirror pod it needs no service account, which the controllers of a new cluster have still to make.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POLICY_NAME, "annotations": {"kubernetes.io/config.mirror": "probe"}},
        "spec": {"nodeName": node_name, "containers": [{"name": "probe", "image": image}]},
    }
