"""Changes to new pods by MutatingAdmissionPolicy: what a managed webhook does on GKE, the API server does here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

from kueue_fleet.kube.answers import Json
from kueue_fleet.objects.policies import POLICY_API
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

_POLL_SECONDS = 0.1


def pod_policy(name: str, condition: str, mutation: str) -> list[tuple[str, Json]]:
    """(API path, object) of a policy for pods that are created, and of its binding, for server-side apply.

    `condition` and `mutation` are CEL: whether it concerns `object`, and the list of JSONPatch to apply to it.
    """
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [pods]},
        "matchConditions": [{"name": "concerns", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": mutation}}],
    }
    return admission_policy("Mutating", name, spec, {})


def admission_policy(
    verb: Literal["Mutating", "Validating"], name: str, spec: Json, binding: Json
) -> list[tuple[str, Json]]:
    """(API path, object) of an admission policy, and of its binding with the fields of `binding`."""
    kind, root = f"{verb}AdmissionPolicy", f"/apis/{POLICY_API}/{verb.lower()}admissionpolic"
    common: Json = {"apiVersion": POLICY_API, "metadata": {"name": name}}
    return [
        (f"{root}ies/{name}", {**common, "kind": kind, "spec": spec}),
        (f"{root}ybindings/{name}", {**common, "kind": f"{kind}Binding", "spec": {"policyName": name, **binding}}),
    ]


def added_toleration(key: str) -> str:
    """CEL: the patch that adds a toleration for the NoSchedule taints of this key."""
    toleration = f"Object.spec.tolerations{{key: '{key}', operator: 'Exists', effect: 'NoSchedule'}}"
    return (
        "(has(object.spec.tolerations) ? "
        f"[JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {toleration}}}] : "
        f"[JSONPatch{{op: 'add', path: '/spec/tolerations', value: [{toleration}]}}])"
    )


async def await_policies(
    api: ControlPlaneApi, spec: Json, holds: Callable[[Json], bool], annotations: Mapping[str, str] | None = None
) -> None:
    """Returns once a pod with this spec would come out so that `holds` is true of its spec.

    The API server applies a new policy only after a moment. The pod is never made: it is a dry run, in kube-system,
    which the webhooks of Kueue leave alone; and a mirror pod, which needs no service account, which the controllers of
    a new cluster have still to make. Raises ApiError.
    """
    mirror = {"kubernetes.io/config.mirror": "probe", **(annotations or {})}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kueue-fleet-probe", "annotations": mirror},
        "spec": {"nodeName": "none", **spec},
    }
    while True:
        answer = await api.create("/api/v1/namespaces/kube-system/pods", pod, {"dryRun": "All"})
        if holds(answer["spec"]):
            return
        await asyncio.sleep(_POLL_SECONDS)
