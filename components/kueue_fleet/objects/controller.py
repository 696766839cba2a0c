"""Everything of the fleet's own controller in the clusters, as objects.

On the manager the Deployment and all that belongs to it; on a worker the account by which the controller reads it. The
Secret with the workers' kubeconfigs is not among them: only the component has the tokens.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import yaml

from kueue_admission.api.manifests import manifest, namespace_manifest
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import HOSTNAME_LABEL, KUEUE_GROUP
from kueue_fleet.fleet_file.controller_image import controller_image
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import budgeted_queues, following_clusters
from kueue_fleet.fleet_file.worker_tokens import (
    first_token_manifest,
    manager_account,
    profile_credentials,
    token_credentials,
    worker_tokens,
)
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.cluster_profiles import (
    NONROOT_USER,
    plugin_containers,
    plugin_mount,
    plugin_volumes,
    unprivileged,
)
from kueue_fleet.objects.controller_values import asks_for_nodes, controller_configuration
from kueue_fleet.objects.egress import api_server_egress
from kueue_fleet.objects.grants import (
    cluster_grant,
    job_namespaces,
    namespace_grants,
    policy_rule,
    role_grant,
    service_account_subject,
    worker_service_account,
    worker_subject,
)
from kueue_fleet.objects.monitoring import pod_monitor, pod_monitoring
from kueue_fleet.objects.policies import denying_policy
from kueue_fleet.settings.configuration import HISTORY_FOLDER, LEASE_NAME, LEDGER_NAME
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, AdmissionControllerArgs
from kueue_fleet.settings.tokens import CONTROLLER_NAME, KUBECONFIG_KEY

JOBS_ROLE_NAME: Final = f"{CONTROLLER_NAME}-jobs"
"""Name of what is granted to it in the namespaces that have jobs."""
TOKENS_ROLE_NAME: Final = f"{CONTROLLER_NAME}-tokens"
"""Name of what is granted to it to renew the tokens by which the workers are reached."""
RESUME_POLICY_NAME: Final = f"{CONTROLLER_NAME}-resumes"
"""Name of the policy on what it may patch of jobs."""
_FOLLOW: Final = ["list", "watch"]
_AUTOSCALING: Final = "autoscaling.x-k8s.io"
_PORT: Final = 8080
_LABELS: Final = {"app.kubernetes.io/name": CONTROLLER_NAME}
_FOLDER: Final = "/etc/kueue-fleet"
WORKERS_NAME: Final = f"{CONTROLLER_NAME}-workers"
"""Name of the ConfigMap with the workers' kubeconfigs, where there are no tokens in them."""
_METADATA_SERVER: Final = (
    {"to": [{"ipBlock": {"cidr": "169.254.169.252/32"}}], "ports": [{"protocol": "TCP", "port": 988}]},
    {"to": [{"ipBlock": {"cidr": "169.254.169.254/32"}}], "ports": [{"protocol": "TCP", "port": 80}]},
)
"""Where pods get credentials of Google accounts; the second with Dataplane V2.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity#network-policy."""


def capacity_rules(fleet: FleetSpec, cluster: str) -> list[dict[str, Any]]:
    """What the controller does on a cluster with queues whose quotas follow capacity or windows: it reads nodes where
    the first are, and writes these queues; with a history, it reads nodes everywhere."""
    queues = [queue for queue in fleet.cluster_queues if cluster in following_clusters(fleet, queue)]
    names = sorted(queue.name for queue in queues)
    counts = any(queue.quota_follows == "capacity" for queue in queues)
    section = fleet.controller
    records = section is not None and section.history is not None
    nodes = [policy_rule("", "nodes", _FOLLOW)] if records or (counts and fleet.cluster(cluster).runs_jobs) else []
    return [*nodes, *([policy_rule(KUEUE_GROUP, "clusterqueues", ["patch"], names)] if names else [])]


def manager_rules(*, asks: bool, explains: bool) -> list[dict[str, Any]]:
    """What the controller does in the whole manager; `manager_job_rules` and `lease_rules` have the rest.

    `asks`: queues of this cluster ask for nodes by ProvisioningRequests, which the controller follows. `explains`: it
    says of jobs why they wait, and follows the queues for that.
    """
    queues = ("clusterqueues", "cohorts", "resourceflavors", "localqueues") if explains else ()
    return [
        *(policy_rule(KUEUE_GROUP, kind, _FOLLOW) for kind in queues),
        *([policy_rule(_AUTOSCALING, "provisioningrequests", _FOLLOW)] if asks else []),
        policy_rule("", "namespaces", _FOLLOW),
        policy_rule(KUEUE_GROUP, "workloads", _FOLLOW),
        policy_rule(KUEUE_GROUP, "multikueueclusters", _FOLLOW),
        policy_rule(KUEUE_GROUP, "multikueueconfigs", _FOLLOW),
        policy_rule(KUEUE_GROUP, "admissionchecks", _FOLLOW),
        policy_rule(KUEUE_GROUP, "admissionchecks/status", ["patch"]),
    ]


