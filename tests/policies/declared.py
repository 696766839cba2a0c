"""Small programs as data: resources that keep every rule, and ways to break one.

`Declared` is a resource of a program. `as_estate` gives what a stack policy is called with, `as_input` what a resource
policy is called with; the tests on the engine make the same resources with Pulumi itself.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
)

from kueue_fleet.google.resource_types import CLUSTER, HELM_RELEASE, NODE_POOL
from kueue_fleet_policies.resource import KUBERNETES_PROVIDER

PROJECT = "lab-project"
REGION = "europe-west4"
ACCOUNT = f"gke-nodes@{PROJECT}.iam.gserviceaccount.com"
KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/fleet/cryptoKeys/gke"


@dataclass(frozen=True)
class Ref:
    """An output of another resource, or text with one in it where `{}` stands."""

    resource: str
    output: str
    text: str = "{}"


@dataclass(frozen=True)
class Declared:
    """One resource of a program."""

    type: str
    name: str
    props: dict[str, Any]
    protect: bool = False
    provider: str | None = None
    """Name of the Kubernetes provider."""

    @property
    def urn(self) -> str:
        return f"urn:pulumi:dev::trial::{self.type}::{self.name}"

    def known(self) -> dict[str, Any]:
        """Properties once every output is there."""
        result: dict[str, Any] = _resolved(self.props)
        return result


@dataclass(frozen=True)
class Seed:
    """A program in which one resource breaks one rule, and nothing breaks another."""

    rule: str
    resources: tuple[Declared, ...]
    at: str | None
    """Name of the resource that breaks it; None: the stack."""
    config: dict[str, Any] = field(default_factory=dict)
    """Settings of the rule under which it is broken."""
    says: str = ""
    """What the message has to say."""

    @property
    def culprit(self) -> Declared:
        return next(one for one in self.resources if one.name == self.at)


def _resolved(value: Any) -> Any:
    if isinstance(value, Ref):
        return value.text.replace("{}", f"{value.resource.rsplit('/', 1)[-1]}-{value.output}")
    if isinstance(value, dict):
        return {key: _resolved(item) for key, item in value.items()}
    return [_resolved(item) for item in value] if isinstance(value, list) else value


def changed(props: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`props` with values at dotted paths (`/` for a key that has dots) replaced; None removes one."""
    result = copy.deepcopy(props)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place = result
        for key in parents:
            place = place.setdefault(key, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result


def cluster(name: str, changes: Mapping[str, Any] | None = None, *, protect: bool = True) -> Declared:
    """A Standard cluster that keeps every rule."""
    props = {
        "name": name.replace("/", "-"),
        "project": PROJECT,
        "location": REGION,
        "network": "fleet",
        "subnetwork": f"fleet-{REGION}",
        "ipAllocationPolicy": {},
        "releaseChannel": {"channel": "REGULAR"},
        "privateClusterConfig": {"enablePrivateNodes": True, "enablePrivateEndpoint": False},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {"allowExternalTraffic": True},
            "ipEndpointsConfig": {"enabled": False},
        },
        "resourceLabels": {"managed-by": "kueue-fleet"},
        "deletionProtection": True,
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "nodeConfig": {"serviceAccount": ACCOUNT},
        "workloadIdentityConfig": {"workloadPool": f"{PROJECT}.svc.id.goog"},
        "enableShieldedNodes": True,
        "datapathProvider": "ADVANCED_DATAPATH",
        "enableIntranodeVisibility": True,
        "costManagementConfig": {"enabled": True},
        "databaseEncryption": {"state": "ENCRYPTED", "keyName": KEY},
        "binaryAuthorization": {"evaluationMode": "PROJECT_SINGLETON_POLICY_ENFORCE"},
        "authenticatorGroupsConfig": {"securityGroup": "gke-security-groups@example.com"},
        "maintenancePolicy": {
            "recurringWindow": {
                "startTime": "2026-01-03T02:00:00Z",
                "endTime": "2026-01-03T08:00:00Z",
                "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
            }
        },
    }
    return Declared(CLUSTER, name, changed(props, changes or {}), protect)


