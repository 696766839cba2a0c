"""What is said on Workloads that wait: whether it is right, how often it is written, and that it tells of no others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.controller.build import GPU, Fixture, admitted_copy, condition, configured, when, workload

from kueue_admission.decide.model import Configuration
from kueue_admission.read.dispatch_report import WAITING_CONDITION
from kueue_fleet.controller.configured_quota import ConfiguredQuota
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.waiting_reasons import REFRESH_SECONDS, YOUNG_SECONDS, WaitingReasons
from kueue_fleet.kube.answers import ApiError, Json

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-uid", "controller": True}
RIVALS = ("rival-team", "rival-queue", "rival-job", "rival-local", "rival-cohort-child")


def queue(name: str, gpus: int, cohort: str = "", **more: Any) -> Json:
    quotas = [{"name": GPU, "nominalQuota": str(gpus)}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "l4", "resources": quotas}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups, **({"cohortName": cohort} if cohort else {}), **more}
    return configured("ClusterQueue", name, spec)


class Lab(Fixture):
    """A manager with 8 GPUs in the ClusterQueue `gpu`, which may borrow those of others in its cohort."""

    def __init__(self, *others: Json) -> None:
        super().__init__()
        self.events: list[tuple[str, str]] = []
        manifests = [
            queue("gpu", 8, "fleet"),
            configured("ResourceFlavor", "l4", {}),
            configured("LocalQueue", "gpu", {"clusterQueue": "gpu"}, namespace="ns"),
            *others,
        ]
        self.quota = ConfiguredQuota("manager", Configuration(), lambda _: self.reasons.note_all())
        self.reasons = WaitingReasons(self.reconciler._fleet, self.quota, self._tell_job, self.reconciler.residency)
        self.quota._manifests = {(one["kind"], str(one["metadata"])): one for one in manifests}
        self.quota.read_configuration()

    def _tell_job(self, record: Record, reason: str, message: str, _: bool) -> None:
        assert record.owner.name
        self.events.append((reason, message))

    def put(self, item: Json) -> None:
        item["metadata"].setdefault("ownerReferences", [OWNER])
        result = self.api.put("/apis/kueue.x-k8s.io/v1beta2/workloads", item)
        key = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        self.manager.take_workload(key, result)
        self.reasons.note(key)

    def wait(self, name: str = "train", gpus: int = 1, **changes: Any) -> None:
        """A Workload without quota."""
        self.put(workload(name, gpus, conditions=[], checks={}, status={"admission": None}, **changes))

    def admit(self, name: str, gpus: int, *, at: float = 0.0) -> None:
        item = admitted_copy(name, gpus)
        item["status"]["conditions"] = [condition("QuotaReserved", at), condition("Admitted", at)]
        self.put(item)

    async def has_admitted(self, waited: float) -> None:
        """Eight jobs, one each hundred seconds, after they had waited for quota."""
        for index in range(8):
            at = -800.0 + 100 * index
            item = admitted_copy(f"now-{index}", 1)
            item["metadata"]["creationTimestamp"] = when(at - waited)
            item["status"]["conditions"] = [condition("QuotaReserved", at), condition("Admitted", at)]
            self.put(item)
            await self.passes(0)

    async def passes(self, seconds: float = YOUNG_SECONDS, ticks: int = 20) -> None:
        self.clock.now += seconds
        for _ in range(ticks):
            await self.reasons.tick()

    def said(self, name: str = "train") -> Json | None:
        result = self.status(name).get("conditions", [])
        return next((one for one in result if one["type"] == WAITING_CONDITION), None)

    def text(self, name: str = "train") -> str:
        result = self.said(name)
        return "" if result is None else str(result["message"])


async def test_a_job_without_quota_is_told_what_is_missing_its_place_and_what_to_do() -> None:
    lab = Lab()
    lab.admit("first", 6)
    lab.wait("ahead", 4, priority=10)
    lab.wait("train", 4)
    await lab.passes()
    output = lab.said()
    assert output is not None
    assert (output["status"], output["reason"], output["lastTransitionTime"]) == ("True", "WaitingForQuota", when(-1))
    assert output["message"].splitlines() == [
        f"It asks for 4 {GPU}; 2 is free in flavor l4, 2 is missing.",
        f"Next: Wait until 2 more {GPU} of flavor l4 is free for ClusterQueue gpu.",
        "Position: 2 of 2 in ClusterQueue gpu",
        "Start: not known",
        f"Waits for: quota of 4 {GPU} since {when(-1)}",
    ]


async def test_a_job_that_is_too_large_is_told_the_most_that_it_can_have() -> None:
    lab = Lab()
    lab.wait("train", 9)
    await lab.passes()
    assert lab.said() is not None
    assert f"Next: Submit it again with at most 8 {GPU}, or ask for a larger quota." in lab.text()


async def test_a_stopped_queue_is_said() -> None:
    lab = Lab(queue("gpu", 8, stopPolicy="Hold"))
    lab.wait()
    await lab.passes()
    assert "stopped" in lab.text()


async def test_a_job_with_quota_is_told_which_check_keeps_it() -> None:
    lab = Lab()
    lab.put(workload(checks={"dws": "Pending"}))
    await lab.passes()
    assert lab.text().startswith("It has its quota, and AdmissionCheck dws is Pending.\nNext: Wait for whoever answers")
    assert "Position" not in lab.text()


async def test_the_flavor_that_comes_next_is_said() -> None:
    lab = Lab()
    item = workload(checks={"dws": "Pending", "kueue-fleet-fallback": "Ready"})
    item["status"]["admissionChecks"][1]["message"] = "Waits for nodes of b200 since X; moves to l4 at Y"
    lab.put(item)
    await lab.passes()
    assert lab.text().endswith("\nThen: Waits for nodes of b200 since X; moves to l4 at Y")


async def test_the_start_is_estimated_by_the_pace_of_jobs_of_at_least_the_size() -> None:
    lab = Lab()
    for index in range(6):
        lab.admit(f"done-{index}", 1, at=-600 + 100 * index)
        lab.put(workload(f"done-{index}", conditions=[condition("Finished")], checks={}))
    lab.wait("train", 8)
    lab.wait("small", 1)
    await lab.passes()
    assert "Start: not known" in lab.text()
    assert "Start: p50 " not in lab.text()


async def test_the_estimate_is_there_once_enough_jobs_of_the_size_were_admitted() -> None:
    lab = Lab()
    await lab.has_admitted(waited=60)
    lab.wait("train", 1)
    await lab.passes()
    # One GPU each 101 s: the first start is exponential, half of them within 70 s.
    estimate = f"Start: p50 {when(120)}, p90 {when(300)}\nRests on: 8 jobs that its ClusterQueue admitted lately\n"
    assert estimate in lab.text()


async def test_jobs_that_found_free_quota_do_not_tell_when_any_becomes_free() -> None:
    lab = Lab()
    await lab.has_admitted(waited=0)
    lab.wait("train", 1)
    await lab.passes()
    assert "Start: not known" in lab.text()


async def test_an_estimate_is_written_anew_before_it_is_past() -> None:
    lab = Lab()
    await lab.has_admitted(waited=60)
    lab.wait("train", 1)
    await lab.passes()
    assert f"Start: p50 {when(120)}, p90 {when(300)}\n" in lab.text()
    await lab.passes(120)
    assert f"Start: p50 {when(240)}, " in lab.text()


async def test_what_is_admitted_loses_the_condition() -> None:
    lab = Lab()
    lab.wait()
    await lab.passes()
    assert lab.said() is not None
    lab.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"]["ns/train"]["status"]["admission"] = {}
    item = admitted_copy()
    item["status"]["conditions"] += [one for one in lab.status()["conditions"] if one["type"] == WAITING_CONDITION]
    lab.put(item)
    await lab.passes(0)
    assert lab.said() is None


async def test_a_job_that_passes_at_once_is_not_written_to() -> None:
    lab = Lab()
    lab.wait()
    await lab.passes(YOUNG_SECONDS / 2)
    assert lab.api.applied == []


async def test_the_job_gets_an_event_when_the_reason_changes_and_not_when_numbers_do() -> None:
    lab = Lab()
    lab.admit("first", 6)
    lab.wait("train", 4)
    await lab.passes()
    lab.admit("second", 1)
    await lab.passes(REFRESH_SECONDS + 1)
    assert "1 is free" in lab.text()
    assert [reason for reason, _ in lab.events] == ["WaitingForQuota"]


async def test_numbers_are_written_again_after_a_while_and_what_is_the_same_never() -> None:
    lab = Lab()
    lab.admit("first", 6)
    lab.wait("train", 4)
    await lab.passes()
    lab.admit("second", 1)
    await lab.passes(REFRESH_SECONDS / 2)
    assert len(lab.api.applied) == 1
    await lab.passes(REFRESH_SECONDS)
    await lab.passes(REFRESH_SECONDS)
    assert len(lab.api.applied) == 2


async def test_a_burst_is_written_in_portions() -> None:
    lab = Lab()
    for index in range(50):
        lab.wait(f"train-{index}", 9)
    await lab.passes(ticks=1)
    before = len(lab.api.applied)
    await lab.passes(0, ticks=10)
    # With the event of each job it is ten writes in ten ticks, of which there are five a second.
    assert (len(lab.api.applied) - before, len(lab.events) - before) == (5, 5)


async def test_a_refused_write_does_not_stop_the_others() -> None:
    lab = Lab()
    lab.wait("one", 9)
    lab.wait("two", 9)
    lab.api.failures = [ApiError(403, "Forbidden", "no")]
    await lab.passes()
    assert {name for name in ("one", "two") if lab.said(name)} == {"two"}


@pytest.mark.parametrize("hostile", ["", "\x1b[31m<script>alert(1)</script>\n" + "x" * 100_000])
async def test_nothing_of_another_team_is_in_it(hostile: str) -> None:
    """Others hold, borrow and wait in the same cohort and in the same ClusterQueue."""
    team, other, job, local, cohort = RIVALS
    lab = Lab(
        queue(other, 777, "fleet"),
        configured("Cohort", cohort, {"parentName": "fleet"}),
        configured("LocalQueue", local, {"clusterQueue": other}, namespace=team),
        configured("LocalQueue", local, {"clusterQueue": "gpu"}, namespace=team),
    )
    annotations = {"kueue-fleet.dev/note": hostile} if hostile else {}
    for index, (held, cluster_queue) in enumerate([(775, other), (3, "gpu")]):
        item = admitted_copy(f"{job}-{index}", held, annotations=annotations)
        item["metadata"]["namespace"], item["spec"]["queueName"] = team, local
        item["status"]["admission"]["clusterQueue"] = cluster_queue
        lab.put(item)
    waiting = workload(f"{job}-w", 5, conditions=[], checks={}, status={"admission": None}, priority=99)
    waiting["metadata"]["namespace"], waiting["spec"]["queueName"] = team, local
    lab.put(waiting)
    lab.wait("train", 4, annotations=annotations)
    lab.wait("large", 4000, annotations=annotations)
    lab.put(workload("checked", checks={"dws": "Pending"}, annotations=annotations))
    await lab.passes(ticks=40)
    for name in ("train", "large", "checked"):
        text = json.dumps(lab.said(name))
        assert lab.text(name)
        assert [rival for rival in (*RIVALS, "rival", "777", "775", "script", "u001b") if rival in text] == []
        assert len(text) < 3000


async def test_off_in_the_file_nothing_is_said_and_no_queue_is_followed() -> None:
    from kueue_fleet.objects.controller import manager_rules

    kinds = {kind for rule in manager_rules(asks=False, explains=False) for kind in rule["resources"]}
    assert "clusterqueues" not in kinds


async def test_on_a_manager_the_room_of_each_worker_is_said_and_no_flavor_of_the_manager() -> None:
    checks = {"admissionChecks": [{"name": "multikueue"}]}
    check = configured("AdmissionCheck", "multikueue", {"controllerName": "kueue.x-k8s.io/multikueue"})
    check["status"] = {"conditions": [condition("Active")]}
    lab = Lab(queue("gpu", 16, admissionChecksStrategy=checks), check)
    lab.admit("first", 14)
    held = admitted_copy("first", 6)
    lab.workers["eu"].take_workload("ns/first", held)
    lab.wait("train", 4)
    lab.wait("large", 17)
    for worker in lab.workers.values():
        for watch in worker.watches:
            watch.synced.set()
    await lab.passes()
    assert lab.text().splitlines()[:2] == [
        f"It asks for 4 {GPU}; 2 of 16 is free on the worker clusters together, 2 is missing. "
        "By worker: eu 2 of 8 in flavor l4; us 8 of 8 in flavor l4.",
        f"Next: Wait until 2 more {GPU} on a worker cluster is free for ClusterQueue gpu.",
    ]
    assert lab.text("large").startswith(
        f"It asks for 17 {GPU}; ClusterQueue gpu can never have more than 16 of it on its worker clusters together."
    )
