"""Clusters that are not of GKE: what of Google Cloud's is not there, and what a fleet without GKE cannot have.

The fields of one cluster are judged in its model. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws,
https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity (both are parts of GKE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueue_admission.forms.form_rules import MISSING
from kueue_admission.forms.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.controller_image import built_image
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry, FlavorEntry
from kueue_fleet.fleet_file.rules.clusters import NO_SERVER, NOT_OF_GKE
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.worker_tokens import profile_credentials
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS

_OF_GOOGLE_CLOUD = ("reservations", "future_reservations", "commitments", "storage")
_LEAVE_OUT = "leave {cluster} out of its clusters"


@fleet_check
def check_plain_clusters(scope: Scope) -> Iterator[Problem]:
    """Nothing of Google's is asked for on these clusters, and a project is named where there are others."""
    yield from _project(scope)
    for flavor in scope.entries("flavors"):
        yield from _flavor(scope, flavor)
    for check in scope.entries("admissionChecks"):
        yield from _check(scope, check)
    yield from _storage(scope)
    yield from _credentials(scope)
    yield from _controller(scope)
    yield from _observability(scope)
    yield from _without_gke(scope)
    yield from _accounts(scope)
    yield from _servers(scope)


@where_read
def _project(scope: Scope) -> Iterator[Problem]:
    clusters = scope.entries("clusters")
    of_gke = [cluster for cluster in clusters if cluster.platform != "Kubernetes"]
    if not scope.fleet.project and (of_gke or not clusters):
        yield MISSING.at("project", "is missing", "add the id of your Google Cloud project")


def _plain(scope: Scope, names: Iterable[str]) -> list[str]:
    return [name for name in names if name in scope.fleet.plain_clusters]


