from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.controller.build import COPY, GPU, NOW, Fixture, admitted_copy, condition, configured, workload
from tests.kube.fake_api import FakeApi

from kueue_admission.decide.model import Configuration
from kueue_fleet.controller import configured_quota
from kueue_fleet.controller.configured_quota import CONFIGURED, KUEUE
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.dispatch import Fit, FitKind
from kueue_fleet.kube import watching
from kueue_fleet.kube.answers import ApiError, Json

CLUSTER_QUEUE = ("clusterqueues", "gpu")


def held(worker: WorkerState) -> frozenset[str]:
    return worker.quota.held if worker.quota is not None else frozenset()


def seen(fixture: Fixture, worker: str, gpus: int) -> Fit:
    """What a new workload would find on a worker."""
    record = fixture.manager.records[fixture.take(workload("new", gpus))]
    quota = fixture.workers[worker].quota
    assert quota is not None
    return quota.examine(record.workload, NOW)


def test_a_job_without_requests_fits_where_the_default_of_its_teams_limit_range_does() -> None:
    """Kueue counts with it on the workers, and the Workload does not have it."""
    fixture = Fixture(limits={"ns": {"type": "Container", "default": {GPU: "6"}}})
    fixture.workers["us"].take_workload("ns/one", admitted_copy("one", 4))
    silent = workload("silent")
    del silent["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]
    record = fixture.manager.records[fixture.take(silent)]
    for name, kind in (("eu", FitKind.FREE), ("us", FitKind.WAITING)):
        quota = fixture.workers[name].quota
        assert quota is not None
        assert quota.examine(record.workload, NOW).kind is kind


async def test_what_is_on_its_way_is_kept_while_the_queues_cannot_be_read() -> None:
    fixture = Fixture()
    await fixture.look(workload("one", 8))
    worker = fixture.workers["us"]
    readable = worker._manifests[CLUSTER_QUEUE]
    worker._manifests[CLUSTER_QUEUE] = configured("ClusterQueue", "gpu", {"resourceGroups": "none"})
    worker.read_configuration()
    assert held(worker) == frozenset()
    worker._manifests[CLUSTER_QUEUE] = readable
    worker.read_configuration()
    assert held(worker) == {"ns/one"}


ODD = {"annotations": {"kueue.x-k8s.io/priority-boost": "much"}}
"""What the core cannot read of a Workload."""


async def test_what_the_core_cannot_read_holds_its_quota_all_the_same() -> None:
    fixture = Fixture()
    fixture.workers["us"].take_workload("ns/odd", admitted_copy("odd", 6, **ODD))
    assert seen(fixture, "us", 4).kind is FitKind.WAITING
    fixture.workers["us"].take_workload("ns/odd", None)
    assert seen(fixture, "us", 4).kind is FitKind.FREE


async def test_a_workload_whose_node_failed_holds_its_quota() -> None:
    fixture = Fixture()
    copy = admitted_copy("odd", 6)
    copy["status"]["unhealthyNodes"] = [{"name": "node-1"}]
    fixture.workers["us"].take_workload("ns/odd", copy)
    assert seen(fixture, "us", 4).kind is FitKind.WAITING


async def test_what_the_core_cannot_read_and_waits_holds_nothing() -> None:
    fixture = Fixture()
    waiting = workload("odd", 6, conditions=[], **ODD)
    del waiting["status"]["admission"]
    fixture.workers["us"].take_workload("ns/odd", waiting)
    assert seen(fixture, "us", 4).kind is FitKind.FREE


def request(uid: str) -> Json:
    reference = {"kind": "Workload", "name": "train", "uid": uid}
    metadata = {"name": "train-dws-1", "namespace": "ns", "ownerReferences": [reference]}
    return {"metadata": metadata, "status": {"conditions": [condition("Accepted")]}}


async def test_the_provisioning_request_of_an_earlier_copy_says_nothing_of_the_present_one() -> None:
    worker = Fixture().workers["us"]
    worker.take_provisioning("ns/train-dws-1", request("uid-earlier"))
    assert worker.provisioning("ns/train") == ()
    worker.take_workload("ns/train", workload(labels=COPY))
    assert worker.provisioning("ns/train") == ()
    worker.take_provisioning("ns/train-dws-1", request("uid-train"))
    assert [result.accepted_at for result in worker.provisioning("ns/train")] == [NOW]
    worker.take_workload("ns/train", None)
    assert worker.provisioning("ns/train") == ()


KINDS = {
    f"{KUEUE}/admissionchecks": "AdmissionCheck",
    f"{KUEUE}/clusterqueues": "ClusterQueue",
    f"{KUEUE}/localqueues": "LocalQueue",
    f"{KUEUE}/resourceflavors": "ResourceFlavor",
}


class LateApi(FakeApi):
    """A worker that lists one kind later than all others."""

    def __init__(self, late: str) -> None:
        super().__init__()
        self.late = late
        self.answers = asyncio.Event()

    async def get(self, path: str, params: Any = None) -> Json:
        if path == self.late:
            await self.answers.wait()
        page = await super().get(path, params)
        return page | {"kind": f"{KINDS.get(path, 'Thing')}List", "apiVersion": "kueue.x-k8s.io/v1beta2"}


@asynccontextmanager
async def following(worker: WorkerState, api: FakeApi) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(watch.run()) for watch in worker.watch(api)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, ApiError):
                await task


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("late", [f"{KUEUE}/{kind}" for kind in (*CONFIGURED, "workloads")])
async def test_nothing_is_read_of_a_part_of_the_configuration(monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    monkeypatch.setattr(configured_quota, "_SETTLE_SECONDS", 0.01)
    known = Fixture().workers["us"]
    api = LateApi(late)
    for (kind, _), item in known._manifests.items():
        api.put(f"{KUEUE}/{kind}", item)
    worker = WorkerState("us", "us-east4", Configuration(), "multikueue", lambda key: None)
    async with following(worker, api):
        await asyncio.sleep(0.1)
        assert worker._objects is None
        api.answers.set()
        async with asyncio.timeout(5):
            while not worker.followed or worker.quota is None:
                await asyncio.sleep(0.01)
        assert vars(worker)["_objects"] == known._objects


@pytest.mark.usefixtures("no_waiting")
async def test_a_worker_that_is_lost_or_found_again_is_a_reason_to_decide_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_FIRST_DELAY", 0.01)
    told: list[tuple[str | None, bool]] = []
    worker, api = (
        WorkerState("us", "us-east4", Configuration(), "multikueue", lambda key: told.append((key, worker.followed))),
        FakeApi(),
    )

    async def until(last: bool) -> None:
        async with asyncio.timeout(15):
            while (None, last) not in told:
                await asyncio.sleep(0.001)
        told.clear()

    async with following(worker, api):
        await until(True)
        api.refusal = ApiError(0, "", "no route to host")
        api.drop_watches()
        await until(False)
        assert "cannot follow" in worker.unknown
        api.refusal = None
        await until(True)
