"""The rules of GKE for the labels and taints of a node pool.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.gke.pool import Breach, Pool


def check_labels(pool: Pool) -> Iterator[Breach]:
    """No label is in a domain of Kubernetes."""
    for index, key in enumerate(pool.labels):
        domain = key.rpartition("/")[0]
        if domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io")):
            yield Breach("labels", "is in a domain that Kubernetes reserves", "use another domain", index)


def check_taints(pool: Pool) -> Iterator[Breach]:
    """Each taint is there once."""
    own = [(taint.key, taint.effect) for taint in pool.taints]
    for index, (key, effect) in enumerate(own):
        if (key, effect) in own[:index]:
            yield Breach(
                "taints",
                f"has the key {key} and the effect {effect} of one before it",
                "list each pair of key and effect once",
                index,
            )
