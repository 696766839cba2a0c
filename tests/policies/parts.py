"""Declared resources that a rule is about, each by the one property that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.policies.declared import Declared, cluster, container_change, kube, queue, workload
from tests.policies.judged import gcp

from kueue_fleet.fleet_file.worker_tokens import ROTATE_WITHIN

RBAC = "rbac.authorization.k8s.io/v1"
HALVES = ["0.0.0.0/1", "128.0.0.0/1"]
HOST = {"name": "host", "hostPath": {"path": "/"}}
LB_TYPE = "networking.gke.io/load-balancer-type"
LB_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
INGRESS_CLASS = "kubernetes.io/ingress.class"
INTERNAL = {LB_TYPE: "Internal"}
LATEST, TOO_LATE = (str(datetime.now(UTC).date() + ROTATE_WITHIN + timedelta(days=n)) for n in (0, 2))  # noqa: TID251
"""The latest day by which a token may be replaced, and a day that is too late, also if the tests run past midnight."""
OF_A_TOKEN = {"kubernetes.io/service-account.name": "job"}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
SELECTS_ALL: list[dict[str, Any]] = [
    {},
    {"matchLabels": {}},
    {"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
]
"""Selectors that match cluster-admin too."""
READING = ["get", "list", "watch"]
SECRETS = {"resources": ["secrets"], "verbs": READING}
ADMISSION = "admissionregistration.k8s.io"
PART_OF = "app.kubernetes.io/part-of"


def role(*rules: Mapping[str, Any], kind: str = "ClusterRole", name: str = "x", **metadata: Any) -> Declared:
    given = [{"apiGroups": [""], **rule} for rule in rules]
    return kube(f"{RBAC}:{kind}", name, {"rules": given, "metadata": metadata}, by="p")


def aggregated(selector: Mapping[str, Any]) -> Declared:
    return kube(f"{RBAC}:ClusterRole", "x", {"aggregationRule": {"clusterRoleSelectors": [selector]}}, by="p")


def binding(*subjects: str, kind: str = "ClusterRoleBinding", to: str = "view") -> Declared:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to}
    groups = [{"kind": "Group", "name": name} for name in subjects]
    return kube(f"{RBAC}:{kind}", "x", {"roleRef": ref, "subjects": groups}, by="p")


def context(kind: str = "Deployment", **given: Any) -> Declared:
    """A workload whose container has this security context."""
    return workload("x", container_change(securityContext=given), by="p", kind=kind)


def of_pod(kind: str = "Deployment", **spec: Any) -> Declared:
    """A workload with these fields of its pod."""
    return workload("x", {f"template.spec.{key}": value for key, value in spec.items()}, by="p", kind=kind)


def of_container(**given: Any) -> Declared:
    """A workload whose container has these fields."""
    return workload("x", container_change(**given), by="p")


def with_token(seconds: int | None) -> Declared:
    """A workload with a token of its service account that expires after that time."""
    given = {"path": "token", "audience": "vault"} | ({"expirationSeconds": seconds} if seconds else {})
    sources = [{"configMap": {"name": "ca"}}, {"serviceAccountToken": given}]
    return of_pod(volumes=[{"name": "token", "projected": {"sources": sources}}])


def patched_pod(**spec: Any) -> Declared:
    """A patch of these fields of a pod."""
    return patch("apps/v1:Deployment", spec={"template": {"spec": spec}})


def mounted(kind: str, *, read_only: bool) -> Declared:
    mounts = [{"name": "host", "mountPath": "/host", "readOnly": read_only}]
    change = container_change(volumeMounts=mounts) | {"template.spec.volumes": [HOST]}
    return workload("x", change, by="p", kind=kind)


def affine(*terms: tuple[str, str, list[str]]) -> Declared:
    """A privileged DaemonSet that one of these terms of key, operator and values sends to its nodes."""
    listed = [{"matchExpressions": [{"key": key, "operator": how, "values": values}]} for key, how, values in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    privileged = [{"name": "c", "securityContext": {"privileged": True}}]
    return of_pod("DaemonSet", containers=privileged, affinity={"nodeAffinity": required})


def annotated(**annotations: str) -> Declared:
    """A workload whose pods have these annotations of AppArmor and example.com."""
    keys = {"app_armor": "container.apparmor.security.beta.kubernetes.io/main", "token": "example.com/token"}
    given = {keys[key]: value for key, value in annotations.items()}
    return workload("x", {"template.metadata": {"annotations": given}}, by="p")


def volume(**spec: Any) -> Declared:
    return kube("core/v1:PersistentVolume", "x", {"spec": spec}, by="p")


def patch(kind: str, **props: Any) -> Declared:
    return kube(f"{kind}Patch", "x", props, by="p")


def called(api_version: str, kind: str, type_: str) -> Declared:
    """A resource of a Pulumi type whose object says to be of that version and kind."""
    return kube(type_, "x", {"apiVersion": api_version, "kind": kind}, by="p")


def listing(type_: str, **held: Any) -> Declared:
    return kube(type_, "x", {"items": [held]} if held else {}, by="p")


def borrowing(kind: str) -> Declared:
    declared = queue("x", {"l4": 1}, by="p")
    declared.props["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = 1
    return replace(declared, type=declared.type.replace("ClusterQueue", kind))


def service(annotations: Mapping[str, str] | None = None, **spec: Any) -> Declared:
    metadata = {"annotations": dict(annotations)} if annotations else {}
    return kube("core/v1:Service", "x", {"metadata": metadata, "spec": {"type": "LoadBalancer", **spec}}, by="p")


def ingress(annotation: str | None, class_: str | None) -> Declared:
    """An Ingress of these classes, by its annotation and by its field."""
    metadata = {} if annotation is None else {"annotations": {INGRESS_CLASS: annotation}}
    spec = {} if class_ is None else {"ingressClassName": class_}
    return kube("networking.k8s.io/v1:Ingress", "x", {"metadata": metadata, "spec": spec}, by="p")


def gateway(class_: str) -> Declared:
    return kube("gateway.networking.k8s.io/v1:Gateway", "x", {"spec": {"gatewayClassName": class_}}, by="p")


def secret(type_: str = "kubernetes.io/service-account-token", **annotations: str) -> Declared:
    ours = {f"kueue-fleet.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    given = {"metadata": {"annotations": OF_A_TOKEN | ours}, "type": type_}
    return kube("core/v1:Secret", "x", given, by="p")


def environment(**variables: str) -> Declared:
    return workload("x", container_change(env=[{"name": k, "value": v} for k, v in variables.items()]), by="p")


def arguments(*given: str) -> Declared:
    return workload("x", container_change(args=list(given)), by="p")


def config_map(**data: str) -> Declared:
    return kube("core/v1:ConfigMap", "x", {"data": data}, by="p")


def namespace(name: str = "x", **pod_security: str) -> Declared:
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in pod_security.items()}
    return kube("core/v1:Namespace", name, {"metadata": {"labels": labels}}, by="p")


def firewall(*sources: str, **allowed: Any) -> Declared:
    return gcp("compute/firewall:Firewall", sourceRanges=list(sources), allows=[{"protocol": "all", **allowed}])


def authorized(*ranges: str, **given: bool) -> Declared:
    blocks = {"cidrBlocks": [{"cidrBlock": one} for one in ranges], **given}
    return cluster("x", {"controlPlaneEndpointsConfig": None, "masterAuthorizedNetworksConfig": blocks})
