"""Pulumi components on Google Cloud: the network, the identities and the clusters of a fleet.

In: entries of the spec, and ids of what already exists. Out: components whose outputs `kueue_fleet.kueue` and
`kueue_fleet.fleet` build on. Nothing here knows what runs inside a cluster.
"""

from kueue_fleet.gcp.cluster import GkeCluster, ManagerCluster, StandaloneCluster, WorkerCluster
from kueue_fleet.gcp.identity import NodeIdentity
from kueue_fleet.gcp.kubeconfig import cluster_kubeconfig, merge_kubeconfigs
from kueue_fleet.gcp.network import Network

__all__ = [
    "GkeCluster",
    "ManagerCluster",
    "Network",
    "NodeIdentity",
    "StandaloneCluster",
    "WorkerCluster",
    "cluster_kubeconfig",
    "merge_kubeconfigs",
]
