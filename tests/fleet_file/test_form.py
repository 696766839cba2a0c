"""The two phases: the form of everything, then the rules all of whose inputs were read; nothing is invented."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import FIRST_QUOTA, REMOVED, changed, fleet_data, problems
from tests.fleet_file.pool_builders import pools_data

from kueue_admission.kernel.form_rules import MISSING
from kueue_admission.kernel.problem import where_read
from kueue_admission.kernel.unknown import NotKnownError
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.check.scope import SECTIONS
from kueue_fleet.fleet_file.form import read_form


def read(data: Any) -> FleetSpec:
    fleet, result = read_form(FleetSpec, data)
    assert result
    assert fleet is not None
    return fleet


def test_what_could_not_be_read_cannot_be_asked_for() -> None:
    fleet = read(changed(fleet_data(), {"project": 5, "clusters/1/region": 5, f"{FIRST_QUOTA}/nominalQuota": "x"}))
    assert fleet.name == "test-fleet"
    with pytest.raises(NotKnownError, match=r"FleetSpec\.project could not be read"):
        _ = fleet.project
    worker = fleet.clusters[1]
    assert (worker.name, worker.role, worker.mode) == ("worker-a", "worker", "Autopilot")
    with pytest.raises(NotKnownError):
        _ = worker.region
    quota = fleet.cluster_queues[0].resource_groups[0].flavors[0].resources[0]
    with pytest.raises(NotKnownError):
        _ = quota.nominal_quota
    assert quota.borrowing_limit is None


def test_a_default_does_not_take_the_place_of_what_could_not_be_read() -> None:
    fleet = read(changed(fleet_data(), {"clusters/1/mode": "standard", "deletionProtection": "yes"}))
    for ask in (lambda: fleet.clusters[1].mode, lambda: fleet.deletion_protection):
        with pytest.raises(NotKnownError):
            ask()
    assert fleet.clusters[2].mode == "Autopilot"


def test_an_entry_that_is_no_map_counts_and_says_nothing() -> None:
    fleet = read(changed(fleet_data(), {"teams/0": "team-vision", "clusters": {"name": "only"}}))
    assert len(fleet.teams) == len(fleet_data()["teams"])
    with pytest.raises(NotKnownError):
        _ = fleet.teams[0].name
    with pytest.raises(NotKnownError):
        _ = fleet.clusters


def test_a_field_in_another_spelling_is_read_and_a_guess_is_not() -> None:
    misspelt = {
        "clusterQueues/0/cohort": "research",
        "clusterQueues/0/cohortName": REMOVED,
        "clusterQueues/0/StopPolicy": "Hold",
        "clusterQueues/1/queuingStrategy": "StrictFIFO",
    }
    fleet = read(changed(fleet_data(), misspelt))
    first, second = fleet.cluster_queues[:2]
    assert (first.cohort_name, first.stop_policy) == ("research", "Hold")
    with pytest.raises(NotKnownError):
        _ = second.queueing_strategy


def test_a_misspelt_field_beside_the_one_that_it_overrides_leaves_both_unread() -> None:
    """As where an entry begins with the fields of another: `<<: *manager`, and its own `rol: worker`."""
    fleet = read(changed(fleet_data(), {"clusters/1/role": "manager", "clusters/1/rol": "worker"}))
    with pytest.raises(NotKnownError):
        _ = fleet.clusters[1].role


def test_a_configuration_of_kueue_is_read_as_a_whole_or_not_at_all() -> None:
    fleet = read(changed(fleet_data(), {"kueue": {"configuration": {"integrations": {"frameworks": "batch/job"}}}}))
    assert fleet.kueue.version
    with pytest.raises(NotKnownError):
        _ = fleet.kueue.configuration


def test_a_rule_ends_where_an_input_was_not_read_and_its_caller_goes_on() -> None:
    fleet = read(changed(fleet_data(), {"project": 5}))

    @where_read
    def speaks() -> Any:
        yield MISSING.at("name", fleet.name, "x")
        yield MISSING.at("project", fleet.project, "x")

    @where_read
    def calls() -> Any:
        yield from speaks()
        yield MISSING.at("end", "reached", "x")

    assert [problem.path for problem in calls()] == ["name", "end"]


def test_a_typing_error_in_a_mode_makes_no_false_errors() -> None:
    data = changed(pools_data(), {"clusters/0/mode": "standard", "teams/0/localQueues/0/clusterQueue": "none"})
    result = problems(data)
    assert (
        result[0]
        == 'clusters[batch].mode: "standard" is not allowed; did you mean Standard? Allowed: Autopilot, Standard'
    )
    assert len(result) == 2
    assert result[1].startswith("teams[team-a].localQueues[")


@pytest.mark.parametrize("field", ["zone", "zones"])
def test_what_a_pool_has_on_one_cluster_is_not_known_where_it_could_not_be_read(field: str) -> None:
    """The pool's own zone is not that of its reservation."""
    moved = {"reservations/0/zone": "us-central1-b", "nodePools/0/perCluster/batch": {field: "us-central1-b"}}
    [result] = problems(changed(pools_data(), moved))
    assert result.startswith(f"nodePools[reserved].perCluster[batch].{field}: ")