def manager_job_rules(*, job_set: bool, changes_workloads: bool, asks: bool, dispatches: bool) -> list[dict[str, Any]]:
    """What the controller does on the manager in each namespace that has jobs of the fleet.

    Where queues of this cluster ask for nodes (`asks`), it deletes a ProvisioningRequest, so that Kueue asks again.
    Where it sends jobs to workers (`dispatches`), it resumes one that has ended before Kueue recorded where.
    """
    kinds = [("batch", "jobs"), *([("jobset.x-k8s.io", "jobsets")] if job_set else [])]
    return [
        policy_rule("", "events", ["create"]),
        policy_rule(KUEUE_GROUP, "workloads/status", ["patch"]),
        *([policy_rule(KUEUE_GROUP, "workloads", ["patch"])] if changes_workloads else []),
        *([policy_rule(_AUTOSCALING, "provisioningrequests", ["delete"])] if asks else []),
        *(policy_rule(group, kind, ["get"]) for group, kind in kinds),
        *(policy_rule(group, f"{kind}/status", ["patch"]) for group, kind in kinds),
        *(policy_rule(group, kind, ["patch"]) for group, kind in kinds if dispatches),
    ]


def lease_rules() -> list[dict[str, Any]]:
    """What the leader election does in the controller's namespace; creating cannot be limited to a name."""
    return [
        policy_rule("coordination.k8s.io", "leases", ["create"]),
        policy_rule("coordination.k8s.io", "leases", ["get", "update"], [LEASE_NAME]),
    ]


def ledger_rules() -> list[dict[str, Any]]:
    """What the controller does in its namespace where budgets are enforced: it keeps what teams used."""
    return [
        policy_rule("", "configmaps", ["create"]),
        policy_rule("", "configmaps", ["get", "patch"], [LEDGER_NAME]),
    ]


def token_rules(fleet: FleetSpec, namespace: str) -> list[dict[str, Any]]:
    """What the controller does in a namespace of the manager to renew the tokens that are kept there; may be none."""
    names = [token.secret for token in worker_tokens(fleet) if token.secret_namespace == namespace]
    return [policy_rule("", "secrets", ["get", "patch"], names)] if names else []


def worker_token_rules(fleet: FleetSpec, worker: str) -> list[dict[str, Any]]:
    """What the controller does on a worker to renew the tokens of its accounts, and to revoke the first ones."""
    tokens = [token for token in worker_tokens(fleet) if token.worker == worker]
    if not tokens:
        return []
    return [
        policy_rule("", "serviceaccounts/token", ["create"], [token.account for token in tokens]),
        policy_rule("", "secrets", ["delete"], [token.first_secret for token in tokens]),
    ]


