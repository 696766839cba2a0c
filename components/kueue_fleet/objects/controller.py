"""Everything of the fleet's own controller in the clusters, as objects.

In: a fleet with an `admissionController`, and the name of a cluster. Out: on the manager the Deployment and all that
belongs to it; on a worker the account by which the controller reads it. The Secret with the workers' kubeconfigs is not
among them: only the component has the tokens.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import yaml

from kueue_fleet.fleet_file.grants import (
    RBAC_API,
    RBAC_GROUP,
    cluster_grant,
    job_namespaces,
    namespace_grants,
    policy_rule,
    service_account_subject,
)
from kueue_fleet.fleet_file.model.clusters import ServiceAccountToken
from kueue_fleet.fleet_file.model.dispatch import ASSIGNMENT_CHECK
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.kueue_api.manifests import Manifest, manifest, namespace_manifest
from kueue_fleet.kueue_api.names import KUEUE_GROUP
from kueue_fleet.objects.access import ROTATE_BY_ANNOTATION
from kueue_fleet.objects.controller_configuration import LEASE_NAME, controller_configuration
from kueue_fleet.objects.monitoring import POD_MONITORING_API

CONTROLLER_NAME: Final = "kueue-fleet-controller"
"""Name of the controller's objects on the manager, and of its account on each worker."""
JOBS_ROLE_NAME: Final = f"{CONTROLLER_NAME}-jobs"
"""Name of what is granted to it in the namespaces that have jobs."""
WORKERS_SECRET: Final = "kueue-fleet-workers"  # noqa: S105 - a name
"""Secret beside the controller: a kubeconfig for each worker, under the worker's name."""
_FOLLOW: Final = ["list", "watch"]
_PORT: Final = 8080
_LABELS: Final = {"app.kubernetes.io/name": CONTROLLER_NAME}
_USER: Final = 65532
_FOLDER: Final = "/etc/kueue-fleet"


def manager_rules() -> list[dict[str, Any]]:
    """What the controller does in the whole manager; `manager_job_rules` and `lease_rules` have the rest."""
    return [
        policy_rule("", "namespaces", _FOLLOW),
        policy_rule(KUEUE_GROUP, "workloads", _FOLLOW),
        policy_rule(KUEUE_GROUP, "multikueueclusters", _FOLLOW),
        policy_rule(KUEUE_GROUP, "multikueueconfigs", _FOLLOW),
        policy_rule(KUEUE_GROUP, "admissionchecks", _FOLLOW),
        policy_rule(KUEUE_GROUP, "admissionchecks/status", ["patch"]),
    ]


def manager_job_rules(*, job_set: bool) -> list[dict[str, Any]]:
    """What the controller does on the manager in each namespace that has jobs of the fleet."""
    kinds = [("batch", "jobs"), *([("jobset.x-k8s.io", "jobsets")] if job_set else [])]
    return [
        policy_rule("", "events", ["create"]),
        policy_rule(KUEUE_GROUP, "workloads/status", ["patch"]),
        *(policy_rule(group, kind, ["get"]) for group, kind in kinds),
        *(policy_rule(group, f"{kind}/status", ["patch"]) for group, kind in kinds),
    ]


def lease_rules() -> list[dict[str, Any]]:
    """What the leader election does in the controller's namespace; creating cannot be limited to a name."""
    named = policy_rule("coordination.k8s.io", "leases", ["get", "update"])
    named["resourceNames"] = [LEASE_NAME]
    return [policy_rule("coordination.k8s.io", "leases", ["create"]), named]


