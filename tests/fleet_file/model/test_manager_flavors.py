"""The manager's flavors: one for each group of queues of a cohort tree that can use the same capacity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fleet_file.builders import (
    COVERED,
    REMOVED,
    Data,
    changed,
    flavor_quotas,
    fleet,
    fleet_data,
    manager_quotas,
    problems,
)

from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.manager_flavors import name_flavors
from kueue_fleet.fleet_file.model.per_cluster import cohort_on, queue_on
from kueue_fleet.objects import render_manager_flavors

ONLY_T4 = {
    "clusterQueues/0/clusters": ["worker-b"],
    "clusterQueues/0/resourceGroups/0/flavors": [flavor_quotas("t4", 2)],
}
"""With this, queue vision has T4 only, and language L4 only; both are in one cohort."""


def of(flavor: str, name: str = "speech", **fields: Any) -> Data:
    """A queue in the same cohort."""
    groups = [{"coveredResources": list(COVERED), "flavors": [flavor_quotas(flavor)]}]
    return {"name": name, "cohortName": "research", "namespaceSelector": {}, "resourceGroups": groups, **fields}


def with_quota(found: FleetSpec) -> dict[str, dict[str, str]]:
    """For each queue, its GPUs on the manager by flavor."""
    return {
        queue.name: {
            flavor.name: str(flavor.resources[0].nominal_quota)
            for group in queue_on(found, queue, "manager").resource_groups
            for flavor in group.flavors
        }
        for queue in found.cluster_queues
    }


def test_queues_that_share_a_flavor_on_a_worker_share_one_on_the_manager() -> None:
    assert with_quota(fleet()) == {"vision": {"multikueue": "10"}, "language": {"multikueue": "16"}}


def test_queues_that_share_none_have_one_each_and_nothing_on_the_one_they_had() -> None:
    result = fleet(ONLY_T4)
    assert with_quota(result) == {
        "vision": {"multikueue-t4": "2", "multikueue": "0"},
        "language": {"multikueue-l4": "16", "multikueue": "0"},
    }
    names = [item["metadata"]["name"] for item in render_manager_flavors(result)]
    assert sorted(names) == ["multikueue", "multikueue-l4", "multikueue-t4"]


def test_what_no_queue_has_cannot_be_borrowed_either() -> None:
    vision, _ = fleet(ONLY_T4).cluster_queues
    (group,) = queue_on(fleet(ONLY_T4), vision, "manager").resource_groups
    assert [str(quota.borrowing_limit) for quota in group.flavors[1].resources] == ["0"] * 4


@pytest.mark.parametrize("cohort", [REMOVED, "elsewhere"])
def test_between_cohort_trees_nothing_is_lent_so_that_the_name_stays(cohort: object) -> None:
    result = fleet({**ONLY_T4, "clusterQueues/0/cohortName": cohort, "cohorts/+": {"name": "elsewhere"}})
    assert with_quota(result) == {"vision": {"multikueue": "2"}, "language": {"multikueue": "16"}}


def test_a_parent_cohort_makes_one_tree_of_two() -> None:
    cohorts = [{"name": "all"}, {"name": "research", "parentName": "all"}, {"name": "product", "parentName": "all"}]
    result = fleet({**ONLY_T4, "cohorts": cohorts, "clusterQueues/0/cohortName": "product"})
    assert [next(iter(flavors)) for flavors in with_quota(result).values()] == ["multikueue-t4", "multikueue-l4"]


def test_the_same_flavor_on_different_workers_is_not_the_same_capacity() -> None:
    result = fleet(
        {
            "clusterQueues/0/clusters": ["worker-b"],
            "clusterQueues/0/resourceGroups/0/flavors": [flavor_quotas("l4", 2)],
            "clusterQueues/0/admissionChecksStrategy": REMOVED,
            "clusterQueues/1/clusters": ["worker-a"],
        }
    )
    assert with_quota(result) == {
        "vision": {"multikueue-l4-worker-b": "2", "multikueue": "0"},
        "language": {"multikueue-l4-worker-a": "8", "multikueue": "0"},
    }


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"clusterQueues/+": of("l4")}, id="a queue of the group"),
        pytest.param({"flavors/+": {"name": "h100"}, "clusterQueues/+": of("h100")}, id="a queue of another group"),
        pytest.param({"clusterQueues/+": of("l4", cohortName="elsewhere")}, id="a queue elsewhere"),
        pytest.param({"clusters/+": {"name": "worker-c", "role": "worker", "region": "us-west1"}}, id="a worker"),
        pytest.param({"clusters/1": REMOVED}, id="a worker less"),
    ],
)
def test_names_stay_when_others_come_and_go(change: dict[str, Any]) -> None:
    result = with_quota(fleet({**ONLY_T4, **change}))
    assert [next(iter(result[queue])) for queue in ("vision", "language")] == ["multikueue-t4", "multikueue-l4"]


def test_queues_that_only_a_third_connects_borrow_what_it_has_of_their_flavors() -> None:
    both = of("l4", clusters=["worker-b"])
    both["resourceGroups"][0]["flavors"] = [flavor_quotas("l4", 3), flavor_quotas("t4", 5, lendingLimit=1)]
    result = fleet({**ONLY_T4, "clusterQueues/+": both, "multiKueue/headroomPercent": 100})
    limits = {}
    for queue in result.cluster_queues:
        (group,) = queue_on(result, queue, "manager").resource_groups
        [flavor] = group.flavors
        limits[queue.name] = (flavor.name, flavor.resources[0].borrowing_limit)
    assert {name: (flavor, limit and str(limit)) for name, (flavor, limit) in limits.items()} == {
        "vision": ("multikueue", "2"),
        "language": ("multikueue", "6"),
        "speech": ("multikueue", None),
    }


def test_quota_of_a_cohort_is_on_the_flavors_of_those_who_can_use_it() -> None:
    flavors = [{"name": n, "resources": [{"name": "cpu", "nominalQuota": q}]} for n, q in (("l4", 1), ("t4", 10))]
    result = fleet({**ONLY_T4, "cohorts/0/resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]})
    (group,) = cohort_on(result, result.cohorts[0], "manager").resource_groups
    assert {flavor.name: str(flavor.resources[0].nominal_quota) for flavor in group.flavors} == {
        "multikueue-l4": "2",
        "multikueue-t4": "10",
    }


def test_quota_of_a_cohort_for_a_resource_that_one_group_has_not_got() -> None:
    groups = [
        {"coveredResources": [name], "flavors": [{"name": flavor, "resources": [{"name": name, "nominalQuota": 3}]}]}
        for name, flavor in (("cpu", "l4"), ("nvidia.com/gpu", "t4"))
    ]
    result = fleet({**ONLY_T4, "cohorts/0/resourceGroups": groups})
    (group,) = cohort_on(result, result.cohorts[0], "manager").resource_groups
    amounts = {f.name: [(q.name, str(q.nominal_quota), q.borrowing_limit) for q in f.resources] for f in group.flavors}
    assert amounts == {
        "multikueue-l4": [("cpu", "6", None), ("nvidia.com/gpu", "0", None)],
        "multikueue-t4": [("cpu", "0", None), ("nvidia.com/gpu", "3", None)],
    }


def test_former_flavors_stay_on_the_manager_and_in_its_queues() -> None:
    result = fleet({"multiKueue/formerManagerFlavorNames": ["multikueue-t4"]})
    assert with_quota(result)["vision"] == {"multikueue": "10", "multikueue-t4": "0"}
    assert [item["metadata"]["name"] for item in render_manager_flavors(result)] == ["multikueue", "multikueue-t4"]


PLACES = st.frozensets(st.tuples(st.sampled_from("xyz"), st.sampled_from("abcd")), max_size=3)


@given(st.lists(PLACES, max_size=6))
def test_queues_have_the_same_flavor_if_and_only_if_a_chain_of_shared_places_connects_them(
    queues: list[frozenset[tuple[str, str]]],
) -> None:
    named = name_flavors("m", queues, "abcd", "xyz")
    reached = [set(queue) for queue in queues]
    for _ in queues:
        for mine in reached:
            mine.update(*(other for other in reached if mine & other))
    for one, mine in zip(queues, reached, strict=True):
        for other in queues:
            same = {named[place] for place in one} == {named[place] for place in other}
            assert same == bool(mine & other) or not (one and other)


SHARES = (
    "warning: clusterQueues[vision].manager.resourceGroups: its quota on the manager is on flavor multikueue-l4, and "
    "so is that of language in its cohort, but they share no flavor on any worker: a job of one takes quota that only "
    "jobs of the other can use; remove manager, or use multikueue-t4"
)


@pytest.mark.parametrize(("flavor", "expected"), [("multikueue-l4", [SHARES]), ("multikueue-t4", [])])
def test_by_hand_a_flavor_of_queues_that_share_nothing_is_warned_of(flavor: str, expected: list[str]) -> None:
    data = changed(
        fleet_data(), {**ONLY_T4, "clusterQueues/0/manager": manager_quotas(flavor, 2, 64, "256Gi", "400Gi")}
    )
    assert [item for item in problems(data) if ".manager." in item] == expected


MOVES = (
    "clusterQueues: {0}: quota on the manager moves from multikueue to multikueue-{1}: no job is evicted; those with "
    "quota keep it on multikueue until they end, and do not count against the new quota, so that until then more "
    "jobs may wait on the workers"
)
LOSES = (
    "clusterQueues: {0}: no flavor multikueue-{1} on the manager any more, and jobs that hold it there lose their "
    "MultiKueue check: Kueue admits those that wait for a worker without one, and may not see others end; keep it in "
    "multiKueue.formerManagerFlavorNames, until no job holds it"
)


def told(old: FleetSpec, new: FleetSpec) -> list[str]:
    return [str(item) for item in compare_fleets(old, new) if item.area == "consequences"]


def test_diff_says_that_a_queue_moves_to_another_flavor_of_the_manager() -> None:
    before = fleet({"clusterQueues/0/clusters": ["worker-b"]})
    assert told(before, fleet(ONLY_T4)) == [MOVES.format("vision", "t4"), MOVES.format("language", "l4")]


def test_diff_says_what_a_queue_loses_on_the_manager_unless_it_is_kept() -> None:
    assert told(fleet(ONLY_T4), fleet({"clusterQueues/0/clusters": ["worker-b"]})) == [
        LOSES.format("vision", "t4"),
        LOSES.format("language", "l4"),
    ]
    kept = fleet({"multiKueue/formerManagerFlavorNames": ["multikueue-t4", "multikueue-l4"]})
    assert not [item for item in told(fleet(ONLY_T4), kept) if "lose their" in item]
