"""Objects of v1beta1 as Kueue converts them."""

from __future__ import annotations

from typing import Any

from kueue_admission.api.conversion import as_v1beta2

V1BETA1 = "kueue.x-k8s.io/v1beta1"


def converted(kind: str, **fields: Any) -> dict[str, Any]:
    result = as_v1beta2({"apiVersion": V1BETA1, "kind": kind, **fields})
    assert result["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    return dict(result)


def test_a_cluster_queue() -> None:
    fungibility = {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
    old = {"cohort": "co", "admissionChecks": ["a"], "flavorFungibility": fungibility, "queueingStrategy": "StrictFIFO"}
    assert converted("ClusterQueue", spec=old)["spec"] == {
        "cohortName": "co",
        "admissionChecksStrategy": {"admissionChecks": [{"name": "a"}]},
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "queueingStrategy": "StrictFIFO",
    }


def test_the_places_of_a_workload() -> None:
    domains = [{"values": ["rack", "n1"], "count": 2}, {"values": ["rack", "n2"], "count": 1}]
    assignment = {"name": "main", "topologyAssignment": {"levels": ["rack", "host"], "domains": domains}}
    status = converted("Workload", status={"admission": {"podSetAssignments": [assignment]}})["status"]
    (result,) = status["admission"]["podSetAssignments"]
    assert result["topologyAssignment"]["slices"] == [
        {
            "domainCount": 1,
            "valuesPerLevel": [{"universal": "rack"}, {"universal": name}],
            "podCounts": {"universal": count},
        }
        for name, count in (("n1", 2), ("n2", 1))
    ]


def test_the_time_that_a_workload_ran_before() -> None:
    status = converted("Workload", status={"accumulatedPastExexcutionTimeSeconds": 7})["status"]
    assert status == {"accumulatedPastExecutionTimeSeconds": 7}


def test_another_version_stays_as_it_is() -> None:
    other = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"cohort": "x"}}
    assert as_v1beta2(other) is other


def test_the_priority_class_of_a_workload() -> None:
    given = {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass", "priority": 5}
    expected = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}
    assert converted("Workload", spec=given)["spec"] == {"priority": 5, "priorityClassRef": expected}


def test_a_priority_class_without_a_source_is_dropped() -> None:
    assert converted("Workload", spec={"priorityClassName": "high", "priority": 5})["spec"] == {"priority": 5}


def test_a_worker_that_is_reached_by_its_profile() -> None:
    given = {"kubeConfig": {"location": "", "locationType": "Secret"}, "clusterProfileRef": {"name": "a"}}
    assert converted("MultiKueueCluster", spec=given)["spec"] == {"clusterSource": {"clusterProfileRef": {"name": "a"}}}


def test_what_the_status_of_a_queue_no_longer_has() -> None:
    usage = [{"name": "l4", "resources": []}]
    local = converted("LocalQueue", status={"flavorUsage": usage, "flavors": [{"name": "l4"}]})
    assert local["status"] == {"flavorsUsage": usage}
    sharing = {"weightedShare": 3, "admissionFairSharingStatus": {}}
    queue = converted("ClusterQueue", status={"pendingWorkloadsStatus": {}, "fairSharing": sharing})
    assert queue["status"] == {"fairSharing": {"weightedShare": 3}}