def controller_worker_rules() -> list[dict[str, Any]]:
    """What the controller does in a whole worker: it reads, and answers for its own admission check."""
    kinds = ("workloads", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks", "localqueues")
    return [
        policy_rule("", "namespaces", _FOLLOW),
        *(policy_rule(KUEUE_GROUP, kind, _FOLLOW) for kind in kinds),
        policy_rule(_AUTOSCALING, "provisioningrequests", _FOLLOW),
        policy_rule(KUEUE_GROUP, "admissionchecks/status", ["patch"], [ASSIGNMENT_CHECK]),
    ]


def controller_worker_job_rules() -> list[dict[str, Any]]:
    """What the controller does on a worker in each namespace that has jobs of the fleet: it assigns them."""
    return [policy_rule(KUEUE_GROUP, "workloads/status", ["patch"])]


def render_controller_worker_access(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """Roles and bindings for the controller on `worker`; with tokens, ServiceAccount and token Secret too.

    Empty where the fleet has no controller. Raises KeyError for an unknown cluster.
    """
    if fleet.controller is None or fleet.cluster(worker).role != "worker":
        return []
    subject = worker_subject(fleet, CONTROLLER_NAME)
    renewal = worker_token_rules(fleet, worker)
    return [
        *worker_service_account(fleet, CONTROLLER_NAME),
        *cluster_grant(CONTROLLER_NAME, [*controller_worker_rules(), *capacity_rules(fleet, worker)], subject),
        *namespace_grants(JOBS_ROLE_NAME, controller_worker_job_rules(), subject, job_namespaces(fleet)),
        *(role_grant(TOKENS_ROLE_NAME, fleet.kueue.namespace, renewal, subject) if renewal else []),
        *first_token_manifest(fleet, CONTROLLER_NAME),
    ]


def render_controller(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The controller's objects on the manager or standalone cluster, in apply order; none elsewhere."""
    section = fleet.controller
    if section is None or fleet.controller_cluster != cluster:
        return []
    namespace, asks = section.namespace, asks_for_nodes(fleet, cluster)
    text = yaml.safe_dump(controller_configuration(fleet).wire(), sort_keys=True, width=1000)
    subject = service_account_subject(CONTROLLER_NAME, namespace)
    objects = [
        namespace_manifest(namespace),
        _service_account(fleet, namespace),
        *(_resume_policy(namespace) if fleet.multi_kueue is not None else ()),
        *cluster_grant(
            CONTROLLER_NAME,
            [*manager_rules(asks=asks, explains=section.explain_waiting), *capacity_rules(fleet, cluster)],
            subject,
        ),
        *namespace_grants(
            JOBS_ROLE_NAME,
            manager_job_rules(
                job_set=fleet.job_set.enabled,
                changes_workloads=any(q.fallback for q in fleet.cluster_queues) or bool(budgeted_queues(fleet)),
                asks=asks,
                dispatches=fleet.multi_kueue is not None,
            ),
            subject,
            job_namespaces(fleet),
        ),
        *role_grant(
            CONTROLLER_NAME, namespace, [*lease_rules(), *(ledger_rules() if budgeted_queues(fleet) else ())], subject
        ),
        *(
            rules_manifest
            for place in dict.fromkeys((fleet.kueue.namespace, namespace))
            if (rules := token_rules(fleet, place))
            for rules_manifest in role_grant(TOKENS_ROLE_NAME, place, rules, subject)
        ),
        manifest("v1", "ConfigMap", CONTROLLER_NAME, namespace, data={"config.yaml": text}),
        _network_policy(namespace, fleet, fleet.cluster(cluster)),
        _disruption_budget(namespace, section.replicas),
        manifest("apps/v1", "Deployment", CONTROLLER_NAME, namespace, spec=_deployment(fleet, text)),
    ]
    entry, endpoint = fleet.cluster(cluster), {"port": "http", "path": "/metrics", "interval": "30s"}
    if fleet.observability.managed_prometheus and not entry.outside_gke:
        objects.append(pod_monitoring(CONTROLLER_NAME, namespace, _LABELS, endpoint))
    if entry.pod_monitors is not None:
        objects.append(pod_monitor(entry.pod_monitors, CONTROLLER_NAME, namespace, _LABELS, endpoint))
    return objects


def _resume_policy(namespace: str) -> list[Manifest]:
    """The controller changes no job but one that has ended, of which nothing runs whatever it says.

    It may patch jobs in order to resume such a one; RBAC cannot say more than that.
    """
    end_condition = "c.status == 'True' && c.type in ['Complete', 'Completed', 'Failed']"
    validation = {
        "expression": "request.operation == 'UPDATE' && has(oldObject.status) && has(oldObject.status.conditions) && "
        f"oldObject.status.conditions.exists(c, {end_condition})",
        "message": "the fleet's controller changes no job that has not ended",
        "reason": "Forbidden",
    }
    account = f"request.userInfo.username == 'system:serviceaccount:{namespace}:{CONTROLLER_NAME}'"
    kinds = [("batch", "v1", ("jobs",)), ("jobset.x-k8s.io", "*", ("jobsets",))]
    return denying_policy(RESUME_POLICY_NAME, kinds, ("is-the-controller", account), [validation])


def _service_account(fleet: FleetSpec, namespace: str) -> Manifest:
    account = manager_account(fleet, CONTROLLER_NAME)
    acts_as = {WORKLOAD_IDENTITY_ANNOTATION: account.address} if account is not None else {}
    return manifest("v1", "ServiceAccount", CONTROLLER_NAME, namespace, annotations=acts_as)


def _network_policy(namespace: str, fleet: FleetSpec, home: ClusterEntry) -> Manifest:
    """Who may connect to the pods, and to whom they may: collectors of metrics to them, they to API servers and DNS.

    The kubelet's probes come from the node, which no policy keeps out.
    """
    prometheus = [home.pod_monitors.namespace] if home.pod_monitors is not None else []
    collectors = {
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": list(dict.fromkeys(["gmp-system", "gke-gmp-system", "monitoring", *prometheus])),
                }
            ]
        }
    }
    spec = {
        "podSelector": {"matchLabels": dict(_LABELS)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [collectors], "ports": [{"protocol": "TCP", "port": _PORT}]}],
        "egress": [
            api_server_egress(home, (cluster for cluster in fleet.clusters if cluster.role == "worker")),
            {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
            *(_METADATA_SERVER if manager_account(fleet, CONTROLLER_NAME) is not None else ()),
        ],
    }
    return manifest("networking.k8s.io/v1", "NetworkPolicy", CONTROLLER_NAME, namespace, spec=spec)


