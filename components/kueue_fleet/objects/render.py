"""Every Kubernetes object of a fleet, by cluster, in apply order.

The same fleet always gives the same text. `api.manifests` makes the objects from what `fleet_file.model.per_cluster`
decides; Helm releases and cloud resources are the components'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterProfileReference,
    ClusterSource,
    KubeConfig,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
    ParametersReference,
    ResourceFlavorSpec,
)
from kueue_admission.api.manifests import (
    admission_check_manifest,
    cluster_queue_manifest,
    cohort_manifest,
    local_queue_manifest,
    multikueue_cluster_manifest,
    multikueue_config_manifest,
    namespace_manifest,
    priority_class_manifest,
    provisioning_request_config_manifest,
    resource_flavor_manifest,
    topology_manifest,
    workload_priority_class_manifest,
)
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import BUDGET_CHECK, FALLBACK_CHECK, MULTIKUEUE_CONTROLLER, QUOTA_FOLLOWS_ANNOTATION
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import (
    DispatchGroup,
    budgeted_queues,
    cohort_on,
    cohorts_on,
    dispatch_groups,
    following_clusters,
    is_assigned,
    local_queues,
    queue_on,
)
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, worker_token
from kueue_fleet.objects.access import render_worker_access
from kueue_fleet.objects.cluster_profiles import render_cluster_profile
from kueue_fleet.objects.parts import PARTS
from kueue_fleet.objects.teams import render_team_objects
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, ASSIGNMENT_CONTROLLER, CHECK_CONTROLLER


def render_fleet(fleet: FleetSpec) -> dict[str, list[Manifest]]:
    """The objects of every cluster, by the cluster's name, in the order of the file."""
    return {name: render_cluster(fleet, name) for name in fleet.cluster_names}


