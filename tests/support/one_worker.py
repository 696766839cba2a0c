"""Fleets whose workers are alike, in small."""

from __future__ import annotations

from typing import Any


def with_one_worker(fleet: dict[str, Any]) -> None:
    """Leaves a fleet its manager, its first worker, and what they have."""
    manager, worker, *_ = fleet["clusters"]
    fleet["clusters"] = [manager, worker]
    fleet["multiKueue"]["workers"] = [worker["name"]]
    region = worker["region"]
    if reservations := fleet.get("reservations"):
        fleet["reservations"] = [entry for entry in reservations if entry["zone"].startswith(region)]
    for thing in [*fleet.get("nodePools", ()), *fleet["clusterQueues"]]:
        thing.pop("perCluster", None)
        if "clusters" in thing:
            thing["clusters"] = [worker["name"]]
    if controller := fleet.get("controller"):
        controller["prices"] = {region: controller["prices"][region]}
