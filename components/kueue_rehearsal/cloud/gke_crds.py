"""The resource definitions that GKE has in every cluster: managed Prometheus, compute classes, checkpoints, ingresses
and nodes' networks (`gke_crds.yaml`); and what GKE refuses there.

Nothing collects metrics here: objects are checked, kept, and left alone. `class_sources` makes nodes by a class.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from kueue_admission.kernel.names import SINGLE_POD_SET_REFUSAL
from kueue_admission.read.printed import Printed
from kueue_fleet.kube.answers import Json
from kueue_rehearsal.cloud.pod_policies import admission_policy
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

COMPUTE_CLASSES = "/apis/cloud.google.com/v1/computeclasses"
"""Path of the compute classes of a cluster."""
_POLL_SECONDS = 0.05
ANY_OBJECT: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""Schema of an object whose fields are not looked at."""


def resource_definition(
    group: str, plural: str, kind: str, version: str, schema: Json, scope: str = "Namespaced"
) -> Json:
    """A CustomResourceDefinition with one version, whose objects have a status of their own."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": scope,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _gke_definition(kind: Json) -> Json:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": kind["spec"],
            "status": ANY_OBJECT,
        },
    }
    return resource_definition(kind["group"], kind["plural"], kind["kind"], "v1", schema, kind["scope"])


DEFINITIONS = tuple(
    _gke_definition(kind) for kind in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)
"""CustomResourceDefinitions that a GKE cluster has from the beginning."""
SINGLE_POD_SET = admission_policy(
    "Validating",
    "queued-provisioning-single-pod-set",
    {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["autoscaling.x-k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["provisioningrequests"],
                }
            ]
        },
        "validations": [
            {
                "expression": "object.spec.provisioningClassName != 'queued-provisioning.gke.io' || "
                "size(object.spec.podSets) <= 1",
                "message": "GKE Warden rejected the request because it violates one or more constraints. Violations "
                f'details: {{"[denied by provisioning-request-cr-validation]":["{SINGLE_POD_SET_REFUSAL}"]}}',
                "reason": "Forbidden",
            }
        ],
    },
    {"validationActions": ["Deny"]},
)
"""What GKE's Warden refuses of ProvisioningRequests, in its words: (API path, object)."""


async def install_definition(api: ControlPlaneApi, definition: Json) -> None:
    """Installs a resource definition and waits until it is served. Raises ApiError."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
    await api.apply(path, definition)
    while True:
        if Printed.of(await api.get(path)).is_true("Established"):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def install_gke_definitions(api: ControlPlaneApi) -> None:
    """Installs what GKE has in every cluster. Raises ApiError."""
    for definition in DEFINITIONS:
        await install_definition(api, definition)
