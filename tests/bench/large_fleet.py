"""A manager and twenty workers: the largest fleet that one MultiKueueConfig can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kueue_fleet.gke.regions import REGION_RANGES

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"
WORKERS = 20


def large_fleet() -> dict[str, Any]:
    """The DWS stack's fleet with as many workers as are allowed, each in a region of its own."""
    fleet: dict[str, Any] = yaml.safe_load(STACK.read_text())["config"]["kueue-fleet:fleet"]
    manager = fleet["clusters"][0]
    regions = [region for region in REGION_RANGES if region != manager["region"]][:WORKERS]
    workers = [{"name": f"worker-{region}", "role": "worker", "region": region} for region in regions]
    fleet["clusters"] = [manager, *workers]
    fleet["multiKueue"]["workers"] = [worker["name"] for worker in workers]
    return fleet
