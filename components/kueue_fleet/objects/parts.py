"""The parts of a cluster beside Kueue and its queues, one row each, which rendering and Pulumi read alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.objects.cluster_profiles import render_profile_definition
from kueue_fleet.objects.compute_classes import render_compute_classes
from kueue_fleet.objects.drivers import render_driver_installer
from kueue_fleet.objects.gpu_direct import render_gpu_direct, render_node_networks
from kueue_fleet.objects.monitoring import render_grafana, render_managed_monitoring, render_pod_monitors
from kueue_fleet.objects.run_duration_policy import render_run_duration_policy
from kueue_fleet.objects.storage import render_storage

ACCOUNT_KINDS: Final = (
    "ServiceAccount",
    "Secret",
    *(f"rbac.authorization.k8s.io/{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
)
"""An account, its token, and what it may do."""


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """Objects of a cluster that are declared together."""

    name: str
    """What `ClusterObject.part` and Pulumi call it."""
    render: Callable[[FleetSpec, str], Iterable[Manifest]]
    """Its objects on a cluster of a fleet; none: the cluster does not have it."""
    kinds: tuple[str, ...]
    """The manifests that its component takes, as `group/Kind`."""
    after: Literal["", "kueue", "grafana", "teams"] | None = ""
    """What Pulumi makes before it; empty: nothing; None: what declares it is not made from its row."""
    before_teams: bool = False
    """Whether its objects are applied before those of teams."""
    full_labels: bool = False
    """Whether Pulumi names each object by kind, namespace and name; else by the kind alone where that is enough."""


_ROWS: Final = (
    ClusterPart(
        "cluster-profiles",
        render_profile_definition,
        ("apiextensions.k8s.io/CustomResourceDefinition",),
        after=None,
        before_teams=True,
    ),
    ClusterPart(
        "monitoring",
        render_managed_monitoring,
        ("monitoring.googleapis.com/PodMonitoring", "monitoring.googleapis.com/ClusterPodMonitoring", *ACCOUNT_KINDS),
        after="kueue",
        before_teams=True,
    ),
    ClusterPart(
        "pod-monitors",
        render_pod_monitors,
        ("monitoring.coreos.com/PodMonitor", *ACCOUNT_KINDS),
        after="kueue",
        before_teams=True,
    ),
    ClusterPart("grafana-dashboard", render_grafana, ("ConfigMap",), after="grafana", before_teams=True),
    ClusterPart(
        "storage",
        render_storage,
        ("PersistentVolume", "PersistentVolumeClaim", "checkpointing.gke.io/CheckpointConfiguration"),
        after="teams",
        full_labels=True,
    ),
    ClusterPart("gpu-drivers", render_driver_installer, ("apps/DaemonSet",), after=None),
    ClusterPart(
        "node-networks", render_node_networks, ("networking.gke.io/Network", "networking.gke.io/GKENetworkParamSet")
    ),
    ClusterPart("gpu-direct", render_gpu_direct, ("apps/DaemonSet",)),
    ClusterPart(
        "run-duration",
        render_run_duration_policy,
        (
            "admissionregistration.k8s.io/ValidatingAdmissionPolicy",
            "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
        ),
    ),
    ClusterPart("compute-classes", render_compute_classes, ("cloud.google.com/ComputeClass",)),
)
PARTS: Final = {part.name: part for part in _ROWS}
"""All parts by name, in apply order."""
