"""The resource definitions of managed Prometheus, of compute classes, checkpoints, ingresses and nodes' networks, which
GKE has in its clusters, those of networks where a cluster has several; and what GKE refuses there.

Nothing collects metrics here: objects are checked, kept, and left alone. `class_sources` makes nodes by a class.

Source: https://github.com/GoogleCloudPlatform/prometheus-engine/blob/main/doc/api.md;
https://github.com/kcl-lang/modules, gke/v1/cloud_google_com_v1_compute_class.k;
https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods (GKENetworkParamSet);
https://cloud.google.com/kubernetes-engine/docs/how-to/ingress-configuration (BackendConfig, ManagedCertificate)
"""

from __future__ import annotations

import asyncio

from kueue_admission.forms.names import SINGLE_POD_SET_REFUSAL
from kueue_admission.read.printed import Printed
from kueue_fleet.kube.answers import Json
from kueue_rehearsal.cloud.pod_policies import admission_policy
from kueue_rehearsal.control_planes.kube_api import KubeApi

_GROUP = "monitoring.googleapis.com"
COMPUTE_CLASSES = "/apis/cloud.google.com/v1/computeclasses"
"""Path of the compute classes of a cluster."""
_POLL_SECONDS = 0.05
_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}
ANY_OBJECT: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""Schema of an object whose fields are not looked at."""


def _object(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _definition(kind: str, plural: str, scope: str) -> Json:
    secret = _object(("secret",), secret=_object(("name", "key"), name=_TEXT, key=_TEXT, namespace=_TEXT))
    endpoint = _object(
        ("port",),
        port={"x-kubernetes-int-or-string": True},
        scheme={"type": "string", "enum": ["http", "https"]},
        path=_TEXT,
        params={"type": "object", "additionalProperties": _TEXTS},
        interval=_TEXT,
        timeout=_TEXT,
        proxyUrl=_TEXT,
        metricRelabeling={"type": "array", "items": ANY_OBJECT},
        authorization=_object(type=_TEXT, credentials=secret),
        basicAuth=_object(username=_TEXT, password=secret),
        oauth2=ANY_OBJECT,
        tls=_object(
            insecureSkipVerify={"type": "boolean"},
            serverName=_TEXT,
            minVersion=_TEXT,
            maxVersion=_TEXT,
            ca=ANY_OBJECT,
            cert=ANY_OBJECT,
            key=ANY_OBJECT,
        ),
    )
    spec = _object(
        ("selector", "endpoints"),
        selector=_object(
            matchLabels={"type": "object", "additionalProperties": _TEXT},
            matchExpressions={
                "type": "array",
                "items": _object(("key", "operator"), key=_TEXT, operator=_TEXT, values=_TEXTS),
            },
        ),
        endpoints={"type": "array", "minItems": 1, "items": endpoint},
        targetLabels=_object(metadata=_TEXTS, fromPod={"type": "array", "items": ANY_OBJECT}),
        limits=ANY_OBJECT,
        filterRunning={"type": "boolean"},
    )
    schema = _object(("spec",), apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=spec, status=ANY_OBJECT)
    return resource_definition(_GROUP, plural, kind, "v1", schema, scope)


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


def _compute_class() -> Json:
    """The fields that fleets write are checked; a priority may have others."""
    whole = {"type": "integer", "minimum": 0}
    gpu = _object(
        type=_TEXT, count={"type": "integer", "minimum": 1}, driverVersion={"enum": ["default", "latest"], **_TEXT}
    )
    priority = _object(machineType=_TEXT, machineFamily=_TEXT, minCores=whole, minMemoryGb=whole, gpu=gpu)
    priority["properties"] |= {"spot": {"type": "boolean"}, "maxRunDurationSeconds": whole}
    spec = _object(
        ("whenUnsatisfiable",),
        priorities={"type": "array", "items": {**priority, "x-kubernetes-preserve-unknown-fields": True}},
        whenUnsatisfiable={"type": "string", "enum": ["ScaleUpAnyway", "DoNotScaleUp"]},
        nodePoolAutoCreation=_object(("enabled",), enabled={"type": "boolean"}),
    )
    spec["x-kubernetes-preserve-unknown-fields"] = True
    schema = _object(("spec",), apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=spec, status=ANY_OBJECT)
    return resource_definition("cloud.google.com", "computeclasses", "ComputeClass", "v1", schema, "Cluster")


def _network(kind: str, plural: str, spec: Json, scope: str = "Cluster", group: str = "networking.gke.io") -> Json:
    schema = _object(("spec",), apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=spec, status=ANY_OBJECT)
    return resource_definition(group, plural, kind, "v1", schema, scope)


_REFERENCE = _object(("group", "kind", "name"), group=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT)
_NETWORK_TYPE: Json = {"type": "string", "enum": ["L3", "Device"]}
_DEVICE_MODE: Json = {"type": "string", "enum": ["DPDK-VFIO", "NetDevice", "RDMA"]}
_PLACE = _object(("vpc", "vpcSubnet"), vpc=_TEXT, vpcSubnet=_TEXT, deviceMode=_DEVICE_MODE, podIPv4Ranges=ANY_OBJECT)
_CHECKPOINTS = _object(
    ("spec",),
    apiVersion=_TEXT,
    kind=_TEXT,
    metadata={"type": "object"},
    spec=_object(("cloudStorageBucketName", "inMemoryVolumeSize", "nodeSelector"))
    | {"x-kubernetes-preserve-unknown-fields": True},
    status=ANY_OBJECT,
)
DEFINITIONS = (
    resource_definition(
        "checkpointing.gke.io", "checkpointconfigurations", "CheckpointConfiguration", "v1", _CHECKPOINTS, "Cluster"
    ),
    _compute_class(),
    _network("Network", "networks", _object(("type",), type=_NETWORK_TYPE, parametersRef=_REFERENCE)),
    _network("GKENetworkParamSet", "gkenetworkparamsets", _PLACE),
    _network("ManagedCertificate", "managedcertificates", _object(("domains",), domains=_TEXTS), "Namespaced"),
    _network(
        "BackendConfig",
        "backendconfigs",
        _object(iap=_object(enabled={"type": "boolean"}), healthCheck=ANY_OBJECT),
        "Namespaced",
        "cloud.google.com",
    ),
    _definition("PodMonitoring", "podmonitorings", "Namespaced"),
    _definition("ClusterPodMonitoring", "clusterpodmonitorings", "Cluster"),
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


async def install_definition(api: KubeApi, definition: Json) -> None:
    """Installs a resource definition and waits until it is served. Raises ApiError."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
    await api.apply(path, definition)
    while True:
        found = await api.get(path)
        if Printed.of(found).is_true("Established"):
            return
        await asyncio.sleep(_POLL_SECONDS)


async def install_gke_definitions(api: KubeApi) -> None:
    """Installs what GKE has in every cluster. Raises ApiError."""
    for definition in DEFINITIONS:
        await install_definition(api, definition)
