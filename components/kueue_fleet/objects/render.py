"""Every Kubernetes object of a fleet, by cluster, in apply order.

The same fleet always gives the same text. The objects themselves are made by `manifests` from what `placement` decides;
Helm releases and cloud resources are the components'.
"""

from __future__ import annotations

from kueue_fleet.fleet_file.model.dispatch import ASSIGNMENT_CHECK, ASSIGNMENT_CONTROLLER
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry, ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.placement import (
    DispatchGroup,
    cohort_on,
    cohorts_on,
    dispatch_groups,
    is_assigned,
    local_queues,
    queue_on,
)
from kueue_fleet.fleet_file.worker_tokens import ACCOUNT_NAME, worker_token
from kueue_fleet.kueue_api import (
    AdmissionCheckSpec,
    ClusterProfileReference,
    ClusterSource,
    KubeConfig,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
    ParametersReference,
    ResourceFlavorSpec,
)
from kueue_fleet.kueue_api.manifests import (
    Manifest,
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
from kueue_fleet.kueue_api.names import MULTIKUEUE_CONTROLLER
from kueue_fleet.objects.access import render_worker_access
from kueue_fleet.objects.controller import render_controller, render_controller_worker_access
from kueue_fleet.objects.drivers import render_driver_installer
from kueue_fleet.objects.monitoring import render_grafana, render_managed_monitoring
from kueue_fleet.objects.run_duration_policy import render_run_duration_policy
from kueue_fleet.objects.teams import render_team_objects


def render_fleet(fleet: FleetSpec) -> dict[str, list[Manifest]]:
    """The objects of every cluster, by the cluster's name, in the order of the file."""
    return {name: render_cluster(fleet, name) for name in fleet.cluster_names}


def render_cluster(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The objects of one cluster, in apply order. Raises KeyError for an unknown cluster."""
    entry = fleet.cluster(cluster)
    queues = fleet.queues_on(cluster)
    objects = render_namespaces(fleet)
    objects += render_managed_monitoring(fleet, cluster)
    objects += render_grafana(fleet)
    for team in fleet.teams:
        objects += render_team_objects(fleet, team, cluster)
    objects += render_driver_installer(fleet, cluster)
    objects += render_run_duration_policy(fleet, cluster)
    objects += [priority_class_manifest(item.name, item) for item in fleet.priority_classes]
    objects += [workload_priority_class_manifest(item.name, item) for item in fleet.workload_priority_classes]
    objects += [topology_manifest(item.name, item) for item in fleet.topologies if cluster in fleet.clusters_of(item)]
    objects += [
        render_resource_flavor(fleet, item, cluster) for item in fleet.flavors if cluster in fleet.clusters_of(item)
    ]
    if entry.role == "manager":
        objects += render_manager_flavor(fleet)
    checks = [item for item in fleet.admission_checks if cluster in fleet.clusters_of(item)]
    for check in checks:
        objects += render_provisioning_request_config(check)
    if entry.role == "manager":
        objects += [render_multikueue_cluster(fleet, worker) for worker in fleet.worker_names]
        objects += [render_multikueue_config(group) for group in dispatch_groups(fleet)]
    objects += [render_admission_check(check) for check in checks]
    objects += render_assignment_check(fleet, cluster)
    if entry.role == "manager":
        objects += [render_multikueue_check(group) for group in dispatch_groups(fleet)]
    objects += [render_cohort(fleet, cohort, cluster) for cohort in cohorts_on(fleet, cluster)]
    objects += [render_cluster_queue(fleet, queue, cluster) for queue in queues]
    objects += render_local_queues(fleet, cluster)
    if entry.role == "worker":
        objects += render_worker_access(fleet, cluster)
    objects += render_controller_worker_access(fleet, cluster)
    objects += render_controller(fleet, cluster)
    return objects


def render_namespaces(fleet: FleetSpec) -> list[Manifest]:
    """The namespaces, the same on every cluster: the teams', then those of other LocalQueues but `default`."""
    teams = {namespace: team for team in fleet.teams for namespace in team.namespace_names}
    others = dict.fromkeys(queue.namespace for queue in fleet.local_queues)
    return [namespace_manifest(namespace, team.name, team.pod_security) for namespace, team in teams.items()] + [
        namespace_manifest(namespace) for namespace in others if namespace not in teams and namespace != "default"
    ]


def render_resource_flavor(fleet: FleetSpec, flavor: FlavorEntry, cluster: str) -> Manifest:
    """The flavor as it is on `cluster`; one with a node pool has that pool's labels and taints."""
    return resource_flavor_manifest(flavor.name, fleet.flavor_on(flavor, cluster))


def render_manager_flavor(fleet: FleetSpec) -> list[Manifest]:
    """The manager's flavor without labels, unless the file declares one of that name on the manager."""
    if fleet.multi_kueue is None or fleet.manager is None:
        return []
    name = fleet.multi_kueue.manager_flavor_name
    declared = fleet.flavor(name)
    if declared is not None and fleet.manager.name in fleet.clusters_of(declared):
        return []
    return [resource_flavor_manifest(name, ResourceFlavorSpec())]


def render_provisioning_request_config(check: AdmissionCheckEntry) -> list[Manifest]:
    """The ProvisioningRequestConfig of a check; none for other kinds of check."""
    if check.provisioning_request is None:
        return []
    return [provisioning_request_config_manifest(check.config_name, check.provisioning_request)]


def render_admission_check(check: AdmissionCheckEntry) -> Manifest:
    """A check of the file; the same on each of its clusters."""
    return admission_check_manifest(check.name, check.check_spec)


def render_assignment_check(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """On a worker, the check by which the fleet's own controller assigns jobs; none where there is no controller."""
    if not any(is_assigned(fleet, queue, cluster) for queue in fleet.queues_on(cluster)):
        return []
    return [admission_check_manifest(ASSIGNMENT_CHECK, AdmissionCheckSpec(controller_name=ASSIGNMENT_CONTROLLER))]


def render_multikueue_cluster(fleet: FleetSpec, worker: str) -> Manifest:
    """The manager's MultiKueueCluster for `worker`; a ClusterProfile has the worker's name."""
    token = worker_token(fleet, worker, ACCOUNT_NAME)
    if token is None:
        source = ClusterSource(cluster_profile_ref=ClusterProfileReference(name=worker))
    else:
        source = ClusterSource(kube_config=KubeConfig(location=token.secret))
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


def render_cohort(fleet: FleetSpec, cohort: CohortEntry, cluster: str) -> Manifest:
    """The Cohort as it is on `cluster`."""
    return cohort_manifest(cohort.name, cohort_on(fleet, cohort, cluster))


def render_cluster_queue(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> Manifest:
    """The ClusterQueue as it is on `cluster`."""
    return cluster_queue_manifest(queue.name, queue_on(fleet, queue, cluster))


def render_local_queues(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The LocalQueues of `cluster`: those whose ClusterQueue is there."""
    here = {queue.name for queue in fleet.queues_on(cluster)}
    return [
        local_queue_manifest(namespace, name, spec)
        for namespace, name, spec in local_queues(fleet)
        if spec.cluster_queue in here
    ]