@where_read
def _flavor(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    """Of a flavor that is derived from a node pool, the pool's rules speak."""
    for name in _plain(scope, scope.fleet.clusters_of(flavor)) if flavor.compute_class is not None else ():
        yield NOT_OF_GKE.at(
            f"{scope.path(flavor)}.computeClass",
            "makes nodes by GKE's compute classes, and {cluster} is not of GKE",
            "write nodeLabels for {cluster} in a flavor of its own, and " + _LEAVE_OUT,
        ).on(name)


@where_read
def _check(scope: Scope, check: AdmissionCheckEntry) -> Iterator[Problem]:
    request = check.provisioning_request
    if request is None or request.provisioning_class_name != QUEUED_PROVISIONING_CLASS:
        return
    for name in _plain(scope, scope.fleet.clusters_of(check)):
        yield NOT_OF_GKE.at(
            f"{scope.path(check)}.provisioningRequest.provisioningClassName",
            f"{QUEUED_PROVISIONING_CLASS} is answered by DWS, and {{cluster}} is not of GKE, so that jobs would "
            "wait there for ever",
            "name another class, such as check-capacity.autoscaling.x-k8s.io of the cluster autoscaler, or "
            + _LEAVE_OUT,
        ).on(name)


@where_read
def _storage(scope: Scope) -> Iterator[Problem]:
    for entry in scope.fleet.storage if scope.fleet.gke_clusters else ():
        for name in _plain(scope, scope.fleet.clusters_of(entry)):
            yield NOT_OF_GKE.at(
                f"{scope.path(entry)}.clusters",
                f"{entry.volume.type} is mounted by a driver of GKE, and {{cluster}} is not of GKE",
                _LEAVE_OUT,
            ).on(name)


@where_read
def _credentials(scope: Scope) -> Iterator[Problem]:
    plain = scope.fleet.plain_clusters
    if plain and profile_credentials(scope.fleet) is not None:
        yield NOT_OF_GKE.at(
            "multiKueue.credentials",
            f"ClusterProfile, whose plugin gives credentials of Google, and {plain[0]} is not of GKE",
            "write type: ServiceAccountToken",
        )


@where_read
def _controller(scope: Scope) -> Iterator[Problem]:
    """The image is built into Artifact Registry, and a bucket is written as a Google account."""
    fleet, section = scope.fleet, scope.fleet.admission_controller
    home = fleet.controller_cluster
    if section is None or home is None or home not in fleet.plain_clusters:
        return
    if built_image(fleet) is not None:
        yield NOT_OF_GKE.at(
            "admissionController.image",
            f"is missing, but {home} is not of GKE, and `pulumi up` builds images into Artifact Registry",
            "build the image, and write its name; see docs/controller.md",
        )
    if section.history is not None and (section.history.store or "").startswith("gs://"):
        yield NOT_OF_GKE.at(
            "admissionController.history.store",
            f"is a bucket, which is written by Workload Identity, and {home} is not of GKE",
            "remove it, for a volume in the cluster",
        )


@where_read
def _observability(scope: Scope) -> Iterator[Problem]:
    fleet, settings = scope.fleet, scope.fleet.observability
    if fleet.clusters and settings.installs_grafana and fleet.home in fleet.plain_clusters:
        yield NOT_OF_GKE.at(
            "observability.grafana.enabled",
            f"true, but Grafana reads metrics by Workload Identity, and {fleet.home} is not of GKE",
            "set it to false, or existing to true",
        )


@where_read
def _without_gke(scope: Scope) -> Iterator[Problem]:
    """What is in Google Cloud alone."""
    fleet = scope.fleet
    if fleet.gke_clusters or not fleet.clusters:
        return
    fields = type(fleet).model_fields
    for name in _OF_GOOGLE_CLOUD:
        if getattr(fleet, name):
            alias = fields[name].alias or name
            yield NOT_OF_GKE.at(alias, "set, but no cluster of the fleet is in Google Cloud", "remove it")
    settings = fleet.observability
    for alias, wanted in (
        ("managedPrometheus", settings.managed_prometheus),
        ("dashboard", settings.dashboard),
        ("alerts.enabled", settings.alerts.enabled),
    ):
        if wanted:
            wrong = "true, but no cluster of the fleet is in Google Cloud"
            yield NOT_OF_GKE.at(f"observability.{alias}", wrong, "set it to false, or remove the section")
    for alias, there in (("project", fleet.project), ("labels", fleet.labels)):
        if there:
            yield NO_EFFECT.at(alias, "has no effect, since no cluster of the fleet is in Google Cloud", "remove it")


@where_read
def _accounts(scope: Scope) -> Iterator[Problem]:
    """Workload Identity is GKE's."""
    fleet = scope.fleet
    plain = _plain(scope, fleet.job_clusters)
    for team in fleet.teams if plain else ():
        field = "googleServiceAccount" if team.google_service_account is not None else "existingGoogleServiceAccount"
        if team.google_service_account is None and team.existing_google_service_account is None:
            continue
        path = f"{scope.path(team)}.{field}"
        if fleet.gke_clusters:
            wrong = (
                f"has no effect on {', '.join(plain)}: without Workload Identity, pods there act as no Google account"
            )
            yield NO_EFFECT.at(path, wrong, "keep queues of jobs that need it to clusters of GKE")
        else:
            yield NOT_OF_GKE.at(path, "set, but no cluster of the fleet has Workload Identity", "remove it")


@where_read
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
        elif cluster.role != "worker":
            for field, alias in (
                (cluster.kubernetes.server, "server"),
                (cluster.kubernetes.proxy_url, "proxyUrl"),
                (cluster.kubernetes.tls_server_name, "tlsServerName"),
                (cluster.kubernetes.certificate_authority_data, "certificateAuthorityData"),
            ):
                if field:
                    wrong = f"has no effect, since no cluster of the fleet connects to a {cluster.role}"
                    yield NO_EFFECT.at(f"{path}.{alias}", wrong, "remove it; Pulumi uses context")
