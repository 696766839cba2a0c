"""What of an entry holds on which cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bench.large_fleet import large_fleet
from tests.fleet_file.builders import FIRST_QUOTA, Data, changed, fleet, fleet_data, manager_quotas, standalone_data

from kueue_admission.api.manifests import cluster_queue_manifest
from kueue_fleet.fleet_file import FleetSpec, dispatch_groups, parse_fleet
from kueue_fleet.fleet_file.model.per_cluster import cohort_on, cohorts_on, queue_on
from kueue_fleet.objects import render_manager_flavors


def spec_of(of: FleetSpec, queue: str, cluster: str) -> Data:
    """`spec` of a queue on a cluster, as rendered."""
    entry = of.queue(queue)
    assert entry is not None
    spec: Data = cluster_queue_manifest(queue, queue_on(of, entry, cluster))["spec"]
    return spec


def flavors_of(of: FleetSpec, queue: str, cluster: str) -> list[str]:
    return [flavor["name"] for group in spec_of(of, queue, cluster)["resourceGroups"] for flavor in group["flavors"]]


def checks_of(of: FleetSpec, queue: str, cluster: str) -> list[Data]:
    result: list[Data] = spec_of(of, queue, cluster).get("admissionChecksStrategy", {}).get("admissionChecks", [])
    return result


def test_a_queue_keeps_the_flavors_its_cluster_has() -> None:
    assert flavors_of(fleet(), "vision", "worker-a") == ["l4"]
    assert flavors_of(fleet(), "vision", "worker-b") == ["l4", "t4"]
    assert flavors_of(fleet(), "vision", "manager") == ["multikueue"]


def test_a_check_for_flavors_that_are_elsewhere_is_left_out() -> None:
    assert checks_of(fleet(), "vision", "worker-a") == []
    assert checks_of(fleet(), "vision", "worker-b") == [{"name": "dws", "onFlavors": ["t4"]}]
    assert checks_of(fleet(), "vision", "manager") == [{"name": "multikueue"}]


RESIDENCY = {
    "admissionChecks/+": {
        "name": "residency",
        "clusters": ["manager", "worker-a", "worker-b"],
        "controllerName": "example.com/r",
    },
    "clusterQueues/0/admissionChecksStrategy/admissionChecks/+": {"name": "residency", "onFlavors": ["t4"]},
}


@pytest.mark.parametrize("quotas", [{}, {"clusterQueues/0/manager": manager_quotas()}], ids=["derived", "by hand"])
def test_a_check_on_the_manager_is_for_every_job(quotas: dict[str, Any]) -> None:
    there = checks_of(fleet({**RESIDENCY, **quotas}), "vision", "manager")
    assert there == [{"name": "residency"}, {"name": "multikueue"}]


def test_a_check_on_the_manager_keeps_the_flavors_that_are_there() -> None:
    of = fleet(
        {**RESIDENCY, "flavors/1/clusters": ["manager", "worker-b"], "clusterQueues/0/manager": manager_quotas("t4")}
    )
    assert checks_of(of, "vision", "manager") == [{"name": "residency", "onFlavors": ["t4"]}, {"name": "multikueue"}]


def test_amounts_of_one_cluster() -> None:
    of = fleet(
        {
            f"{FIRST_QUOTA}/borrowingLimit": 1,
            f"{FIRST_QUOTA}/perCluster": {"worker-b": {"nominalQuota": 9, "lendingLimit": 0}},
        }
    )
    amounts = {
        cluster: spec_of(of, "vision", cluster)["resourceGroups"][0]["flavors"][0]["resources"][0]
        for cluster in ("worker-a", "worker-b")
    }
    assert amounts == {
        "worker-a": {"name": "nvidia.com/gpu", "nominalQuota": "4", "borrowingLimit": "1"},
        "worker-b": {"name": "nvidia.com/gpu", "nominalQuota": "9", "borrowingLimit": "1", "lendingLimit": "0"},
    }


def test_derived_limits_are_summed_and_missing_where_any_is() -> None:
    t4 = "clusterQueues/0/resourceGroups/0/flavors/1/resources/0"
    limits = {f"{FIRST_QUOTA}/borrowingLimit": 1, f"{FIRST_QUOTA}/lendingLimit": 2, f"{t4}/borrowingLimit": 3}
    (group,) = queue_on(fleet(limits), fleet(limits).cluster_queues[0], "manager").resource_groups
    gpu = group.flavors[0].resources[0]
    assert (str(gpu.nominal_quota), str(gpu.borrowing_limit), gpu.lending_limit) == ("10", "5", None)


def test_headroom() -> None:
    (group,) = spec_of(fleet({"multiKueue/headroomPercent": 25}), "vision", "manager")["resourceGroups"]
    assert [quota["nominalQuota"] for quota in group["flavors"][0]["resources"]] == ["13", "240", "960Gi", "1500Gi"]


def test_manager_quotas_by_hand_are_taken_as_they_are() -> None:
    of = fleet({"clusterQueues/0/manager": manager_quotas(gpu=50), "multiKueue/headroomPercent": 25})
    (group,) = spec_of(of, "vision", "manager")["resourceGroups"]
    assert group["flavors"][0]["resources"][0] == {"name": "nvidia.com/gpu", "nominalQuota": "50"}


def test_queues_on_fewer_workers_have_a_config_of_their_own() -> None:
    of = fleet({"clusterQueues/0/clusters": ["worker-b"], "multiKueue/workers": ["worker-b", "worker-a"]})
    assert [(item.check_name, item.config_name, item.workers, item.queues) for item in dispatch_groups(of)] == [
        ("multikueue", "multikueue", ("worker-b", "worker-a"), ("language",)),
        ("multikueue-vision", "multikueue-vision", ("worker-b",), ("vision",)),
    ]
    assert checks_of(of, "vision", "manager") == [{"name": "multikueue-vision"}]


def test_queues_that_are_not_dispatched_stay_on_the_workers() -> None:
    of = fleet({"multiKueue/queues": ["vision"]})
    language = of.queue("language")
    assert language is not None
    assert of.queue_clusters(language) == ("worker-a", "worker-b")
    assert of.dispatched == ("vision",)
    assert of.dispatch_workers("language") == ()


def test_worker_that_is_not_listed_gets_nothing() -> None:
    data = changed(fleet_data(), {"multiKueue/workers": ["worker-b"]})
    assert dispatch_groups(parse_fleet(data))[0].workers == ("worker-b",)


def test_queue_of_the_manager_itself() -> None:
    of = fleet(
        {
            "flavors/0/clusters": ["manager", "worker-a", "worker-b"],
            "clusterQueues/1/clusters": ["manager"],
        }
    )
    assert flavors_of(of, "language", "manager") == ["l4"]
    assert checks_of(of, "language", "manager") == []


def test_cohorts_are_where_their_queues_are() -> None:
    cohorts = [{"name": "research", "parentName": "company"}, {"name": "company"}, {"name": "elsewhere"}]
    of = fleet(
        {
            "cohorts": cohorts,
            "clusterQueues/0/clusters": ["worker-b"],
            "clusterQueues/1/cohortName": "elsewhere",
            "clusterQueues/1/clusters": ["worker-a"],
        }
    )
    assert [cohort.name for cohort in cohorts_on(of, "worker-a")] == ["elsewhere"]
    assert [cohort.name for cohort in cohorts_on(of, "worker-b")] == ["company", "research"]
    assert [cohort.name for cohort in cohorts_on(of, "manager")] == ["company", "elsewhere", "research"]


def test_quota_of_a_cohort_on_each_cluster() -> None:
    group = {
        "coveredResources": ["cpu"],
        "flavors": [
            {"name": name, "resources": [{"name": "cpu", "nominalQuota": amount}]}
            for name, amount in (("l4", 1), ("t4", 10))
        ],
    }
    of = fleet({"cohorts/0/resourceGroups": [group]})
    amounts = {}
    for cluster in of.cluster_names:
        (placed,) = cohort_on(of, of.cohorts[0], cluster).resource_groups
        amounts[cluster] = {flavor.name: str(flavor.resources[0].nominal_quota) for flavor in placed.flavors}
    assert amounts == {"manager": {"multikueue": "12"}, "worker-a": {"l4": "1"}, "worker-b": {"l4": "1", "t4": "10"}}


def test_group_of_a_cohort_without_its_flavors_is_left_out() -> None:
    group = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "t4", "resources": [{"name": "cpu", "nominalQuota": 1}]}],
    }
    of = fleet({"cohorts/0/resourceGroups": [group]})
    assert cohort_on(of, of.cohorts[0], "worker-a").resource_groups == ()


def test_manager_flavor_declared_in_the_file_is_not_made_again() -> None:
    declared = {"flavors/+": {"name": "multikueue", "clusters": ["manager"], "nodeLabels": {"a": "b"}}}
    assert render_manager_flavors(parse_fleet(changed(fleet_data(), declared))) == []
    assert [item["metadata"]["name"] for item in render_manager_flavors(fleet())] == ["multikueue"]
    assert render_manager_flavors(parse_fleet(standalone_data())) == []


def test_every_set_of_workers_has_a_config_that_names_at_most_twenty() -> None:
    of = parse_fleet(large_fleet(100))
    groups = dispatch_groups(of)
    assert [len(group.workers) for group in groups] == [20] * 5
    assert [group.config_name for group in groups] == [f"multikueue-dws-{n}" for n in range(5)]
    for group in groups:
        assert checks_of(of, group.queues[0], of.home)[-1] == {"name": group.check_name}


def test_a_config_of_all_workers_is_there_without_a_queue_up_to_twenty() -> None:
    europe = {f"clusterQueues/{index}/clusters": ["worker-b"] for index in range(2)}
    assert [(group.config_name, group.queues) for group in dispatch_groups(fleet(europe))] == [
        ("multikueue", ()),
        ("multikueue-vision", ("vision", "language")),
    ]
