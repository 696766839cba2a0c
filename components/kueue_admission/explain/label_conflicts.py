"""Node labels to which the flavors of one pod set give different values.

Kueue copies the labels of a pod set's flavors into its pods in the random order of a map. Source: kueue@v0.19.2
pkg/podset/podset.go (FromAssignment).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from kueue_admission.decide.model import Admission, ResourceFlavor
from kueue_admission.decide.scheduler.entry import Entry


def label_conflicts(
    flavors: Iterable[ResourceFlavor], admission: Admission | None, entry: Entry | None
) -> tuple[str, ...]:
    """A sentence for each pod set that has some by its admission, or gets some by `entry`, if that finds flavors."""
    labels = {flavor.name: dict(flavor.node_labels) for flavor in flavors}
    if admission is not None:
        flavor_lists = [(pod_set.name, [flavor for _, flavor in pod_set.flavors]) for pod_set in admission.pod_sets]
    else:
        pod_set_results = entry.assignment.pod_sets if entry is not None else ()
        flavor_lists = [
            (item.name, [choice.flavor for choice in item.flavors.values()])
            for item in pod_set_results
            if item.is_found
        ]
    return tuple(
        f"Flavors {one} and {other} of pod set {name} have different values of the node label {key}, {ours} and "
        f"{theirs}: Kueue gives its pods one of them at random, so that they may be on nodes that lack what the other "
        "has. Cover these resources in one group of the ClusterQueue, or give the label to one of the flavors only."
        for name, names in flavor_lists
        for one, other in combinations(sorted(set(names)), 2)
        for key, ours, theirs in _differences(labels.get(one, {}), labels.get(other, {}))
    )


def _differences(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    return ((key, one[key], other[key]) for key in one if one[key] != other.get(key, one[key]))
