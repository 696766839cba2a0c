"""The page for teams on the manager, as objects: beside the controller, from its image, without access to workers.

It reads with its viewers' rights alone. Behind IAP, which gives it no token of theirs, it may impersonate the members
of teams, and no other user.
"""

import hashlib
from typing import Any, Final, Literal

import yaml
from pydantic import Field

from kueue_admission.api.manifests import manifest, namespace_labels, namespace_manifest
from kueue_admission.kernel.base import SpecModel, Text
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.controller_image import controller_image
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME, FleetPage, FleetPageIap
from kueue_fleet.objects.cluster_profiles import NONROOT_USER, unprivileged
from kueue_fleet.objects.egress import api_server_egress
from kueue_fleet.objects.gpu_direct import GKE_NETWORKING_API
from kueue_fleet.objects.grants import (
    cluster_grant,
    job_namespaces,
    policy_rule,
    role_grant,
    service_account_subject,
)
from kueue_fleet.objects.teams import member_subjects

_FORWARD_NAME: Final = f"{PAGE_NAME}-forward"
VIEWER: Final = "kueue-fleet-page-viewer"
"""User that the page impersonates, together with the viewer's groups; it has no rights of its own."""
_PORT: Final = 8080
_FOLDER: Final = "/etc/kueue-fleet/configuration"
_LABELS: Final = {"app.kubernetes.io/name": PAGE_NAME}
_SKIP_AWAIT: Final = {"pulumi.com/skipAwait": "true"}
"""Of what Pulumi need not wait for: the Deployment says when the pods are ready, and the address of an ingress comes
minutes later. Pods of a rehearsal have loopback addresses, which no Service may have."""
_FRONT_ENDS: Final = ("35.191.0.0/16", "130.211.0.0/22")
"""From where GKE's ingress connects, also to look whether a pod answers.

Source: https://cloud.google.com/load-balancing/docs/health-check-concepts#ip-ranges."""


class PageConfiguration(SpecModel):
    """Everything that the page takes from the fleet."""

    fleet: Text
    """Name of the fleet."""
    cluster: Text
    """The cluster that jobs are submitted to."""
    role: Literal["manager", "standalone"] = "manager"
    """Of that cluster: no pod runs on a manager."""
    namespaces: tuple[Text, ...] = ()
    """Namespaces that have jobs."""
    teams: dict[Text, Text] = Field(default_factory=dict)
    """Team of each namespace that has one."""
    users: tuple[Text, ...] = ()
    """Users who are members of teams."""
    page: FleetPage
    """The section of the file."""


def page_configuration(fleet: FleetSpec, page: FleetPage) -> PageConfiguration:
    """The page's configuration."""
    return PageConfiguration(
        fleet=fleet.name,
        cluster=fleet.home,
        role="manager" if fleet.manager is not None else "standalone",
        namespaces=tuple(sorted(job_namespaces(fleet))),
        teams=dict(sorted(fleet.team_of.items())),
        users=tuple(_members(fleet, "user")),
        page=page,
    )


