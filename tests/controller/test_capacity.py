"""The controller writes quotas that follow capacity: where nodes are known, when they change, and no other field."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.controller.build import NOW, Clock, when
from tests.kube.fake_api import FakeApi

from kueue_admission.kernel.names import LOST_CAPACITY_ANNOTATION
from kueue_fleet.controller.capacity import CAPACITY_MANAGER, CapacityWriter
from kueue_fleet.controller.configured_quota import KUEUE
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.controller_values import controller_configuration
from kueue_fleet.settings.configuration import ControllerConfiguration

GPU, LABEL, NODES = "nvidia.com/gpu", "cloud.google.com/gke-nodepool", "/api/v1/nodes"


def fleet(**changes: Any) -> FleetSpec:
    """A manager and a worker with two nodes of eight GPUs; the queue has all of them."""
    quotas = [{"name": GPU, "nominalQuota": 16}]
    group = {"coveredResources": [GPU], "flavors": [{"name": "h100", "resources": quotas}]}
    queue = {"name": "gpu", "namespaceSelector": {}, "resourceGroups": [group], "quotaFollows": "capacity"}
    data: Json = {
        "name": "lab",
        "project": "lab-project",
        "clusters": [
            {"name": "manager", "role": "manager", "region": "europe-west4"},
            {"name": "us", "role": "worker", "region": "us-central1", "mode": "Standard"},
        ],
        "nodePools": [
            {
                "name": "h100",
                "machineType": "a3-highgpu-8g",
                "zones": ["us-central1-a"],
                "nodeCount": 2,
                "capacity": {"type": "reserved", "reservation": "own"},
            }
        ],
        "flavors": [{"name": "h100", "nodePool": "h100"}],
        "clusterQueues": [queue],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "1", "rotateBy": "2027-02-01"}},
        "controller": {"image": "example.com/controller:1"},
    }
    return parse_fleet({**data, **changes})


def node(name: str, *, ready_since: float = -600, ready: bool = True) -> Json:
    status = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": when(ready_since)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "h100"}},
        "spec": {},
        "status": {"allocatable": {GPU: "8"}, "conditions": [status]},
    }


class Lab:
    def __init__(
        self, *, names: tuple[str, ...] = ("a", "b"), silent: bool = False, spec: FleetSpec | None = None
    ) -> None:
        written = controller_configuration(spec or fleet())
        following = ControllerConfiguration.model_validate(written.wire()).following
        assert following is not None
        self.fleet, self.clock, self.metrics = following, Clock(), Metrics()
        self.home, self.worker = FakeApi(), FakeApi()
        self.worker.silent = silent
        for api in (self.home, self.worker):
            api.put(f"{KUEUE}/clusterqueues", {"metadata": {"name": "gpu"}})
        for name in names:
            self.worker.put(NODES, node(name))
        self.writer = CapacityWriter(following, self.home, {"us": self.worker}, self.metrics, self.clock)

    async def look(self, seconds: float = 0.0) -> None:
        await asyncio.sleep(0.01)
        self.clock.now = NOW + seconds
        await self.writer.look(self.fleet)

    @property
    def quotas(self) -> list[tuple[str, str]]:
        """What was written, in order: cluster and GPUs."""
        return [*((name, _gpus(body)) for name, api in self._apis for _, body, _ in api.applied)]

    @property
    def _apis(self) -> tuple[tuple[str, FakeApi], ...]:
        return (("us", self.worker), ("manager", self.home))


def _gpus(body: Json) -> str:
    return str(body["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


@asynccontextmanager
async def running(lab: Lab) -> AsyncIterator[Lab]:
    tasks = [asyncio.create_task(watch.run()) for watch in lab.writer.watches]
    try:
        await asyncio.wait_for(asyncio.gather(*(watch.synced.wait() for watch in lab.writer.watches)), 5)
        yield lab
    finally:
        for task in tasks:
            task.cancel()


async def test_the_worker_and_the_managers_sum_follow_within_a_look() -> None:
    async with running(Lab()) as lab:
        await lab.look()
        lab.worker.put(NODES, node("b", ready=False, ready_since=-25))
        await lab.look(5)
        assert lab.quotas == [("us", "16"), ("us", "8"), ("manager", "16"), ("manager", "8")]
        _, body, manager = lab.worker.applied[-1]
        assert manager == CAPACITY_MANAGER
        assert (set(body["spec"]), set(body["metadata"])) == ({"resourceGroups"}, {"name", "annotations"})
        [lost] = json.loads(body["metadata"]["annotations"][LOST_CAPACITY_ANNOTATION])
        assert lost == {"cluster": "us", "flavor": "h100", "lost": {GPU: "8"}, "nodes": ["b (NotReady)"]}
        assert (
            f'kueue_fleet_lost_capacity{{cluster="us",flavor="h100",resource="{GPU}"}} 8.0'
            in lab.metrics.text().decode()
        )


async def test_while_nothing_is_lost_the_quotas_are_written_as_they_are_deployed() -> None:
    async with running(Lab()) as lab:
        await lab.look()
    for cluster, api in (("us", lab.worker), ("manager", lab.home)):
        [queue] = [item for item in render_cluster(fleet(), cluster) if item["kind"] == "ClusterQueue"]
        [(_, body, _)] = api.applied
        assert body["spec"] == {"resourceGroups": queue["spec"]["resourceGroups"]}


async def test_a_node_that_is_back_gives_the_quota_back() -> None:
    async with running(Lab()) as lab:
        lab.worker.put(NODES, node("b", ready=False, ready_since=-25))
        await lab.look()
        lab.worker.put(NODES, node("b"))
        await lab.look(10)
        assert lab.quotas == [("us", "8"), ("manager", "8")]
        await lab.look(31)
        assert lab.quotas == [("us", "8"), ("us", "16"), ("manager", "8"), ("manager", "16")]
        assert "annotations" not in lab.worker.applied[-1][1]["metadata"]
        assert "kueue_fleet_lost_capacity{" not in lab.metrics.text().decode()


async def test_what_has_not_changed_is_written_again_after_a_minute() -> None:
    async with running(Lab()) as lab:
        for seconds in (0, 5, 55, 61):
            await lab.look(seconds)
        assert lab.quotas == [("us", "16")] * 2 + [("manager", "16")] * 2


async def test_nothing_is_written_of_a_worker_that_was_never_seen() -> None:
    lab = Lab(silent=True)
    await lab.look()
    assert lab.quotas == []


async def test_a_write_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Lab()) as lab:
        lab.worker.failures.append(ApiError(503, "", "busy"))
        await lab.look()
        await lab.look(5)
        assert lab.quotas == [("us", "16"), ("manager", "16")]
        assert "quota not written" in caplog.text


async def test_quotas_of_windows_are_written_when_these_open_and_close_without_nodes() -> None:
    data = fleet().wire()
    window = {"name": "sale", "start": when(60), "duration": "1m"}
    data["controller"]["quotaWindows"] = [window]
    quota = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota["during"] = {"sale": {"nominalQuota": 4}}
    data["clusterQueues"][0]["quotaFollows"] = "file"
    lab = Lab(spec=FleetSpec.model_validate(data), silent=True)
    assert lab.writer.watches == ()
    for seconds in (0, 59, 60, 65, 119, 120):
        await lab.look(seconds)
    assert lab.quotas == [
        ("us", "16"),
        ("us", "4"),
        ("us", "16"),
        ("manager", "16"),
        ("manager", "4"),
        ("manager", "16"),
    ]


async def test_a_window_gives_no_more_than_nodes_hold() -> None:
    data = fleet().wire()
    data["controller"]["quotaWindows"] = [{"name": "sale", "start": when(-60), "duration": "1h"}]
    quota = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota |= {"nominalQuota": 4, "during": {"sale": {"nominalQuota": 16}}}
    async with running(Lab(spec=FleetSpec.model_validate(data), names=("a",))) as lab:
        await lab.look()
        assert lab.quotas == [("us", "8"), ("manager", "8")]


def test_the_configuration_has_the_fleet_only_where_a_queue_follows() -> None:
    written = controller_configuration(fleet())
    assert ControllerConfiguration.model_validate(written.wire()) == written
    data = fleet().wire()
    data["clusterQueues"][0]["quotaFollows"] = "file"
    assert controller_configuration(FleetSpec.model_validate(data)).following is None


def test_a_date_is_left_to_the_controller() -> None:
    calendar = {"type": "calendar", "reservation": "june", "start": "2026-06-01T00:00:00Z", "duration": "336h"}
    pool = {**fleet().wire()["nodePools"][0], "capacity": calendar}
    dated = fleet_at(fleet(nodePools=[pool]), datetime(2026, 6, 2, tzinfo=UTC))
    following = controller_configuration(dated).following
    assert following is not None
    assert not following.at(datetime(2026, 6, 2, tzinfo=UTC)).cluster("us").is_closed("h100")
    assert following.at(datetime(2026, 7, 1, tzinfo=UTC)).cluster("us").is_closed("h100")


def test_the_configuration_is_the_same_on_every_day() -> None:
    calendar = {"type": "calendar", "reservation": "june", "start": "2026-06-01T00:00:00Z", "duration": "336h"}
    spec = fleet(nodePools=[{**fleet().wire()["nodePools"][0], "capacity": calendar}])
    days = (datetime(2026, month, 2, tzinfo=UTC) for month in (5, 6, 7))
    first, *others = (controller_configuration(fleet_at(spec, day)) for day in days)
    assert others == [first, first]


def test_it_may_read_nodes_and_write_those_queues_alone() -> None:
    def rules(cluster: str, spec: FleetSpec) -> list[Json]:
        result = render_cluster(spec, cluster)
        [role] = [o for o in result if (o["kind"], o["metadata"]["name"]) == ("ClusterRole", "kueue-fleet-controller")]
        return list(role["rules"])

    write = {
        "apiGroups": ["kueue.x-k8s.io"],
        "resources": ["clusterqueues"],
        "verbs": ["patch"],
        "resourceNames": ["gpu"],
    }
    read = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
    assert [rule for rule in rules("us", fleet()) if rule in (read, write)] == [read, write]
    assert [rule for rule in rules("manager", fleet()) if rule in (read, write)] == [write]
    data = fleet().wire()
    data["clusterQueues"][0]["quotaFollows"] = "file"
    off = FleetSpec.model_validate(data)
    assert not [rule for cluster in off.cluster_names for rule in rules(cluster, off) if rule in (read, write)]
