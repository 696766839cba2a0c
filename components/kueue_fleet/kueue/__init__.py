"""Pulumi components for what is inside a cluster: Kueue, JobSet, and Kueue's objects.

They take models and manifests of `kueue_admission.api`, and the provider of a cluster by `opts`. Each can be used alone
on any Kubernetes cluster, or together by `kueue_fleet.fleet`. Nothing here knows Google Cloud.
"""

from kueue_fleet.kueue.admission_checks import AdmissionCheck, ProvisioningRequestCheck
from kueue_fleet.kueue.admission_controller import AdmissionController
from kueue_fleet.kueue.credentials import ClusterProfiles, KueuePlugin, WorkerAccess, WorkerGrant
from kueue_fleet.kueue.install import GrafanaInstall, JobSetInstall, KueueInstall, NvidiaDraDriverInstall
from kueue_fleet.kueue.multikueue import MultiKueue
from kueue_fleet.kueue.platform import (
    ComputeClasses,
    GpuDirect,
    GpuDrivers,
    GrafanaDashboard,
    ManagedMonitoring,
    NodeNetworks,
    RunDurationPolicy,
    TeamVolumes,
)
from kueue_fleet.kueue.queues import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    Topology,
    WorkloadPriorityClass,
)
from kueue_fleet.kueue.team import Namespaces, Team

__all__ = [
    "AdmissionCheck",
    "AdmissionController",
    "ClusterProfiles",
    "ClusterQueue",
    "Cohort",
    "ComputeClasses",
    "GpuDirect",
    "GpuDrivers",
    "GrafanaDashboard",
    "GrafanaInstall",
    "JobSetInstall",
    "KueueInstall",
    "KueuePlugin",
    "LocalQueue",
    "ManagedMonitoring",
    "MultiKueue",
    "Namespaces",
    "NodeNetworks",
    "NvidiaDraDriverInstall",
    "PriorityClass",
    "ProvisioningRequestCheck",
    "ResourceFlavor",
    "RunDurationPolicy",
    "Team",
    "TeamVolumes",
    "Topology",
    "WorkerAccess",
    "WorkerGrant",
    "WorkloadPriorityClass",
]
