"""Pools of calendar reservations are open from their start to their end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fleet_file.builders import changed
from tests.fleet_file.pool_builders import pools_data

from kueue_fleet.fleet_file import FleetSpec, parse_fleet, read_fleet_text
from kueue_fleet.fleet_file.calendar_pools import fleet_at, fleet_opened
from kueue_fleet.fleet_file.model.per_cluster import groups_on

BEFORE, START = datetime(2026, 11, 30, 23, 59, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
LAST, END = datetime(2026, 12, 14, 23, 59, tzinfo=UTC), datetime(2026, 12, 15, tzinfo=UTC)
OPEN = "nodePools/5/capacity/active"


def at(now: datetime | None, changes: dict[str, Any] | None = None) -> FleetSpec:
    text = json.dumps(changed(pools_data(), changes or {}))
    return read_fleet_text(text, "fleet.yaml", now).whole()


def nodes_and_quota(fleet: FleetSpec) -> tuple[int, str]:
    pool = fleet.node_pool_on("calendar", "batch")
    assert pool is not None
    [quota] = [
        str(quota.nominal_quota)
        for group in groups_on(fleet, fleet.cluster_queues[0].resource_groups, "batch")
        for flavor in group.flavors
        for quota in flavor.resources
        if flavor.name == "calendar" and quota.name == "nvidia.com/gpu"
    ]
    return pool.max_nodes, quota


@pytest.mark.parametrize(
    ("now", "is_open"), [(BEFORE, False), (START, True), (LAST, True), (END, False), (None, False)]
)
def test_nodes_and_quota_are_there_from_the_start_to_the_end(now: datetime | None, is_open: bool) -> None:
    nodes, quota = nodes_and_quota(at(now))
    assert (nodes > 0, quota != "0") == (is_open, is_open)


@pytest.mark.parametrize("said", [True, False])
def test_what_the_file_says_counts_on_every_day(said: bool) -> None:
    for now in (BEFORE, START, END, None):
        assert (nodes_and_quota(at(now, {OPEN: said}))[0] > 0) == said


def test_a_pool_that_is_different_on_a_cluster_has_its_own_dates() -> None:
    later = {"type": "calendar", "reservation": "next", "start": "2027-01-01T00:00:00Z", "duration": "24h"}
    changes = {"nodePools/5/perCluster": {"batch": {"capacity": later}}}
    assert nodes_and_quota(at(START, changes))[0] == 0
    assert nodes_and_quota(at(datetime(2027, 1, 1, 12, tzinfo=UTC), changes))[0] > 0


def test_a_fleet_without_such_pools_is_itself() -> None:
    fleet = parse_fleet(changed(pools_data(), {OPEN: True}))
    assert fleet_at(fleet, START) is fleet


def test_a_fleet_of_one_day_opens_for_another() -> None:
    assert nodes_and_quota(fleet_opened(at(BEFORE)))[0] > 0
    assert nodes_and_quota(fleet_at(at(BEFORE), START))[0] > 0
    assert nodes_and_quota(fleet_opened(at(BEFORE, {OPEN: False})))[0] == 0


def test_what_is_wrong_with_an_open_pool_is_said_before_it_opens() -> None:
    too_much = {"clusterQueues/0/resourceGroups/0/flavors/4/resources/0/nominalQuota": 4000}
    text = json.dumps(changed(pools_data(), too_much))
    before, later = (
        [str(problem) for problem in read_fleet_text(text, "f", now).problems if "4000" in str(problem)]
        for now in (BEFORE, START)
    )
    assert before == later
    assert before