def autopilot(name: str, changes: Mapping[str, Any] | None = None) -> Declared:
    """An Autopilot cluster that keeps every rule."""
    standard_only = (
        "removeDefaultNodePool", "initialNodeCount", "nodeConfig", "workloadIdentityConfig", "enableShieldedNodes",
        "datapathProvider", "enableIntranodeVisibility",
    )  # fmt: skip
    base = cluster(name, dict.fromkeys(standard_only) | {"enableAutopilot": True})
    defaults = {"serviceAccount": ACCOUNT, "bootDiskKmsKey": KEY}
    return Declared(
        CLUSTER,
        name,
        changed(base.props, {"clusterAutoscaling.autoProvisioningDefaults": defaults, **(changes or {})}),
        True,
    )


def auto_provisioning(**limits: int) -> dict[str, Any]:
    """`clusterAutoscaling` that keeps every rule; limits by resource type, `_` for `-`."""
    given = {"cpu": 1000, "memory": 4000} | {key.replace("_", "-"): value for key, value in limits.items()}
    return {
        "enabled": True,
        "resourceLimits": [{"resourceType": key, "maximum": value} for key, value in given.items()],
        "autoProvisioningDefaults": {
            "serviceAccount": ACCOUNT,
            "bootDiskKmsKey": KEY,
            "management": {"autoRepair": True, "autoUpgrade": True},
            "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        },
    }


def pool(
    name: str, changes: Mapping[str, Any] | None = None, *, of: str | None = None, machine: str = "g2-standard-24"
) -> Declared:
    """A pool of up to 4 on-demand nodes, by default with 2 L4 each, that keeps every rule; `of` names its cluster."""
    props: dict[str, Any] = {
        "name": name.rsplit("/", 1)[-1],
        "project": PROJECT,
        "location": REGION,
        "cluster": Ref(of, "name") if of else "elsewhere",
        "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4, "locationPolicy": "ANY"},
        "management": {"autoRepair": True, "autoUpgrade": True},
        "upgradeSettings": {"maxSurge": 1, "maxUnavailable": 0},
        "nodeConfig": {
            "machineType": machine,
            "serviceAccount": ACCOUNT,
            "bootDiskKmsKey": KEY,
            "workloadMetadataConfig": {"mode": "GKE_METADATA"},
            "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        },
    }
    if machine.startswith("g2-"):
        props["nodeConfig"]["guestAccelerators"] = [
            {"type": "nvidia-l4", "count": 2, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
        ]
    return Declared(NODE_POOL, name, changed(props, changes or {}))


QUEUED = {
    "queuedProvisioning": {"enabled": True},
    "nodeConfig.flexStart": True,
    "nodeConfig.maxRunDuration": "604800s",
    "nodeConfig.reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    "management.autoRepair": False,
}
"""Changes that make a pool one of Dynamic Workload Scheduler."""


def provider(name: str, of: str) -> Declared:
    """The Kubernetes provider of a cluster."""
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": {"server": "https://{}"}}],
        "users": [{"name": "u", "user": {"exec": {"command": "gke-gcloud-auth-plugin"}}}],
    }
    return Declared(KUBERNETES_PROVIDER, name, {"kubeconfig": Ref(of, "endpoint", json.dumps(kubeconfig))})


def kube(kind: str, name: str, props: Mapping[str, Any], *, by: str, namespace: str = "team-a") -> Declared:
    """A Kubernetes object; `kind` is a type token without `kubernetes:`."""
    group_version, short = kind.rsplit(":", 1)
    api_version = group_version.removeprefix("core/")
    short_name = name.rsplit("/", 1)[-1]
    metadata = {"name": short_name, "namespace": namespace}
    base = {"apiVersion": api_version, "kind": short, "metadata": metadata}
    given = dict(props)
    base["metadata"] = metadata | given.pop("metadata", {})
    return Declared(f"kubernetes:{kind}", name, base | given, provider=by)


def workload(name: str, changes: Mapping[str, Any] | None = None, *, by: str, kind: str = "Deployment") -> Declared:
    """A Deployment, or other workload with a pod template, that keeps every rule."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "env": [{"name": "TOKEN_FILE", "value": "/var/run/token"}],
    }
    spec = {"template": {"spec": {"serviceAccountName": "job", "containers": [container]}}}
    return kube(f"apps/v1:{kind}", name, {"spec": changed(spec, changes or {})}, by=by)


def container_change(**changes: Any) -> dict[str, Any]:
    """A change of a workload's only container."""
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    return {"template.spec.containers": [container | changes]}


def release(name: str, changes: Mapping[str, Any] | None = None, *, by: str, protect: bool = True) -> Declared:
    """The Helm release of Kueue."""
    props = {
        "name": "kueue",
        "namespace": "kueue-system",
        "chart": "oci://registry.k8s.io/kueue/charts/kueue",
        "version": "0.19.2",
        "values": {"controllerManager": {"replicas": 2}},
    }
    return Declared(HELM_RELEASE, name, changed(props, changes or {}), protect, by)


def flavor(name: str, labels: Mapping[str, str], *, by: str, **spec: Any) -> Declared:
    """A ResourceFlavor."""
    return Declared(
        f"{KUEUE}:ResourceFlavor",
        name,
        {"metadata": {"name": name.rsplit("/", 1)[-1]}, "spec": {"nodeLabels": dict(labels), **spec}},
        provider=by,
    )


def queue(name: str, quotas: Mapping[str, Any], *, by: str, **spec: Any) -> Declared:
    """A ClusterQueue; GPUs by flavor, with 8 CPUs and 16Gi of each."""
    group = {
        "coveredResources": ["nvidia.com/gpu", "cpu", "memory"],
        "flavors": [
            {
                "name": name,
                "resources": [
                    {"name": "nvidia.com/gpu", "nominalQuota": gpus},
                    {"name": "cpu", "nominalQuota": 8},
                    {"name": "memory", "nominalQuota": "16Gi"},
                ],
            }
            for name, gpus in quotas.items()
        ],
    }
    return Declared(
        f"{KUEUE}:ClusterQueue",
        name,
        {
            "metadata": {"name": name.rsplit("/", 1)[-1]},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
        },
        provider=by,
    )


def check(name: str, controller: str, *, by: str) -> Declared:
    """An AdmissionCheck."""
    spec = {"controllerName": f"kueue.x-k8s.io/{controller}"}
    return Declared(
        f"{KUEUE}:AdmissionCheck", name, {"metadata": {"name": name.rsplit("/", 1)[-1]}, "spec": spec}, provider=by
    )


def local_queue(name: str, cluster_queue: str, *, by: str) -> Declared:
    """A LocalQueue in namespace team-a."""
    metadata = {"name": name.rsplit("/", 1)[-1], "namespace": "team-a"}
    spec = {"clusterQueue": cluster_queue}
    return Declared(f"{KUEUE}:LocalQueue", name, {"metadata": metadata, "spec": spec}, provider=by)


def with_checks(*names: str) -> dict[str, Any]:
    """What makes a ClusterQueue use these checks."""
    return {"admissionChecks": [{"name": name} for name in names]}


def options(protect: bool = False) -> PolicyResourceOptions:
    return PolicyResourceOptions(protect, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])


def as_input(one: Declared, props: Any = None, config: Mapping[str, Any] | None = None) -> ResourceValidationArgs:
    """What a resource policy is called with."""
    given = one.known() if props is None else props
    return ResourceValidationArgs(one.type, given, one.urn, one.name, options(one.protect), None, config)


def as_stack(declared: Iterable[Declared]) -> list[PolicyResource]:
    """What a stack policy is called with."""
    listed = list(declared)
    providers = {
        one.name: PolicyProviderResource(one.type, {}, one.urn, one.name)
        for one in listed
        if one.type == KUBERNETES_PROVIDER
    }
    result = {
        one.name: PolicyResource(
            one.type,
            one.known(),
            one.urn,
            one.name,
            options(one.protect),
            providers.get(one.provider) if one.provider else None,
            None,
            [],
            {},
        )
        for one in listed
    }
    for one in listed:
        for key, value in one.props.items():
            if isinstance(value, Ref):
                source = result[value.resource]
                result[one.name].dependencies.append(source)
                result[one.name].property_dependencies[key] = [source]
    return list(result.values())
