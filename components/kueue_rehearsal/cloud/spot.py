"""Which Spot nodes Google takes back, and when. No I/O: `nodes` carries it out.

The rate is ours: the real one is not known.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.labels import NODE_POOL, SPOT
from kueue_rehearsal.node_agent.status import parse_timestamp

_HOUR_SECONDS = 3600.0


def lifetime_seconds(settings: RehearsalSection, node: str) -> float:
    """How long this node lives: exponential, by seed and name; infinite when nothing is taken back."""
    if settings.spot.reclaims_per_hour <= 0:
        return math.inf
    digest = hashlib.sha256(f"{settings.seed}/reclaim/{node}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return -math.log1p(-share) / settings.spot.reclaims_per_hour * _HOUR_SECONDS


def spot_nodes(nodes: Mapping[str, Manifest], pool: str | None = None) -> list[str]:
    """The names of the Spot nodes, of one pool if it is given."""
    spot_names = []
    for name, node in sorted(nodes.items()):
        labels = node["metadata"].get("labels") or {}
        if labels.get(SPOT) == "true" and pool in (None, labels.get(NODE_POOL)):
            spot_names.append(name)
    return spot_names


def due_reclaims(nodes: Mapping[str, Manifest], settings: RehearsalSection, now: float) -> list[str]:
    """The Spot nodes whose time is over. `now` in seconds since the epoch."""
    due = []
    for name in spot_nodes(nodes):
        creation_time = parse_timestamp(nodes[name]["metadata"]["creationTimestamp"])
        # A node that is made again under the same name is another machine: the second it was made tells them apart.
        if now - creation_time >= lifetime_seconds(settings, f"{name}/{creation_time:.0f}"):
            due.append(name)
    return due


def choose_reclaims(
    nodes: Mapping[str, Manifest], pool: str | None, count: int, settings: RehearsalSection
) -> list[str]:
    """Up to `count` Spot nodes, by seed."""

    def rank(name: str) -> str:
        return hashlib.sha256(f"{settings.seed}/choice/{name}".encode()).hexdigest()

    return sorted(spot_nodes(nodes, pool), key=rank)[:count]
