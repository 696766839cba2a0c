"""Pulumi components on Google Cloud: the network, the identities, the capacity and the clusters of a fleet.

Nothing here knows what runs inside a cluster. Annotations name the classes of pulumi-gcp in quotes: the SDK imports a
part of itself when one of its classes is looked up, and `pulumi_gcp.compute` alone takes a second.
"""

from kueue_fleet.gcp.cluster import ControlPlaneAccess, GkeCluster, ManagerCluster, StandaloneCluster, WorkerCluster
from kueue_fleet.gcp.controller_image import ControllerImage
from kueue_fleet.gcp.dashboards import Dashboards
from kueue_fleet.gcp.gke_kubeconfig import cluster_kubeconfig, merge_kubeconfigs
from kueue_fleet.gcp.identity import GrafanaIdentity, ManagerIdentity, MemberAccess, NodeIdentity, TeamIdentity
from kueue_fleet.gcp.network import AcceleratorNetworks, Network, NetworkIds, existing_network
from kueue_fleet.gcp.node_pool import NodePool
from kueue_fleet.gcp.reserved_capacity import ReservedCapacity
from kueue_fleet.gcp.services import ProjectServices
from kueue_fleet.gcp.storage import TeamStorage

__all__ = [
    "AcceleratorNetworks",
    "ControlPlaneAccess",
    "ControllerImage",
    "Dashboards",
    "GkeCluster",
    "GrafanaIdentity",
    "ManagerCluster",
    "ManagerIdentity",
    "MemberAccess",
    "Network",
    "NetworkIds",
    "NodeIdentity",
    "NodePool",
    "ProjectServices",
    "ReservedCapacity",
    "StandaloneCluster",
    "TeamIdentity",
    "TeamStorage",
    "WorkerCluster",
    "cluster_kubeconfig",
    "existing_network",
    "merge_kubeconfigs",
]
