"""Queues with `fallback`: what it needs, and what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel import SpecError
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.parse import read_fleet
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.controller_values import controller_configuration
from small_fleets import MANAGER, WORKER, fleet_data, standalone_data

CONTROLLER = {"image": "example.com/controller:1"}


def data(*fallback: tuple[str, str], **changes: Any) -> dict[str, Any]:
    result = standalone_data(controller=CONTROLLER, **changes)
    result["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    result["clusterQueues"][0]["fallback"] = [{"flavor": name, "patience": patience} for name, patience in fallback]
    return result


def problems(made: dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as refused:
        parse_fleet(made)
    return [str(problem) for problem in refused.value.problems if problem.severity == "error"]


def warnings(made: dict[str, Any]) -> list[str]:
    return [str(one) for one in read_fleet(made).problems if "waitForPodsReady" in str(one)]


def test_what_it_makes_on_the_cluster() -> None:
    fleet = parse_fleet(data(("l4", "30m")))
    objects = {(item["kind"], item["metadata"]["name"]): item for item in render_cluster(fleet, "batch")}
    check = objects["AdmissionCheck", "kueue-fleet-fallback"]
    assert check["spec"] == {"controllerName": "kueue-fleet.dev/admission-check"}
    strategy = objects["ClusterQueue", "gpu"]["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert {"name": "kueue-fleet-fallback", "onFlavors": ["l4"]} in strategy
    assert "fallback" not in objects["ClusterQueue", "gpu"]["spec"]
    assert kueue_configuration(fleet, "batch")["featureGates"]["ConcurrentAdmission"] is True
    rules = objects["ClusterRole", "kueue-fleet-controller-jobs"]["rules"]
    assert {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["patch"]} in rules
    pod = objects["Deployment", "kueue-fleet-controller"]["spec"]["template"]["spec"]
    # A projected volume without sources would come back from the API server with none at all.
    assert {"name": "workers", "emptyDir": {}} in pod["volumes"]


def test_without_it_nothing_of_it_is_there() -> None:
    result = standalone_data()
    result["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    fleet = parse_fleet(result)
    assert "kueue-fleet-fallback" not in [item["metadata"]["name"] for item in render_cluster(fleet, "batch")]
    assert "ConcurrentAdmission" not in kueue_configuration(fleet, "batch")["featureGates"]


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        (("l4", "100ms"), "clusterQueues[gpu].fallback[0].patience: 100ms is less than a second; write 1s or longer"),
        (
            ("h100", "30m"),
            "clusterQueues[gpu].fallback[0].flavor: h100 is the last flavor, and nothing comes after it; remove it, or "
            "add a flavor",
        ),
        (
            ("t4", "30m"),
            "clusterQueues[gpu].fallback[0].flavor: the queue has no quota on flavor t4; use one of the flavors of the "
            "queue: l4, h100",
        ),
    ],
)
def test_wrong_entries(fallback: tuple[str, str], problem: str) -> None:
    assert problems(data(fallback)) == [problem]


def test_a_flavor_is_there_once() -> None:
    [result] = problems(data(("l4", "30m"), ("l4", "40m")))
    assert result == "clusterQueues[gpu].fallback[1].flavor: l4 is listed twice; keep one of them"


def test_somebody_has_to_take_jobs_back() -> None:
    result = data(("l4", "30m"))
    del result["controller"]
    assert problems(result) == [
        "clusterQueues[gpu].fallback: set, but only the fleet's controller takes jobs back; add the section controller"
    ]


def test_a_controller_without_anything_to_do() -> None:
    [result] = [str(item) for item in read_fleet(data()).problems if item.path == "controller"]
    assert result == (
        "controller: set, but there is no multiKueue section, and no checks, fallback, "
        "quotaFollows, during, enforced budget or history; remove it, add workers and multiKueue, or set fallback in a "
        "queue"
    )


def test_checks_of_the_controller_are_answered_on_one_cluster_too() -> None:
    check = {"name": "fleet", "controllerName": "kueue-fleet.dev/admission-check"}
    result = data()
    result["controller"] = CONTROLLER | {"checks": [{"name": "fleet", "runDuration": {}}]}
    result["admissionChecks"].append(check)
    fleet = parse_fleet(result)
    assert fleet.controller_cluster == "batch"
    assert controller_configuration(fleet).region == "us-central1"


def test_the_feature_gate_stays_on() -> None:
    gates = {"configuration": {"featureGates": {"ConcurrentAdmission": False}}}
    [result] = problems(data(("l4", "30m"), kueue=gates))
    assert result.startswith("kueue.configuration.featureGates.ConcurrentAdmission: false, and queue gpu has fallback")


def of_workers() -> dict[str, Any]:
    result = fleet_data(WORKER, controller=CONTROLLER)
    result["clusterQueues"][0]["fallback"] = [{"flavor": "l4", "patience": "30m"}]
    return result


def test_jobs_of_workers_are_taken_back_on_the_manager() -> None:
    fleet = parse_fleet(of_workers())
    check = {"name": "kueue-fleet-fallback"}
    for cluster, there in ((MANAGER, True), (WORKER, False)):
        objects = {(item["kind"], item["metadata"]["name"]): item for item in render_cluster(fleet, cluster)}
        assert (("AdmissionCheck", "kueue-fleet-fallback") in objects) is there
        strategy = objects["ClusterQueue", "gpu"]["spec"]["admissionChecksStrategy"]["admissionChecks"]
        assert (check in strategy) is there
        assert kueue_configuration(fleet, cluster)["featureGates"]["ConcurrentAdmission"] is True
    assert controller_configuration(fleet).fallback["gpu"].manager_flavors == ("multikueue",)


def test_nothing_takes_back_what_is_submitted_to_a_worker() -> None:
    result = of_workers()
    result["clusterQueues"].append({**result["clusterQueues"][0], "name": "sent", "fallback": []})
    result["multiKueue"]["queues"] = ["sent"]
    [results] = [one for one in problems(result) if ".fallback" in one]
    assert results == (
        f"clusterQueues[gpu].fallback: set, but jobs are submitted to the queue on {WORKER}, and the controller is on "
        f"{MANAGER}; remove it, or name the queue in multiKueue.queues"
    )


def test_a_manager_has_flavors_of_its_own() -> None:
    result = of_workers()
    quotas = [{"name": "nvidia.com/gpu", "nominalQuota": 100}]
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "l4", "resources": quotas}]}
    result["clusterQueues"][0]["manager"] = {"resourceGroups": [group]}
    results = [one for one in problems(result) if "gives up" in one or "give up" in one]
    assert results == [
        "clusterQueues[gpu].manager.resourceGroups[0].flavors[l4]: is a flavor that jobs give up on the workers; use a "
        "flavor of the manager's own"
    ]


def test_the_name_of_the_check_is_taken() -> None:
    result = data(("l4", "30m"))
    result["admissionChecks"].append({"name": "kueue-fleet-fallback", "controllerName": "example.com/other"})
    assert problems(result) == [
        "admissionChecks[kueue-fleet-fallback].name: is the fleet's own check of that name; use another name"
    ]


def test_kueue_does_not_take_an_admitted_job_back_first() -> None:
    result = data(("h100", "30m"))
    result["clusterQueues"][0]["resourceGroups"][0]["flavors"].reverse()
    [results] = warnings(result)
    assert results.startswith(
        "clusterQueues[gpu].fallback[0].patience: 30m is not shorter than waitForPodsReady.timeout on batch, "
    )
    result["kueue"] = {"configuration": {"waitForPodsReady": {"timeout": "31m"}}}
    assert not warnings(result)
