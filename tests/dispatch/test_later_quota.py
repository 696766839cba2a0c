"""What a queue may have at another time, when its quota follows calendar pools."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.dispatch.build import GPU, job

from kueue_fleet.dispatch import LaterQuota
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.calendar_pools import fleet_at, fleet_undated
from kueue_fleet.fleet_file.fleet_quotas import fleet_quotas

START = datetime(2026, 12, 1, tzinfo=UTC)


def pool(name: str, **capacity: Any) -> dict[str, Any]:
    dates = {"start": START.isoformat(), "duration": "336h"}
    result = {"name": name, "machineType": "a3-highgpu-8g", "zones": ["us-central1-a"], "nodeCount": 2}
    return {**result, "capacity": {"type": "calendar", "reservation": name, **dates, **capacity}}


def fleet(**capacity: Any) -> FleetSpec:
    """A queue with 16 GPUs of a calendar pool on a cluster."""
    flavor = {"name": "h100", "resources": [{"name": GPU, "nominalQuota": 16}]}
    return parse_fleet(
        {
            "name": "lab",
            "project": "lab-project",
            "clusters": [{"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard"}],
            "nodePools": [pool("h100", **capacity)],
            "flavors": [{"name": "h100", "nodePool": "h100"}],
            "clusterQueues": [
                {
                    "name": "red",
                    "namespaceSelector": {},
                    "quotaFollows": "capacity",
                    "resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}],
                }
            ],
            "controller": {"image": "example.com/controller:1"},
        }
    )


def may_fit(spec: FleetSpec, gpus: int) -> bool:
    return LaterQuota(fleet_quotas(spec)).may_fit(job(gpus=gpus), "red", "batch")


@pytest.mark.parametrize("before", [fleet_undated, lambda spec: fleet_at(spec, START - timedelta(days=3))])
def test_a_calendar_pool_that_is_not_open_yet_counts(before: Callable[[FleetSpec], FleetSpec]) -> None:
    assert may_fit(before(fleet()), 16)


def test_a_calendar_pool_counts_with_no_more_than_it_has() -> None:
    assert not may_fit(fleet_undated(fleet()), 17)


def test_a_pool_that_the_file_closes_counts_nothing() -> None:
    assert not may_fit(fleet(active=False), 1)