def render_fleet_page(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The page's objects on the manager or standalone cluster, in apply order; none elsewhere."""
    page, namespace = fleet.fleet_page, PAGE_NAME
    if page is None or fleet.controller_cluster != cluster:
        return []
    members = member_subjects(dict.fromkeys(member for team in fleet.teams for member in team.members))
    subject = service_account_subject(PAGE_NAME, namespace)
    text = yaml.safe_dump(page_configuration(fleet, page).wire(), sort_keys=True, width=1000)
    port = {"name": "http", "port": 80, "targetPort": "http"}
    service = {"selector": dict(_LABELS), "ports": [port]}
    return [
        namespace_manifest(namespace, namespace_labels(pod_security="restricted")),
        manifest("v1", "ServiceAccount", PAGE_NAME, namespace),
        *(cluster_grant(PAGE_NAME, page_rules(fleet, page.iap), subject) if page.iap is not None else []),
        *(role_grant(_FORWARD_NAME, namespace, _forward_rules(), *members) if page.iap is None and members else []),
        _network_policy(namespace, page.iap, fleet.cluster(cluster)),
        manifest("v1", "ConfigMap", PAGE_NAME, namespace, data={"config.yaml": text}),
        manifest("apps/v1", "Deployment", PAGE_NAME, namespace, spec=_deployment(fleet, text)),
        manifest("v1", "Service", PAGE_NAME, namespace, annotations=_service_annotations(page.iap), spec=service),
        *(_ingress(namespace, page.iap.host) if page.iap is not None else []),
    ]


def _forward_rules() -> list[dict[str, Any]]:
    """What members need for `kubectl port-forward`; there is nothing in the namespace but the page."""
    return [
        policy_rule("", "services", ["get"], [PAGE_NAME]),
        policy_rule("", "pods", ["get", "list"]),
        policy_rule("", "pods/portforward", ["create"]),
    ]


def page_rules(fleet: FleetSpec, iap: FleetPageIap) -> list[dict[str, Any]]:
    """What the page may do behind IAP: act as members of teams, users and groups by name; of groups as those of which
    the file says who is in them."""
    groups = [name for name in _members(fleet, "group") if name in iap.groups]
    return [
        policy_rule("", "users", ["impersonate"], [VIEWER, *_members(fleet, "user")]),
        *([policy_rule("", "groups", ["impersonate"], groups)] if groups else []),
    ]


def _members(fleet: FleetSpec, kind: str) -> list[str]:
    members = {member.partition(":")[::2] for team in fleet.teams for member in team.members}
    return sorted(name for of, name in members if of == kind)


def _network_policy(namespace: str, iap: FleetPageIap | None, home: ClusterEntry) -> Manifest:
    """Who may connect to it: Google's front ends, behind IAP; else nothing: `kubectl port-forward` comes by its node.

    It connects to API servers and DNS, and behind IAP to Google for the keys of its signatures.
    """
    blocks = [{"ipBlock": {"cidr": cidr}} for cidr in _FRONT_ENDS]
    spec = {
        "podSelector": {"matchLabels": dict(_LABELS)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": blocks, "ports": [{"protocol": "TCP", "port": _PORT}]}] if iap is not None else [],
        "egress": [
            api_server_egress(home),
            {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
        ],
    }
    return manifest("networking.k8s.io/v1", "NetworkPolicy", PAGE_NAME, namespace, spec=spec)


def _service_annotations(iap: FleetPageIap | None) -> dict[str, str]:
    if iap is None:
        return dict(_SKIP_AWAIT)
    return {
        "cloud.google.com/neg": '{"ingress": true}',
        "cloud.google.com/backend-config": f'{{"default": "{PAGE_NAME}"}}',
        **_SKIP_AWAIT,
    }


def _ingress(namespace: str, host: str) -> list[Manifest]:
    """HTTPS alone, with a certificate that Google makes, and signed in by IAP with Google's own OAuth client.

    Source: https://cloud.google.com/iap/docs/enabling-gke-howto,
    https://cloud.google.com/kubernetes-engine/docs/how-to/managed-certs.
    """
    health = {"type": "HTTP", "requestPath": "/healthz", "port": _PORT}
    backend = {"service": {"name": PAGE_NAME, "port": {"name": "http"}}}
    rule = {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    annotations = {
        "kubernetes.io/ingress.class": "gce",
        "kubernetes.io/ingress.allow-http": "false",
        "networking.gke.io/managed-certificates": PAGE_NAME,
        **_SKIP_AWAIT,
    }
    return [
        manifest(
            "cloud.google.com/v1",
            "BackendConfig",
            PAGE_NAME,
            namespace,
            spec={"iap": {"enabled": True}, "healthCheck": health},
        ),
        manifest(GKE_NETWORKING_API, "ManagedCertificate", PAGE_NAME, namespace, spec={"domains": [host]}),
        manifest(
            "networking.k8s.io/v1", "Ingress", PAGE_NAME, namespace, annotations=annotations, spec={"rules": [rule]}
        ),
    ]


def _deployment(fleet: FleetSpec, configuration: str) -> dict[str, Any]:
    # A new configuration is a new pod.
    marks = {"kueue-fleet.dev/configuration": hashlib.sha256(configuration.encode()).hexdigest()[:16]}
    probe = {"httpGet": {"path": "/healthz", "port": _PORT}, "timeoutSeconds": 5}
    container = {
        "name": PAGE_NAME,
        "image": controller_image(fleet),
        "command": ["python3", "-m", "kueue_fleet.page"],
        "args": [f"--config={_FOLDER}/config.yaml", f"--listen=$(POD_IP):{_PORT}"],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": {**probe, "initialDelaySeconds": 10, "periodSeconds": 20},
        "readinessProbe": {**probe, "periodSeconds": 10},
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": unprivileged(),
        "volumeMounts": [{"name": "configuration", "mountPath": _FOLDER, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": PAGE_NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NONROOT_USER,
            "runAsGroup": NONROOT_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "configuration", "configMap": {"name": PAGE_NAME}}],
    }
    return {
        "replicas": 1,
        "selector": {"matchLabels": dict(_LABELS)},
        "template": {"metadata": {"labels": dict(_LABELS), "annotations": marks}, "spec": pod},
    }
