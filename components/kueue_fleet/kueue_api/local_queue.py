"""LocalQueue: where a namespace's jobs enter a ClusterQueue.

Source: kueue@v0.19.2 apis/kueue/v1beta2/localqueue_types.go; there is no webhook for it.
"""

from __future__ import annotations

from kueue_fleet.kueue_api.base import DnsSubdomain, RuledModel
from kueue_fleet.kueue_api.cluster_queue import StopPolicy
from kueue_fleet.kueue_api.quotas import FairSharing


class LocalQueueSpec(RuledModel):
    """`spec` of a LocalQueue."""

    cluster_queue: DnsSubdomain
    """The ClusterQueue behind it. Immutable."""
    stop_policy: StopPolicy = "None"
    """None (default); Hold: admit nothing new; HoldAndDrain: also evict what runs."""
    fair_sharing: FairSharing | None = None
    """Weight under admission fair sharing."""