def controller_worker_rules() -> list[dict[str, Any]]:
    """What the controller does in a whole worker: it reads, and answers for its own admission check."""
    kinds = ("workloads", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks", "localqueues")
    answer = policy_rule(KUEUE_GROUP, "admissionchecks/status", ["patch"])
    answer["resourceNames"] = [ASSIGNMENT_CHECK]
    return [
        policy_rule("", "namespaces", _FOLLOW),
        *(policy_rule(KUEUE_GROUP, kind, _FOLLOW) for kind in kinds),
        policy_rule("autoscaling.x-k8s.io", "provisioningrequests", _FOLLOW),
        answer,
    ]


def controller_worker_job_rules() -> list[dict[str, Any]]:
    """What the controller does on a worker in each namespace that has jobs of the fleet: it assigns them."""
    return [policy_rule(KUEUE_GROUP, "workloads/status", ["patch"])]


def render_controller_worker_access(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """ServiceAccount, roles, bindings and token Secret for the controller on `worker`.

    Empty where the fleet has no controller, or another kind of credentials. Raises KeyError for an unknown cluster.
    """
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    if (
        fleet.admission_controller is None
        or not isinstance(credentials, ServiceAccountToken)
        or fleet.cluster(worker).role != "worker"
    ):
        return []
    namespace = fleet.kueue.namespace
    token = manifest(
        "v1",
        "Secret",
        f"{CONTROLLER_NAME}-{credentials.rotation}",
        namespace,
        type="kubernetes.io/service-account-token",
    )
    token["metadata"]["annotations"] = {
        "kubernetes.io/service-account.name": CONTROLLER_NAME,
        ROTATE_BY_ANNOTATION: str(credentials.rotate_by),
    }
    subject = service_account_subject(CONTROLLER_NAME, namespace)
    return [
        manifest("v1", "ServiceAccount", CONTROLLER_NAME, namespace),
        *cluster_grant(CONTROLLER_NAME, controller_worker_rules(), subject),
        *namespace_grants(JOBS_ROLE_NAME, controller_worker_job_rules(), subject, job_namespaces(fleet)),
        token,
    ]


def render_controller(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The controller's objects on the manager, in apply order; none elsewhere, or where the fleet has no controller."""
    section = fleet.admission_controller
    if section is None or fleet.multi_kueue is None or fleet.cluster(cluster).role != "manager":
        return []
    namespace = section.namespace
    text = yaml.safe_dump(controller_configuration(fleet).wire(), sort_keys=True, width=1000)
    subject = service_account_subject(CONTROLLER_NAME, namespace)
    role = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": CONTROLLER_NAME}
    objects = [
        namespace_manifest(namespace),
        manifest("v1", "ServiceAccount", CONTROLLER_NAME, namespace),
        *cluster_grant(CONTROLLER_NAME, manager_rules(), subject),
        *namespace_grants(
            JOBS_ROLE_NAME, manager_job_rules(job_set=fleet.job_set.enabled), subject, job_namespaces(fleet)
        ),
        manifest(RBAC_API, "Role", CONTROLLER_NAME, namespace, rules=lease_rules()),
        manifest(RBAC_API, "RoleBinding", CONTROLLER_NAME, namespace, roleRef=role, subjects=[subject]),
        manifest("v1", "ConfigMap", CONTROLLER_NAME, namespace, data={"config.yaml": text}),
        _network_policy(namespace),
        _disruption_budget(namespace, section.replicas),
        manifest("apps/v1", "Deployment", CONTROLLER_NAME, namespace, spec=_deployment(fleet, text)),
    ]
    if fleet.observability.managed_prometheus:
        endpoint = {"port": "http", "path": "/metrics", "interval": "30s"}
        monitoring = {"selector": {"matchLabels": dict(_LABELS)}, "endpoints": [endpoint]}
        objects.append(manifest(POD_MONITORING_API, "PodMonitoring", CONTROLLER_NAME, namespace, spec=monitoring))
    return objects


def _network_policy(namespace: str) -> Manifest:
    """In: metrics, from the collectors (the kubelet's probes come from the node, which no policy keeps out). Out: the
    API servers, and names."""
    collectors = {
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": ["gmp-system", "gke-gmp-system", "monitoring"],
                }
            ]
        }
    }
    spec = {
        "podSelector": {"matchLabels": dict(_LABELS)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [collectors], "ports": [{"protocol": "TCP", "port": _PORT}]}],
        "egress": [
            {"ports": [{"protocol": "TCP", "port": 443}]},
            {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        ],
    }
    return manifest("networking.k8s.io/v1", "NetworkPolicy", CONTROLLER_NAME, namespace, spec=spec)


def _disruption_budget(namespace: str, replicas: int) -> Manifest:
    """One replica may be away at a time; of a single one, that one too, or its node could never be drained."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(_LABELS)}}
    made = manifest("policy/v1", "PodDisruptionBudget", CONTROLLER_NAME, namespace, spec=spec)
    if replicas > 1:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    return made


def _deployment(fleet: FleetSpec, configuration: str) -> dict[str, Any]:
    section = fleet.admission_controller
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    assert section is not None
    marks = {
        # A new configuration, or a new token on every worker, is a new set of pods.
        "kueue-fleet.dev/configuration": hashlib.sha256(configuration.encode()).hexdigest()[:16],
        "kueue-fleet.dev/rotation": credentials.rotation if isinstance(credentials, ServiceAccountToken) else "",
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(_LABELS)},
    }
    return {
        "replicas": section.replicas,
        "selector": {"matchLabels": dict(_LABELS)},
        "template": {
            "metadata": {"labels": dict(_LABELS), "annotations": marks},
            "spec": {
                "serviceAccountName": CONTROLLER_NAME,
                "priorityClassName": fleet.kueue.priority_class_name,
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": _USER,
                    "runAsGroup": _USER,
                    "fsGroup": _USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "topologySpreadConstraints": [spread],
                "terminationGracePeriodSeconds": 20,
                "containers": [_container(section.image)],
                "volumes": [
                    {"name": "configuration", "configMap": {"name": CONTROLLER_NAME}},
                    {"name": "workers", "secret": {"secretName": WORKERS_SECRET}},
                ],
            },
        },
    }


def _container(image: str) -> dict[str, Any]:
    def field(name: str, path: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    def probe(path: str, period: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": _PORT}, "periodSeconds": period, "timeoutSeconds": 5}

    return {
        "name": "controller",
        "image": image,
        "args": [
            f"--config={_FOLDER}/configuration/config.yaml",
            f"--workers={_FOLDER}/workers",
            f"--listen=$(POD_IP):{_PORT}",
            "--identity=$(POD_NAME)",
        ],
        "env": [field("POD_IP", "status.podIP"), field("POD_NAME", "metadata.name")],
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": {**probe("/healthz", 20), "initialDelaySeconds": 10},
        "readinessProbe": probe("/readyz", 10),
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi", "ephemeral-storage": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "configuration", "mountPath": f"{_FOLDER}/configuration", "readOnly": True},
            {"name": "workers", "mountPath": f"{_FOLDER}/workers", "readOnly": True},
        ],
    }