def render_cluster(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects of one cluster, in apply order. Raises KeyError for an unknown cluster."""
    return [cluster_object.manifest for cluster_object in objects_on(fleet, cluster)]


@dataclass(frozen=True, slots=True)
class ClusterObject:
    """An object of a cluster, and its place among the others."""

    manifest: Manifest
    part: str = ""
    """What it is declared together with, such as `monitoring` or `team/vision`; empty: it is declared alone."""
    needs: tuple[str, ...] = ()
    """Keys of what has to be there before it, if the fleet makes it."""

    @property
    def key(self) -> str:
        """Kind, namespace if it has one, and name: `LocalQueue/team-vision/gpu`."""
        metadata = self.manifest["metadata"]
        return "/".join(filter(None, (self.manifest["kind"], metadata.get("namespace"), metadata["name"])))


def objects_on(fleet: FleetSpec, cluster: str) -> list[ClusterObject]:
    """Every object of a cluster, in apply order, with what it needs. Raises KeyError for an unknown cluster."""
    role = fleet.cluster(cluster).role
    objects_there = []
    for each in render_namespaces(fleet):
        owner = fleet.team_of.get(each["metadata"]["name"])
        objects_there.append(ClusterObject(each, "namespaces" if owner is None else f"team/{owner}"))
    parts = {part: _part(part.name, part.render(fleet, cluster)) for part in PARTS.values()}
    objects_there += [manifest for part, objects in parts.items() if part.before_teams for manifest in objects]
    for team in fleet.teams:
        objects_there += _part(f"team/{team.name}", render_team_objects(fleet, team, cluster))
    objects_there += [manifest for part, objects in parts.items() if not part.before_teams for manifest in objects]
    objects_there += [ClusterObject(priority_class_manifest(item.name, item)) for item in fleet.priority_classes]
    objects_there += [
        ClusterObject(workload_priority_class_manifest(i.name, i)) for i in fleet.workload_priority_classes
    ]
    objects_there += _flavors_on(fleet, cluster)
    objects_there += _checks_on(fleet, cluster)
    for cohort in cohorts_on(fleet, cluster):
        cohort_object = cohort_manifest(cohort.name, cohort_on(fleet, cohort, cluster))
        objects_there.append(ClusterObject(cohort_object, needs=(f"Cohort/{cohort.parent_name}",)))
    for entry in fleet.queues_on(cluster):
        queue = queue_on(fleet, entry, cluster)
        needs: tuple[str, ...] = (
            *(f"ResourceFlavor/{name}" for name in queue.flavor_names),
            *(f"AdmissionCheck/{name}" for name in queue.check_names),
            f"Cohort/{queue.cohort_name}",
        )
        what = "capacity" if entry.quota_follows == "capacity" else "windows"
        follows = {QUOTA_FOLLOWS_ANNOTATION: what} if cluster in following_clusters(fleet, entry) else {}
        objects_there.append(ClusterObject(cluster_queue_manifest(entry.name, queue, follows), needs=needs))
    here = {queue.name for queue in fleet.queues_on(cluster)}
    alone = {(queue.namespace, queue.name) for queue in fleet.local_queues}
    for namespace, name, spec in local_queues(fleet):
        if spec.cluster_queue in here:
            part = "" if (namespace, name) in alone else f"team/{fleet.team_of[namespace]}"
            needs = (f"Namespace/{namespace}", f"ClusterQueue/{spec.cluster_queue}")
            objects_there.append(ClusterObject(local_queue_manifest(namespace, name, spec), part, needs))
    if role == "worker":
        objects_there += _part("multikueue-access", render_worker_access(fleet, cluster))
    return objects_there + (_of_controller(fleet, cluster) if fleet.controller is not None else [])


def _of_controller(fleet: FleetSpec, cluster: str) -> list[ClusterObject]:
    """What the fleet's own controller has on a cluster. The modules take long to import, and few fleets have one."""
    from kueue_fleet.objects.controller import render_controller, render_controller_worker_access
    from kueue_fleet.objects.fleet_page import render_fleet_page

    access_objects = _part("controller-access", render_controller_worker_access(fleet, cluster))
    return access_objects + _part(
        "controller", [*render_controller(fleet, cluster), *render_fleet_page(fleet, cluster)]
    )


def _part(name: str, manifests: Iterable[Manifest]) -> list[ClusterObject]:
    return [ClusterObject(manifest, name) for manifest in manifests]


def _flavors_on(fleet: FleetSpec, cluster: str) -> list[ClusterObject]:
    """Topologies, then the flavors, of which a manager has some of its own."""
    flavor_objects = [
        ClusterObject(topology_manifest(item.name, item))
        for item in fleet.topologies
        if cluster in fleet.clusters_of(item)
    ]
    for item in fleet.flavors:
        if cluster in fleet.clusters_of(item):
            flavor = fleet.flavor_on(item, cluster)
            needs = (f"Topology/{flavor.topology_name}",)
            flavor_objects.append(ClusterObject(resource_flavor_manifest(item.name, flavor), "", needs))
    return flavor_objects + (
        _part("", render_manager_flavors(fleet)) if fleet.cluster(cluster).role == "manager" else []
    )


def _checks_on(fleet: FleetSpec, cluster: str) -> list[ClusterObject]:
    """Admission checks, after the objects that they refer to."""
    groups = dispatch_groups(fleet) if fleet.cluster(cluster).role == "manager" else ()
    checks = [item for item in fleet.admission_checks if cluster in fleet.clusters_of(item)]
    parts = {item.name: f"check/{item.name}" if item.provisioning_request else "" for item in checks}
    check_objects = [
        cluster_object
        for item in checks
        for cluster_object in _part(parts[item.name], render_provisioning_request_config(item))
    ]
    if fleet.cluster(cluster).role == "manager":
        for worker in fleet.worker_names:
            check_objects += _part("multikueue", render_cluster_profile(fleet, worker))
        check_objects += _part(
            "multikueue", (render_multikueue_cluster(fleet, worker) for worker in fleet.worker_names)
        )
    check_objects += _part("multikueue", map(render_multikueue_config, groups))
    check_objects += [ClusterObject(render_admission_check(item), parts[item.name]) for item in checks]
    check_objects += _part("", render_assignment_check(fleet, cluster))
    check_objects += _part("", render_own_checks(fleet, cluster))
    return check_objects + _part("multikueue", map(render_multikueue_check, groups))


def render_namespaces(fleet: FleetSpec) -> list[Manifest]:
    """The namespaces, the same on every cluster: the teams', then those of other LocalQueues.

    `default` is among them where the file labels it.
    """
    return [namespace_manifest(name, labels) for name, labels in fleet.namespaces.items() if labels]


def render_manager_flavors(fleet: FleetSpec) -> list[Manifest]:
    """The manager's flavors without labels, but those that the file declares on the manager."""
    if fleet.manager is None:
        return []
    declared_names = {flavor.name for flavor in fleet.flavors if fleet.manager.name in fleet.clusters_of(flavor)}
    names = (name for name in fleet.manager_flavor_names if name not in declared_names)
    return [resource_flavor_manifest(name, ResourceFlavorSpec()) for name in names]


def render_provisioning_request_config(check: AdmissionCheckEntry) -> list[Manifest]:
    """The ProvisioningRequestConfig of a check; none for other kinds of check."""
    if check.provisioning_request is None:
        return []
    return [provisioning_request_config_manifest(check.config_name, check.provisioning_request)]


def render_admission_check(check: AdmissionCheckEntry) -> Manifest:
    """A check of the file; the same on each of its clusters."""
    return admission_check_manifest(check.name, check.check_spec)


def render_own_checks(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The checks by which the fleet's own controller takes jobs back from flavors whose nodes do not come, and holds
    jobs of teams back whose budget is used up."""
    queues = fleet.queues_on(cluster) if fleet.controller_cluster == cluster else ()
    budgeted_names = budgeted_queues(fleet)
    names = [FALLBACK_CHECK] if any(queue.fallback for queue in queues) else []
    names += [BUDGET_CHECK] if any(queue.name in budgeted_names for queue in queues) else []
    return [admission_check_manifest(name, AdmissionCheckSpec(controller_name=CHECK_CONTROLLER)) for name in names]


def render_assignment_check(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """On a worker, the check by which the fleet's own controller assigns jobs; none where there is no controller."""
    if not any(is_assigned(fleet, queue, cluster) for queue in fleet.queues_on(cluster)):
        return []
    return [admission_check_manifest(ASSIGNMENT_CHECK, AdmissionCheckSpec(controller_name=ASSIGNMENT_CONTROLLER))]


def render_multikueue_cluster(fleet: FleetSpec, worker: str) -> Manifest:
    """The manager's MultiKueueCluster for `worker`; a ClusterProfile has the worker's name."""
    token = worker_token(fleet, worker, ACCOUNT_NAME)
    return multikueue_cluster(worker, token.secret if token else None)


def multikueue_cluster(worker: str, secret: str | None) -> Manifest:
    """A MultiKueueCluster whose kubeconfig is in `secret`; None: there is a ClusterProfile of the worker's name."""
    if secret is None:
        source = ClusterSource(cluster_profile_ref=ClusterProfileReference(name=worker))
    else:
        source = ClusterSource(kube_config=KubeConfig(location=secret))
    return multikueue_cluster_manifest(worker, MultiKueueClusterSpec(cluster_source=source))


def render_multikueue_config(group: DispatchGroup) -> Manifest:
    """The MultiKueueConfig of a group of queues."""
    return multikueue_config_manifest(group.config_name, MultiKueueConfigSpec(clusters=group.workers))


def render_multikueue_check(group: DispatchGroup) -> Manifest:
    """The MultiKueue AdmissionCheck of a group of queues."""
    reference = ParametersReference(api_group="kueue.x-k8s.io", kind="MultiKueueConfig", name=group.config_name)
    return admission_check_manifest(
        group.check_name, AdmissionCheckSpec(controller_name=MULTIKUEUE_CONTROLLER, parameters=reference)
    )
