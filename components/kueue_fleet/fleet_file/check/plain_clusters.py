"""Clusters that are not of GKE: what of Google Cloud's is not there, and what a fleet without GKE cannot have.

The fields of one cluster are judged in its model. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws,
https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity (both are parts of GKE).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_snake

from kueue_admission.kernel.form_rules import MISSING
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.controller_image import built_image
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.rules.clusters import NO_SERVER, NOT_OF_GKE, SAME_CLUSTER
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.worker_tokens import profile_credentials
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS

_LOCAL: Final = re.compile(r"localhost|127(\.\d+){3}|\[::1\]|kubernetes(\.default(\.svc(\..*)?)?)?")
"""Hosts that every pod and every cluster has for itself."""
_LEAVE_OUT: Final = "leave {cluster} out of its clusters"


class _Placed(NamedTuple):
    """Entries of a section that are of GKE, and so cannot be on other clusters."""

    section: str
    of_gke: Callable[[Any], bool]
    field: str
    wrong: str
    """`{cluster}` is the cluster."""
    fix: str


def _is_of_dws(check: AdmissionCheckEntry) -> bool:
    request = check.provisioning_request
    return request is not None and request.provisioning_class_name == QUEUED_PROVISIONING_CLASS


_PLACED: Final = (
    # Of a flavor that is derived from a node pool, the pool's rules speak.
    _Placed(
        "flavors",
        lambda flavor: flavor.compute_class is not None,
        "computeClass",
        "makes nodes by GKE's compute classes, and {cluster} is not of GKE",
        "write nodeLabels for {cluster} in a flavor of its own, and " + _LEAVE_OUT,
    ),
    _Placed(
        "admissionChecks",
        _is_of_dws,
        "provisioningRequest.provisioningClassName",
        f"{QUEUED_PROVISIONING_CLASS} is answered by DWS, and {{cluster}} is not of GKE, so that jobs would wait there "
        "for ever",
        "name another class, such as check-capacity.autoscaling.x-k8s.io of the cluster autoscaler, or " + _LEAVE_OUT,
    ),
    _Placed(
        "storage",
        lambda entry: True,
        "volume",
        "is mounted by a driver of GKE, and {cluster} is not of GKE",
        "remove it, or " + _LEAVE_OUT,
    ),
)


class _AtHome(NamedTuple):
    """A setting that is of Google Cloud, and so cannot be on this cluster."""

    cluster: Callable[[FleetSpec], str | None]
    given: Callable[[FleetSpec], object]
    path: str
    wrong: str
    """`{cluster}` is the cluster."""
    fix: str


def _bucket(fleet: FleetSpec) -> bool:
    section = fleet.controller
    history = section.history if section is not None else None
    return history is not None and (history.store or "").startswith("gs://")


_AT_HOME: Final = (
    _AtHome(
        lambda fleet: next(iter(fleet.plain_clusters), None),
        profile_credentials,
        "multiKueue.credentials",
        "ClusterProfile, whose plugin gives credentials of Google, and {cluster} is not of GKE",
        "write type: ServiceAccountToken",
    ),
    _AtHome(
        lambda fleet: fleet.controller_cluster,
        built_image,
        "controller.image",
        "is missing, but {cluster} is not of GKE, and `pulumi up` builds images into Artifact Registry",
        "build the image, and write its name; see docs/controller.md",
    ),
    _AtHome(
        lambda fleet: fleet.controller_cluster,
        _bucket,
        "controller.history.store",
        "is a bucket, which is written by Workload Identity, and {cluster} is not of GKE",
        "remove it, for a volume in the cluster",
    ),
    _AtHome(
        lambda fleet: fleet.controller_cluster,
        lambda fleet: fleet.fleet_page is not None and fleet.fleet_page.iap,
        "fleetPage.iap",
        "is GKE's ingress with IAP, and {cluster} is not of GKE",
        "remove it: viewers then use `kubectl port-forward`, and their own token",
    ),
    _AtHome(
        lambda fleet: fleet.home if fleet.clusters else None,
        lambda fleet: fleet.observability.installs_grafana,
        "observability.grafana.enabled",
        "true, but Grafana reads metrics by Workload Identity, and {cluster} is not of GKE",
        "set it to false, or existing to true",
    ),
)

_IN_GOOGLE_CLOUD: Final = {
    "reservations": "set",
    "futureReservations": "set",
    "commitments": "set",
    "observability.managedPrometheus": "true",
    "observability.dashboard": "true",
    "observability.alerts.enabled": "true",
}
"""What a fleet without GKE cannot have, and what messages call its value."""
_OF_GOOGLE_CLOUD: Final = ("project", "labels")
"""What is of no use there."""
_OF_CONNECTIONS: Final = ("server", "proxyUrl", "tlsServerName", "certificateAuthorityData")
"""How a manager reaches a worker."""


@fleet_check
def _of_gke(scope: Scope) -> Iterator[Problem]:
    """Nothing of GKE is asked for on these clusters."""
    for placed in _PLACED:
        for entry in scope.entries(placed.section):
            yield from _entry(scope, placed, entry)
    for setting in _AT_HOME:
        yield from _setting(scope, setting)


@fleet_check
def _project(scope: Scope) -> Iterator[Problem]:
    clusters = scope.entries("clusters")
    of_gke = [cluster for cluster in clusters if not cluster.outside_gke]
    if not scope.fleet.project and (of_gke or not clusters):
        yield MISSING.at("project", "is missing", "add the id of your Google Cloud project")


def _plain(scope: Scope, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in scope.fleet.plain_clusters]


@where_read
def _entry(scope: Scope, placed: _Placed, entry: Any) -> Iterator[Problem]:
    for name in _plain(scope, scope.fleet.clusters_of(entry)) if placed.of_gke(entry) else ():
        yield NOT_OF_GKE.at(f"{scope.path(entry)}.{placed.field}", placed.wrong, placed.fix).on(name)


@where_read
def _setting(scope: Scope, setting: _AtHome) -> Iterator[Problem]:
    cluster = setting.cluster(scope.fleet)
    if cluster in scope.fleet.plain_clusters and setting.given(scope.fleet):
        yield NOT_OF_GKE.at(setting.path, setting.wrong, setting.fix).on(cluster)


@fleet_check
def _without_gke(scope: Scope) -> Iterator[Problem]:
    """What is in Google Cloud alone."""
    fleet = scope.fleet
    if fleet.gke_clusters or not fleet.clusters:
        return
    nowhere = "no cluster of the fleet is in Google Cloud"
    for path, value in _IN_GOOGLE_CLOUD.items():
        if attrgetter(to_snake(path))(fleet):
            fix = "remove it" if value == "set" else "set it to false, or remove the section"
            yield NOT_OF_GKE.at(path, f"{value}, but {nowhere}", fix)
    for path in _OF_GOOGLE_CLOUD:
        if getattr(fleet, path):
            yield NO_EFFECT.at(path, f"has no effect, since {nowhere}", "remove it")


@fleet_check
def _accounts(scope: Scope) -> Iterator[Problem]:
    """Workload Identity is GKE's."""
    fleet = scope.fleet
    plain = _plain(scope, fleet.job_clusters)
    for team in fleet.teams if plain else ():
        field = "googleServiceAccount" if team.google_service_account is not None else "existingGoogleServiceAccount"
        if getattr(team, to_snake(field)) is None:
            continue
        path = f"{scope.path(team)}.{field}"
        if fleet.gke_clusters:
            wrong = (
                f"has no effect on {', '.join(plain)}: without Workload Identity, pods there act as no Google account"
            )
            yield NO_EFFECT.at(path, wrong, "keep queues of jobs that need it to clusters of GKE")
        else:
            yield NOT_OF_GKE.at(path, "set, but no cluster of the fleet has Workload Identity", "remove it")


