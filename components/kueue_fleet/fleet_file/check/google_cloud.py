"""Names, labels and versions in Google Cloud, and what is refused there.

Source: https://cloud.google.com/compute/docs/naming-resources, https://cloud.google.com/compute/docs/labeling-resources
(64 labels), https://cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels (what GKE adds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.names import PRODUCT
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.model.capacity import FlexStart
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.rules.clusters import GKE_VERSION, GOOGLE_LABELS, GOOGLE_NAME, MANY_LABELS

LONGEST_NAME: Final = 63
"""Most characters of a name in Compute Engine."""
MOST_LABELS: Final = 64
"""Most labels of a resource."""
OWN_LABELS: Final = frozenset({"managed-by", PRODUCT, "kueue-fleet-role", "disposable", "goog-pulumi-provisioned"})
"""Labels that the components and Pulumi put on clusters."""
GKE_LABELS: Final = frozenset(
    {
        "goog-fleet-project",
        "goog-gke-cost-management",
        "goog-gke-node",
        "goog-gke-node-pool-provisioning-model",
        "goog-k8s-cluster-location",
        "goog-k8s-cluster-name",
        "goog-k8s-node-pool-name",
    }
)
"""Labels that GKE puts on nodes, beside those of their cluster."""


FLEX_START_SINCE: Final = "1.32.2-gke.1652000"
"""First version of GKE with flex-start. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws."""


@fleet_check
def _names(scope: Scope) -> Iterator[Problem]:
    fleet = scope.fleet
    if fleet.network.existing is not None:
        return
    path = "network.name" if fleet.network.name else "name"
    longest = max((cluster.region for cluster in fleet.new_clusters), key=len, default="")
    network_name = f"{fleet.network_name}-{longest}"
    if longest and len(network_name) > LONGEST_NAME:
        excess = len(network_name) - LONGEST_NAME
        yield GOOGLE_NAME.at(
            path,
            f"the subnet, router and NAT gateway of {longest} would be called {network_name}, of "
            f"{len(network_name)} characters, but names have at most {LONGEST_NAME}",
            f"write a shorter name, by {excess} character{'s' if excess > 1 else ''}"
            + ("" if fleet.network.name else ", or set network.name"),
        )


@fleet_check
def _labels(scope: Scope) -> Iterator[Problem]:
    ours = OWN_LABELS - set(scope.fleet.labels)
    places = MOST_LABELS - len(ours)
    label_count = len(scope.fleet.labels)
    if label_count > places:
        yield GOOGLE_LABELS.at(
            "labels",
            f"{label_count}, but with {len(ours)} of the fleet's and Pulumi's own, clusters have room for {places}",
            f"remove {label_count - places}",
        )
    elif label_count > places - len(GKE_LABELS):
        yield MANY_LABELS.at(
            "labels",
            f"{label_count}, but GKE adds up to {len(GKE_LABELS)} to nodes, which have at most {MOST_LABELS}",
            f"keep at most {places - len(GKE_LABELS)}",
        )


@fleet_check
def _empty_labels(scope: Scope) -> Iterator[Problem]:
    """The provider takes a label without a value for a different one each time, or for none."""
    at = {"": scope.fleet.labels}
    for pool in scope.fleet.node_pools:
        path = f"{scope.path(pool)}."
        at[path] = {} if pool.existing else pool.labels
        at |= {f"{path}perCluster[{name}].": other.labels or {} for name, other in pool.per_cluster.items()}
    for path, labels in at.items():
        for key, value in labels.items():
            if not value:
                wrong = "empty, which the Google provider never sets, or sets again with every `pulumi up`"
                yield GOOGLE_LABELS.at(f"{path}labels[{key}]", wrong, "write a value, or remove the label")


@fleet_check
def _versions(scope: Scope) -> Iterator[Problem]:
    for cluster in scope.fleet.clusters:
        flex = [pool.name for pool in scope.fleet.node_pools_on(cluster.name) if isinstance(pool.capacity, FlexStart)]
        for name in flex[:1]:
            yield from cluster_since(scope, cluster, FLEX_START_SINCE, f"{name} is of flex-start, which")


def cluster_since(scope: Scope, cluster: ClusterEntry, first: str, what: str) -> Iterator[Problem]:
    """The problem of a cluster that begins with an older version of GKE than the first that is enough for `what`."""
    version = cluster.min_master_version
    if version is not None and is_older(version, first):
        wrong = f"{version}, with which a new cluster begins, but {what} needs {first}"
        yield GKE_VERSION.at(f"{scope.path(cluster)}.minMasterVersion", wrong, "write that or a newer one")


def is_older(version: str, other: str) -> bool:
    """Whether `version` is older; of a minor version, its newest patch is meant."""
    one, two = ([int(number) for number in re.findall("[0-9]+", text)] for text in (version, other))
    return one < two[: len(one)]
