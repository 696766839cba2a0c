"""GPU batch fleets on GKE with Kueue: one typed description, and Pulumi components for all of it or any part.

Names are loaded when they are first used: `import kueue_fleet` alone imports no Pulumi, so the spec works without it.
"""

TYPE_CHECKING = False
"""As typing has it, whose import takes longer than all else before `cli.main`."""
if TYPE_CHECKING:
    from typing import Any

    from kueue_fleet.fleet import Fleet
    from kueue_fleet.gcp import (
        Dashboards,
        ManagerCluster,
        MemberAccess,
        Network,
        NodeIdentity,
        NodePool,
        ProjectServices,
        ReservedCapacity,
        StandaloneCluster,
        TeamIdentity,
        WorkerCluster,
    )
    from kueue_fleet.kueue import (
        AdmissionCheck,
        AdmissionController,
        ClusterQueue,
        Cohort,
        GpuDrivers,
        GrafanaInstall,
        JobSetInstall,
        KueueInstall,
        LocalQueue,
        ManagedMonitoring,
        MultiKueue,
        Namespaces,
        PriorityClass,
        ProvisioningRequestCheck,
        ResourceFlavor,
        RunDurationPolicy,
        Team,
        Topology,
        WorkerAccess,
        WorkloadPriorityClass,
    )

__all__ = [
    "AdmissionCheck",
    "AdmissionController",
    "ClusterQueue",
    "Cohort",
    "Dashboards",
    "Fleet",
    "GpuDrivers",
    "GrafanaInstall",
    "JobSetInstall",
    "KueueInstall",
    "LocalQueue",
    "ManagedMonitoring",
    "ManagerCluster",
    "MemberAccess",
    "MultiKueue",
    "Namespaces",
    "Network",
    "NodeIdentity",
    "NodePool",
    "PriorityClass",
    "ProjectServices",
    "ProvisioningRequestCheck",
    "ReservedCapacity",
    "ResourceFlavor",
    "RunDurationPolicy",
    "StandaloneCluster",
    "Team",
    "TeamIdentity",
    "Topology",
    "WorkerAccess",
    "WorkerCluster",
    "WorkloadPriorityClass",
]

_GCP = frozenset(
    {
        "Dashboards",
        "ManagerCluster",
        "MemberAccess",
        "Network",
        "NodeIdentity",
        "NodePool",
        "ProjectServices",
        "ReservedCapacity",
        "StandaloneCluster",
        "TeamIdentity",
        "WorkerCluster",
    }
)


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "fleet" if name == "Fleet" else "gcp" if name in _GCP else "kueue"
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
