"""What GKE's Warden refuses on Autopilot clusters, in its words, as a policy of the API server.

Sources: https://github.com/GoogleCloudPlatform/ai-on-gke/pull/983 (selectors, of a Job when it is created),
https://github.com/GoogleCloudPlatform/k8s-stackdriver/issues/1079 (the toleration, of a Deployment). Of the keys that
Autopilot allows in selectors only a part is known: what may be another of them is let through.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kueue_fleet.gke.labels import ACCELERATOR, COMPUTE_CLASS, GPU_RESOURCE, NODE_POOL
from kueue_fleet.kube.answers import ApiError, Json
from kueue_rehearsal.cloud.pod_policies import admission_policy
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

_POLL_SECONDS: Final = 0.1
_DENIED: Final = "GKE Warden rejected the request because it violates one or more constraints. Violations details: "

_ASKS: Final = (
    "variables.containers.exists(c, has(c.resources) && "
    f"((has(c.resources.limits) && '{GPU_RESOURCE}' in c.resources.limits) || "
    f"(has(c.resources.requests) && '{GPU_RESOURCE}' in c.resources.requests)))"
)


def _selects(key: str) -> str:
    """CEL: whether the pod selects nodes by this label."""
    return (
        f"('{key}' in variables.pod.?nodeSelector.orValue({{}}) || "
        f"variables.terms.exists(term, term.?matchExpressions.orValue([]).exists(one, one.key == '{key}')))"
    )


def _denied(constraint: str, why: str) -> str:
    return f'{_DENIED}{{"[denied by {constraint}]":["{why}"]}}'


AUTOPILOT: Final = admission_policy(
    "Validating",
    "autopilot-warden",
    {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [kind]}
                for group, kind in (("", "pods"), ("batch", "jobs"), ("apps", "deployments"))
            ]
        },
        "matchConditions": [{"name": "of-users", "expression": "request.namespace != 'kube-system'"}],
        "variables": [
            {"name": "pod", "expression": "request.kind.kind == 'Pod' ? object.spec : object.spec.template.spec"},
            {
                "name": "containers",
                "expression": "variables.pod.containers + variables.pod.?initContainers.orValue([])",
            },
            {"name": "asks", "expression": _ASKS},
            {
                "name": "terms",
                "expression": "variables.pod.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution"
                ".?nodeSelectorTerms.orValue([])",
            },
        ],
        "validations": [
            {
                "expression": f"!variables.asks || {_selects(ACCELERATOR)} || {_selects(COMPUTE_CLASS)}",
                "message": _denied(
                    "autogke-gpu-limitation",
                    f"When requesting '{GPU_RESOURCE}' resources, you must specify either node selector "
                    f"'{ACCELERATOR}' with accelerator type or node selector '{COMPUTE_CLASS}' with existing custom "
                    "compute class which has at least one GPU priority rule.",
                ),
                "reason": "Forbidden",
            },
            {
                "expression": "variables.asks || !variables.pod.?tolerations.orValue([])"
                f".exists(one, has(one.key) && one.key == '{GPU_RESOURCE}')",
                "message": _denied(
                    "autogke-gpu-limitation",
                    f"The toleration with key '{GPU_RESOURCE}' and operator 'Exists' cannot be specified if the pod "
                    "does not request to use GPU in Autopilot.",
                ),
                "reason": "Forbidden",
            },
            {
                "expression": f"!{_selects(NODE_POOL)}",
                "message": _denied(
                    "autogke-node-affinity-selector-limitation",
                    f"Key '{NODE_POOL}' is not allowed with node selector",
                ),
                "reason": "Forbidden",
            },
        ],
    },
    {"validationActions": ["Deny"]},
)
"""The policy and its binding, as (API path, object)."""


async def install_warden(api: ControlPlaneApi) -> None:
    """Makes the API server refuse what Warden refuses on Autopilot; returns once it does. Raises ApiError.

    What refuses is a dry run of a mirror pod, which needs no service account.
    """
    for path, body in AUTOPILOT:
        await api.apply(path, body)
    gpu: Json = {"name": "probe", "image": "probe", "resources": {"limits": {GPU_RESOURCE: "1"}}}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kueue-fleet-probe", "annotations": {"kubernetes.io/config.mirror": "probe"}},
        "spec": {"nodeName": "none", "containers": [gpu]},
    }
    while True:
        try:
            await api.create("/api/v1/namespaces/default/pods", pod, {"dryRun": "All"})
        except ApiError as error:
            if _DENIED in str(error):
                return
        await asyncio.sleep(_POLL_SECONDS)