def test_a_typing_error_in_a_region_makes_no_false_errors() -> None:
    data = changed(pools_data(), {"clusters/0/region": "us-centrall1", "teams/0/allowedRegions": ["us-central1"]})
    [result] = problems(data)
    assert result.startswith("clusters[batch].region: us-centrall1 is not a known region; did you mean us-central1?")


def test_an_object_as_kubectl_takes_it_is_no_entry() -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "vision"}, "spec": {}}
    said = problems(changed(fleet_data(), {"clusterQueues/0": queue}))
    fix = "is of an object for kubectl; write name, and the fields of spec, in their place"
    assert [f"clusterQueues[0].{key}: {fix}" in said for key in queue] == [True] * 3


@pytest.mark.parametrize("key", ["fleet", "spec"])
def test_a_fleet_one_level_too_deep_is_said_so(key: str) -> None:
    said = problems({key: fleet_data()})
    assert f"{key}: is no field of a fleet, but the fleet; write its fields here" in said


def test_limits_of_a_pool_get_the_nearest_field() -> None:
    data = changed(pools_data(), {"nodePools/0/nodeCount": REMOVED, "nodePools/0/autoscaling": {"min": 0, "max": 4}})
    name = data["nodePools"][0]["name"]
    assert [line for line in problems(data) if "autoscaling" in line] == [
        f"nodePools[{name}].autoscaling.min: is not a known field; did you mean totalMinNodeCount?",
        f"nodePools[{name}].autoscaling.max: is not a known field; did you mean totalMaxNodeCount?",
    ]


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        ("nodePools/0/capacity/autoscaling", "nodePools[NAME].autoscaling"),
        ("clusterQueues/0/resourceGroups/0/cohortName", "clusterQueues[QUEUE].cohortName"),
        ("clusters/0/nodePools", "nodePools (top level)"),
        ("clusterQueues/0/localQueues", "localQueues (top level)"),
        ("clusterQueues/0/weight", "fairSharing.weight"),
        ("clusterQueues/0/nominalQuota", "resourceGroups[].flavors[].resources[].nominalQuota"),
        ("nodePools/0/type", "diskType, accelerator.type or capacity.type"),
        ("nodePools/0/nodesPerZone", "nodeCount"),
        ("nodePools/0/maxNodes", "autoscaling"),
        ("nodePools/0/guest_accelerator", "accelerator"),
        ("nodePools/0/perCluster/batch/spot", "nodePools[NAME].capacity"),
        ("clusters/0/kubernetesVersion", "minMasterVersion"),
        ("clusters/0/subnetwork", "network (top level)"),
    ],
)
def test_a_field_of_another_level_gets_the_place_where_it_belongs(place: str, meant: str) -> None:
    data = changed(pools_data(), {place: "x"})
    names = {"NAME": data["nodePools"][0]["name"], "QUEUE": data["clusterQueues"][0]["name"]}
    for word, name in names.items():
        meant = meant.replace(word, name)
    (line,) = [line for line in problems(data) if "is not a known field" in line]
    assert line.endswith(f": is not a known field; did you mean {meant}?")


def leaves(data: Any, path: str = "") -> list[str]:
    """Every place in the data, as `changed` takes it."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in items for place in (f"{path}{key}", *leaves(value, f"{path}{key}/"))]


@pytest.mark.parametrize("data", [fleet_data(), pools_data()], ids=["fleet", "pools"])
def test_each_field_in_turn_wrong_is_one_problem_and_no_other_is_made_of_it(data: Any) -> None:
    """A number with a fraction is wrong everywhere but as an amount."""
    for place in leaves(data):
        if not place.endswith("nominalQuota"):
            result = problems(changed(data, {place: 7.5}))
            assert len(result) == 1, (place, result)
            assert result[0].startswith(place.split("/")[0])


@pytest.mark.parametrize(
    ("field", "nouns"),
    {
        "clusters": ("cluster", "clusters"),
        "futureReservations": ("future reservation", "future reservations"),
        "topologies": ("topology", "topologies"),
        "workloadPriorityClasses": ("workload priority class", "workload priority classes"),
        "clusterQueues": ("queue", "queues"),
    }.items(),
)
def test_entries_are_called_by_the_name_of_their_list(field: str, nouns: tuple[str, str]) -> None:
    assert SECTIONS[field] == nouns