def _disruption_budget(namespace: str, replicas: int) -> Manifest:
    """One replica may be away at a time; of a single one, that one too, or its node could never be drained."""
    spec: dict[str, Any] = {"maxUnavailable": 1, "selector": {"matchLabels": dict(_LABELS)}}
    if replicas > 1:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    return manifest("policy/v1", "PodDisruptionBudget", CONTROLLER_NAME, namespace, spec=spec)


def _deployment(fleet: FleetSpec, configuration: str) -> dict[str, Any]:
    section = fleet.controller
    credentials = token_credentials(fleet)
    assert section is not None
    marks = {
        # A new configuration, or a new token on every worker, is a new set of pods.
        "kueue-fleet.dev/configuration": hashlib.sha256(configuration.encode()).hexdigest()[:16],
        "kueue-fleet.dev/rotation": credentials.rotation if credentials is not None else "",
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME_LABEL,
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
                    "runAsUser": NONROOT_USER,
                    "runAsGroup": NONROOT_USER,
                    "fsGroup": NONROOT_USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "topologySpreadConstraints": [spread],
                "terminationGracePeriodSeconds": 20,
                **({"initContainers": plugins} if (plugins := plugin_containers(fleet)) else {}),
                "containers": [_container(fleet)],
                "volumes": [
                    {"name": "configuration", "configMap": {"name": CONTROLLER_NAME}},
                    {"name": "workers", **_workers_volume(fleet)},
                    *plugin_volumes(fleet),
                    *_history_volume(section),
                ],
            },
        },
    }


def _history_volume(section: AdmissionControllerArgs) -> list[dict[str, Any]]:
    claim = section.history.volume_claim if section.history is not None else None
    return [] if claim is None else [{"name": "history", "persistentVolumeClaim": {"claimName": claim}}]


def _workers_volume(fleet: FleetSpec) -> dict[str, Any]:
    """A file with a kubeconfig for each worker, under the worker's name; each Secret is renewed on its own."""
    if profile_credentials(fleet) is not None:
        return {"configMap": {"name": WORKERS_NAME}}
    sources = [
        {"secret": {"name": token.secret, "items": [{"key": KUBECONFIG_KEY, "path": token.worker}]}}
        for token in worker_tokens(fleet)
        if token.account == CONTROLLER_NAME
    ]
    return {"projected": {"sources": sources}} if sources else {"emptyDir": {}}


def _container(fleet: FleetSpec) -> dict[str, Any]:
    section = fleet.controller
    assert section is not None
    # Measured: docs/measurements.md.
    mebibytes = 256 + 3 * max(0, len(fleet.worker_names) - MOST_CLUSTERS) + (128 if section.history is not None else 0)

    def field(name: str, path: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

    def probe(path: str, period: int) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": _PORT}, "periodSeconds": period, "timeoutSeconds": 5}

    return {
        "name": "controller",
        "image": controller_image(fleet),
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
            "requests": {"cpu": "250m", "memory": f"{mebibytes}Mi", "ephemeral-storage": "64Mi"},
            "limits": {"memory": f"{2 * mebibytes}Mi"},
        },
        "securityContext": unprivileged(),
        "volumeMounts": [
            {"name": "configuration", "mountPath": f"{_FOLDER}/configuration", "readOnly": True},
            {"name": "workers", "mountPath": f"{_FOLDER}/workers", "readOnly": True},
            *([plugin_mount(f"{_FOLDER}/plugins")] if plugin_volumes(fleet) else []),
            *({"name": volume["name"], "mountPath": HISTORY_FOLDER} for volume in _history_volume(section)),
        ],
    }
