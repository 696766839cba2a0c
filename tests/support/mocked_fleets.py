"""Fleets on Pulumi's mocks, and where what they make is."""

from __future__ import annotations

from typing import Any

import pulumi_mocks
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec
from pulumi_mocks import Recorded, Recording


def run(spec: FleetSpec, **arguments: Any) -> Recording:
    return pulumi_mocks.run(lambda: Fleet(spec.name, spec, **arguments))


def in_clusters(recording: Recording) -> list[Recorded]:
    return [r for r in recording if r.type.startswith("kubernetes:")]


def cluster_of(recorded: Recorded) -> str:
    return recorded.place.split("/")[0]
