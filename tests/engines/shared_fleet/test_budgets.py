"""A team that has used up its budget: on the real Kueue its job waits without quota, and runs once it is allowed, or
runs on Spot nodes alone."""

from __future__ import annotations

import json
import time

import pytest

from controller_lab import ControllerLab, apply_object, job
from kueue_admission.kernel.names import (
    ALLOWED_FLAVORS_ANNOTATION,
    BUDGET_CHECK,
    OVER_BUDGET_BY_LABEL,
    OVER_BUDGET_UNTIL_LABEL,
)
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects import render_cluster
from kueue_fleet.settings.budgets import period_of
from kueue_fleet.settings.configuration import LEDGER_NAME
from one_cluster import KUEUE, Json, condition, wait_until
from two_regions import data

CONFIG_MAPS = "/api/v1/namespaces/kueue-fleet-system/configmaps"


def apply_queue(lab: ControllerLab) -> None:
    """The queue `gpu` of each cluster, with the checks that it has."""
    for name, cluster in lab.clusters.items():
        for manifest in render_cluster(lab.fleet, name):
            if manifest["metadata"]["name"] in (BUDGET_CHECK, "gpu") and manifest["kind"] in (
                "AdmissionCheck",
                "ClusterQueue",
            ):
                apply_object(cluster, manifest)


def spot_only() -> Json:
    """L4 are on Spot nodes, and come after a flavor without nodes; over the budget a job may have them alone."""
    result = data()
    for cluster in result["clusters"]:
        cluster |= {"mode": "Standard", "zones": [f"{cluster['region']}-a"]} if cluster["role"] == "worker" else {}
    pool = {"machineType": "g2-standard-96", "autoscaling": {"totalMaxNodeCount": 200}}
    result["nodePools"] = [{**pool, "name": "absent"}, {**pool, "name": "l4", "capacity": {"type": "spot"}}]
    result["flavors"] = [{"name": name, "nodePool": name} for name in ("absent", "l4")]
    result["localQueues"] = [item for item in result["localQueues"] if item["clusterQueue"] == "gpu"]
    result["clusterQueues"] = [entry for entry in result["clusterQueues"] if entry["name"] == "gpu"]
    result["admissionChecks"] = [each for each in result["admissionChecks"] if each["name"] == "fleet"]
    flavors = result["clusterQueues"][0]["resourceGroups"][0]["flavors"]
    flavors.insert(0, {**flavors[0], "name": "absent"})
    del result["cohorts"], result["topologies"], result["controller"]["prices"]
    return {**result, "teams": [{"name": "team", "budget": {"gpuHours": 1, "enforce": "interruptibleOnly"}}]}


def checked(lab: ControllerLab, name: str) -> str:
    """What the budget's check says of a job."""
    status = (lab.workload(name) or {}).get("status", {})
    checks: dict[str, str] = {item["name"]: item["message"] for item in status.get("admissionChecks", ())}
    return checks.get(BUDGET_CHECK, "")


def kept(lab: ControllerLab) -> Json:
    result: Json = json.loads(lab.manager.get(f"{CONFIG_MAPS}/{LEDGER_NAME}")["data"]["ledger"])
    return result


def test_a_job_over_the_budget_waits_and_runs_once_it_is_allowed(
    lab: ControllerLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for replica in lab.replicas:
        replica.stop()
    lab.clear()
    usual = lab.fleet
    budgeted = {**data(), "teams": [{"name": "team", "budget": {"gpuHours": 1, "enforce": "wait"}}]}
    monkeypatch.setattr(lab, "fleet", parse_fleet(budgeted))
    begin, _ = period_of(time.time(), "month")
    ledger = {"until": time.time(), "used": {"team": [begin, begin, 1.0, 0.0]}}
    metadata = {"name": LEDGER_NAME, "namespace": "kueue-fleet-system"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ledger": json.dumps(ledger)}}
    lab.manager.create(CONFIG_MAPS, body)
    apply_queue(lab)
    try:
        lab.start_controller("budgets")
        lab.submit(job("over"))
        result = wait_until(
            lambda: (
                w
                if condition(w := lab.workload("over") or {}, "QuotaReserved") == "False"
                and condition(w, "Evicted") == "True"
                else None
            )
        )
        output = {item["type"]: item["message"] for item in result["status"]["conditions"]}
        assert "Team team has used 1 of 1 GPU hours per month; it waits until " in output["Evicted"]

        path = f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}"
        labels = {OVER_BUDGET_BY_LABEL: "jane", OVER_BUDGET_UNTIL_LABEL: "2099-12-31"}
        lab.manager.request("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")
        wait_until(lambda: checked(lab, "over").endswith("jane allowed it until 2099-12-31"))
        wait_until(lambda: condition(lab.workload("over") or {}, "Finished") == "True")
        wait_until(lambda: kept(lab)["until"] > ledger["until"])

        for replica in lab.replicas:
            replica.stop()
        monkeypatch.setattr(lab, "fleet", parse_fleet(spot_only()))
        apply_queue(lab)
        lab.start_controller("interruptible")
        lab.submit(job("on-spot"))
        # It would be admitted to the first flavor, and have no node, were it not for the budget.
        result = wait_until(lambda: w if condition(w := lab.workload("on-spot") or {}, "Finished") == "True" else None)
        left = result["metadata"]["annotations"][ALLOWED_FLAVORS_ANNOTATION].split(",")
        assert "l4" in left
        assert "absent" not in left
        wait_until(lambda: checked(lab, "on-spot").endswith("it may have interruptible flavors"))
    finally:
        for replica in lab.replicas:
            replica.stop()
        monkeypatch.setattr(lab, "fleet", usual)
        apply_queue(lab)