@fleet_check
def _servers(scope: Scope) -> Iterator[Problem]:
    for cluster in scope.fleet.clusters:
        path = f"{scope.path(cluster)}.kubernetes"
        if cluster.kubernetes is None:
            continue
        if cluster.role == "worker" and cluster.kubernetes.server is None:
            yield NO_SERVER.at(
                f"{path}.server",
                "is missing, and the manager reaches a worker by it",
                "add the address, such as https://k8s.example.com:6443, unless a program gives it to Fleet",
            )
        elif cluster.role == "worker" and _LOCAL.fullmatch(cluster.kubernetes.host):
            wrong = f"{cluster.kubernetes.server}, which leads the manager's pods to themselves or to their own cluster"
            yield NO_SERVER.at(f"{path}.server", wrong, "write the address by which the manager reaches the worker")
        elif cluster.role != "worker":
            for alias in _OF_CONNECTIONS:
                if getattr(cluster.kubernetes, to_snake(alias)):
                    wrong = f"has no effect, since no cluster of the fleet connects to a {cluster.role}"
                    yield NO_EFFECT.at(f"{path}.{alias}", wrong, "remove it; Pulumi uses context")


@fleet_check
def _same_clusters(scope: Scope) -> Iterator[Problem]:
    """By the context Pulumi and commands reach them, by the rest the manager; some commands, by the cluster's name."""
    known: dict[tuple[str, object], str] = {("context", name): name for name in scope.fleet.cluster_names}
    for cluster in scope.fleet.clusters:
        connection = cluster.kubernetes
        if connection is None:
            continue
        keys: dict[str, object] = {"context": connection.context}
        if cluster.role == "worker" and connection.server is not None:
            keys["server"] = (connection.server, connection.proxy_url, connection.tls_server_name)
        for field, value in keys.items():
            other = known.setdefault((field, value), cluster.name)
            if value is not None and other != cluster.name:
                wrong = f"{getattr(connection, field)}, which is that of {other} too"
                path = f"{scope.path(cluster)}.kubernetes.{field}"
                yield SAME_CLUSTER.at(path, wrong, "write that of this cluster, or remove one of the two")
