"""What a fleet is: frozen models, and every rule that needs no cluster to check.

In: a fleet file. Out: `FleetSpec`, `Problem`s, Kubernetes objects as plain data. Of the rest of the
library it imports only the facts about GKE in `kueue_fleet.gke`; no Pulumi, no Kubernetes client, no clock, no file, no
network. The components (`kueue`, `gcp`, `fleet`) build on it.

Names are loaded when they are first used: half of the command line needs only a few of these modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kueue_fleet.spec.access import ACCOUNT_NAME, render_worker_access, token_secret_name
    from kueue_fleet.spec.accounts import team_account_address, team_account_id
    from kueue_fleet.spec.capacity import (
        Calendar,
        Capacity,
        CommitmentEntry,
        FlexStart,
        FutureReservationEntry,
        OnDemand,
        ReservationEntry,
        Reserved,
        Spot,
    )
    from kueue_fleet.spec.check import check_fleet
    from kueue_fleet.spec.check.dates import check_dates
    from kueue_fleet.spec.cluster_options import NodeAutoProvisioning, ResourceLimit, SystemPool
    from kueue_fleet.spec.clusters import (
        AuthorizedNetwork,
        ClusterEntry,
        ClusterKueue,
        ClusterProfile,
        JobSetInstallation,
        KueueInstallation,
        MultiKueue,
        Network,
        ServiceAccountToken,
    )
    from kueue_fleet.spec.configuration import KueueConfiguration
    from kueue_fleet.spec.drivers import render_driver_installer
    from kueue_fleet.spec.duration import Duration
    from kueue_fleet.spec.entries import (
        AdmissionCheckEntry,
        ClusterQueueEntry,
        CohortEntry,
        FlavorEntry,
        LocalQueueEntry,
        ManagerQueue,
        PriorityClassEntry,
        ProvisioningRequestCheck,
        TopologyEntry,
        WorkloadPriorityClassEntry,
    )
    from kueue_fleet.spec.fleet import FleetSpec
    from kueue_fleet.spec.install import kueue_configuration, kueue_helm_values
    from kueue_fleet.spec.maintenance import Maintenance, MaintenanceExclusion
    from kueue_fleet.spec.manifests import (
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
    from kueue_fleet.spec.node_pools import Accelerator, NodePoolEntry, PoolAutoscaling
    from kueue_fleet.spec.objects import check_objects
    from kueue_fleet.spec.observability import Alerts, Grafana, Observability
    from kueue_fleet.spec.parse import Reading, parse_fleet, parse_fleet_text, read_fleet, read_fleet_text
    from kueue_fleet.spec.placement import DispatchGroup, cohorts_on, dispatch_groups
    from kueue_fleet.spec.pools import ResolvedNodePool
    from kueue_fleet.spec.problem import Problem, SpecError, errors_of
    from kueue_fleet.spec.quantity import Quantity
    from kueue_fleet.spec.render import (
        local_queues,
        render_admission_check,
        render_assignment_check,
        render_cluster,
        render_cluster_queue,
        render_cohort,
        render_fleet,
        render_local_queues,
        render_manager_flavor,
        render_multikueue_check,
        render_multikueue_cluster,
        render_multikueue_config,
        render_namespaces,
        render_provisioning_request_config,
        render_resource_flavor,
    )
    from kueue_fleet.spec.render_teams import render_team_objects
    from kueue_fleet.spec.schema import json_schema
    from kueue_fleet.spec.teams import TeamEntry, TeamGoogleServiceAccount, TeamQueue
    from kueue_fleet.spec.wire import (
        AdmissionCheckSpec,
        AdmissionChecksStrategy,
        AdmissionCheckStrategyRule,
        ClusterQueuePreemption,
        ClusterQueueSpec,
        ClusterSource,
        CohortSpec,
        FairSharing,
        FlavorFungibility,
        FlavorQuotas,
        KubeConfig,
        LabelSelector,
        LocalQueueSpec,
        MultiKueueClusterSpec,
        MultiKueueConfigSpec,
        ParametersReference,
        PriorityClassFields,
        ProvisioningRequestConfigSpec,
        ResourceFlavorSpec,
        ResourceGroup,
        ResourceQuota,
        Taint,
        Toleration,
        TopologyLevel,
        TopologySpec,
        WorkloadPriorityClassFields,
    )

__all__ = [
    "ACCOUNT_NAME",
    "Accelerator",
    "AdmissionCheckEntry",
    "AdmissionCheckSpec",
    "AdmissionCheckStrategyRule",
    "AdmissionChecksStrategy",
    "Alerts",
    "AuthorizedNetwork",
    "Calendar",
    "Capacity",
    "ClusterEntry",
    "ClusterKueue",
    "ClusterProfile",
    "ClusterQueueEntry",
    "ClusterQueuePreemption",
    "ClusterQueueSpec",
    "ClusterSource",
    "CohortEntry",
    "CohortSpec",
    "CommitmentEntry",
    "DispatchGroup",
    "Duration",
    "FairSharing",
    "FlavorEntry",
    "FlavorFungibility",
    "FlavorQuotas",
    "FleetSpec",
    "FlexStart",
    "FutureReservationEntry",
    "Grafana",
    "JobSetInstallation",
    "KubeConfig",
    "KueueConfiguration",
    "KueueInstallation",
    "LabelSelector",
    "LocalQueueEntry",
    "LocalQueueSpec",
    "Maintenance",
    "MaintenanceExclusion",
    "ManagerQueue",
    "Manifest",
    "MultiKueue",
    "MultiKueueClusterSpec",
    "MultiKueueConfigSpec",
    "Network",
    "NodeAutoProvisioning",
    "NodePoolEntry",
    "Observability",
    "OnDemand",
    "ParametersReference",
    "PoolAutoscaling",
    "PriorityClassEntry",
    "PriorityClassFields",
    "Problem",
    "ProvisioningRequestCheck",
    "ProvisioningRequestConfigSpec",
    "Quantity",
    "Reading",
    "ReservationEntry",
    "Reserved",
    "ResolvedNodePool",
    "ResourceFlavorSpec",
    "ResourceGroup",
    "ResourceLimit",
    "ResourceQuota",
    "ServiceAccountToken",
    "SpecError",
    "Spot",
    "SystemPool",
    "Taint",
    "TeamEntry",
    "TeamGoogleServiceAccount",
    "TeamQueue",
    "Toleration",
    "TopologyEntry",
    "TopologyLevel",
    "TopologySpec",
    "WorkloadPriorityClassEntry",
    "WorkloadPriorityClassFields",
    "admission_check_manifest",
    "check_dates",
    "check_fleet",
    "check_objects",
    "cluster_queue_manifest",
    "cohort_manifest",
    "cohorts_on",
    "dispatch_groups",
    "errors_of",
    "json_schema",
    "kueue_configuration",
    "kueue_helm_values",
    "local_queue_manifest",
    "local_queues",
    "multikueue_cluster_manifest",
    "multikueue_config_manifest",
    "namespace_manifest",
    "parse_fleet",
    "parse_fleet_text",
    "priority_class_manifest",
    "provisioning_request_config_manifest",
    "read_fleet",
    "read_fleet_text",
    "render_admission_check",
    "render_assignment_check",
    "render_cluster",
    "render_cluster_queue",
    "render_cohort",
    "render_driver_installer",
    "render_fleet",
    "render_local_queues",
    "render_manager_flavor",
    "render_multikueue_check",
    "render_multikueue_cluster",
    "render_multikueue_config",
    "render_namespaces",
    "render_provisioning_request_config",
    "render_resource_flavor",
    "render_team_objects",
    "render_worker_access",
    "resource_flavor_manifest",
    "team_account_address",
    "team_account_id",
    "token_secret_name",
    "topology_manifest",
    "workload_priority_class_manifest",
]

_NAMES: Final = {
    "access": "ACCOUNT_NAME render_worker_access token_secret_name",
    "accounts": "team_account_address team_account_id",
    "capacity": (
        "Calendar Capacity CommitmentEntry FlexStart FutureReservationEntry OnDemand ReservationEntry Reserved Spot "
    ),
    "check": "check_fleet",
    "check.dates": "check_dates",
    "cluster_options": "NodeAutoProvisioning ResourceLimit SystemPool",
    "clusters": (
        "AuthorizedNetwork ClusterEntry ClusterKueue ClusterProfile JobSetInstallation KueueInstallation "
        "MultiKueue Network ServiceAccountToken "
    ),
    "configuration": "KueueConfiguration",
    "drivers": "render_driver_installer",
    "duration": "Duration",
    "entries": (
        "AdmissionCheckEntry ClusterQueueEntry CohortEntry FlavorEntry LocalQueueEntry ManagerQueue "
        "PriorityClassEntry ProvisioningRequestCheck TopologyEntry WorkloadPriorityClassEntry "
    ),
    "fleet": "FleetSpec",
    "install": "kueue_configuration kueue_helm_values",
    "maintenance": "Maintenance MaintenanceExclusion",
    "manifests": (
        "Manifest admission_check_manifest cluster_queue_manifest cohort_manifest local_queue_manifest "
        "multikueue_cluster_manifest multikueue_config_manifest namespace_manifest priority_class_manifest "
        "provisioning_request_config_manifest resource_flavor_manifest topology_manifest "
        "workload_priority_class_manifest "
    ),
    "node_pools": "Accelerator NodePoolEntry PoolAutoscaling",
    "objects": "check_objects",
    "observability": "Alerts Grafana Observability",
    "parse": "Reading parse_fleet parse_fleet_text read_fleet read_fleet_text",
    "placement": "DispatchGroup cohorts_on dispatch_groups",
    "pools": "ResolvedNodePool",
    "problem": "Problem SpecError errors_of",
    "quantity": "Quantity",
    "render": (
        "local_queues render_admission_check render_assignment_check render_cluster render_cluster_queue "
        "render_cohort render_fleet "
        "render_local_queues render_manager_flavor render_multikueue_check render_multikueue_cluster "
        "render_multikueue_config render_namespaces render_provisioning_request_config render_resource_flavor "
    ),
    "render_teams": "render_team_objects",
    "schema": "json_schema",
    "teams": "TeamEntry TeamGoogleServiceAccount TeamQueue",
    "wire": (
        "AdmissionCheckSpec AdmissionChecksStrategy AdmissionCheckStrategyRule ClusterQueuePreemption "
        "ClusterQueueSpec ClusterSource CohortSpec FairSharing FlavorFungibility FlavorQuotas KubeConfig "
        "LabelSelector LocalQueueSpec MultiKueueClusterSpec MultiKueueConfigSpec ParametersReference "
        "PriorityClassFields ProvisioningRequestConfigSpec ResourceFlavorSpec ResourceGroup ResourceQuota Taint "
        "Toleration TopologyLevel TopologySpec WorkloadPriorityClassFields "
    ),
}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
