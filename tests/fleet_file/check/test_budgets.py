"""Budgets that hold jobs back: what they need, and what they make."""

from __future__ import annotations

from typing import Any

from kueue_admission.kernel.names import BUDGET_CHECK
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.parse import read_fleet
from kueue_fleet.objects import render_cluster
from kueue_fleet.settings.configuration import LEDGER_NAME
from small_fleets import standalone_data

CONTROLLER = {"image": "example.com/controller:1"}
AT = "teams[vision].budget"


def data(enforce: str = "wait", **budget: Any) -> dict[str, Any]:
    result = standalone_data(controller=CONTROLLER)
    result["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    entrance = {"name": "gpu", "clusterQueue": result["clusterQueues"][0]["name"]}
    budget = budget or {"gpuHours": 10}
    result["teams"] = [{"name": "vision", "localQueues": [entrance], "budget": {**budget, "enforce": enforce}}]
    return result


def problems(made: dict[str, Any]) -> list[tuple[str, str]]:
    result = read_fleet(made).problems
    return [(item.path, item.wrong) for item in result if item.rule.code in ("KF839", "KF840")]


def test_its_check_is_on_the_queues_of_the_team_and_the_controller_may_keep_what_is_used() -> None:
    fleet = parse_fleet(data())
    objects = {(item["kind"], item["metadata"]["name"]): item for item in render_cluster(fleet, "batch")}
    assert ("AdmissionCheck", BUDGET_CHECK) in objects
    queue = objects["ClusterQueue", "gpu"]["spec"]
    assert queue["admissionChecksStrategy"]["admissionChecks"][-1] == {"name": BUDGET_CHECK}
    [rule] = [
        rule
        for rule in objects["Role", "kueue-fleet-controller"]["rules"]
        if rule["resources"] == ["configmaps"] and "patch" in rule["verbs"]
    ]
    assert rule["resourceNames"] == [LEDGER_NAME]


def test_a_budget_that_only_warns_makes_nothing() -> None:
    result = data()
    del result["teams"][0]["budget"]["enforce"], result["controller"]
    objects = render_cluster(parse_fleet(result), "batch")
    assert not [item for item in objects if item["metadata"]["name"] == BUDGET_CHECK]


def test_without_the_controller_nothing_holds_jobs_back() -> None:
    result = data()
    del result["controller"]
    assert problems(result) == [(f"{AT}.enforce", "set, but only the fleet's controller holds jobs back")]


def test_a_queue_without_interruptible_flavors_is_named() -> None:
    [(path, wrong)] = problems(data("interruptibleOnly"))
    assert path == f"{AT}.enforce"
    assert wrong.startswith("interruptibleOnly, but queue gpu has no flavor of Spot or flexStart nodes alone")


def test_hours_without_a_price_hold_no_job_back() -> None:
    assert f"{AT}.usd" in dict(problems(data(usd=100)))
    assert problems(data(gpuHours=100)) == []


def test_flavors_are_limited_by_a_feature_gate_that_must_not_be_off() -> None:
    result = data("interruptibleOnly")
    assert kueue_configuration(parse_fleet(result), "batch")["featureGates"]["ConcurrentAdmission"] is True
    result["kueue"] = {"configuration": {"featureGates": {"ConcurrentAdmission": False}}}
    assert "kueue.configuration.featureGates.ConcurrentAdmission" in dict(problems(result))


def test_the_check_is_the_controllers_own() -> None:
    result = data()
    result["admissionChecks"] = [{"name": BUDGET_CHECK, "controllerName": "example.com/other"}]
    assert any("is the fleet's own check of that name" in str(item) for item in read_fleet(result).problems)


def test_hours_without_a_price_are_said_of_a_budget_that_holds_nothing_back() -> None:
    made = data(usd=10)
    del made["teams"][0]["budget"]["enforce"]
    for flavor in made["flavors"]:
        flavor["nodeLabels"] = {"cloud.google.com/gke-accelerator": "nvidia-of-tomorrow"}
    [(path, wrong)] = problems(made)
    assert (path, wrong.endswith("have no price, so they do not count")) == (f"{AT}.usd", True)
