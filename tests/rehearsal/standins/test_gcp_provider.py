"""The stand-in of the Google Cloud provider: what it reads by id, and what it asks of the supervisor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from engine_warnings import Warnings
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_rehearsal.processes.supervisor_client import SupervisorError
from kueue_rehearsal.standins.gcp_provider import NOT_FOUND, GcpProvider
from kueue_rehearsal.standins.plugin_server import EngineLog
from kueue_rehearsal.standins.property_values import parse_struct, render_struct

PLACE = {"project": "p-1234", "location": "us-central1"}
AT = "projects/p-1234/locations/us-central1/clusters/batch"
POOL = {"nodeCount": 2, "nodeConfig": {"machineType": "e2-standard-8"}}


class Supervisor:
    """One cluster with one pool."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def get_cluster(self, name: str) -> dict[str, Any]:
        if name != "batch":
            raise SupervisorError("no such cluster", NOT_FOUND)
        addresses = {"endpoint": "192.0.2.1", "caCertificate": "Q0E=", "selfLink": "s", "dnsEndpoint": "d"}
        return {**PLACE, **addresses, "autopilot": False, "version": "1.36.3"}

    def inputs(self, cluster: str) -> dict[str, Any]:
        return {"cluster": {"releaseChannel": {"channel": "RAPID"}}, "nodePools": {"nodes": POOL}}

    def put_node_pool(self, cluster: str, pool: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(body)
        return {}


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    result = Supervisor()
    monkeypatch.setattr(GcpProvider, "_ask", lambda self, urn, what, ask: ask(result))
    return result


def read(token: str, id_: str, state: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """State and inputs of what `pulumi import` reads; `--refresh`, with the state of what a program read."""
    request = provider_pb2.ReadRequest(type=token, id=id_, properties=render_struct(dict(state or {})))
    answer = GcpProvider("10.2.0", EngineLog(None)).Read(request, None)
    return parse_struct(answer.properties), parse_struct(answer.inputs)


def test_clusters_and_pools_are_read_by_id_as_they_were_asked_for(supervisor: Supervisor) -> None:
    state, inputs = read(CLUSTER, AT)
    assert inputs == {**PLACE, "name": "batch", "enableAutopilot": False, "releaseChannel": {"channel": "RAPID"}}
    assert state["masterVersion"] == "1.36.3"
    state, inputs = read(NODE_POOL, f"{AT}/nodePools/nodes")
    assert inputs == {**PLACE, "cluster": "batch", "name": "nodes", **POOL}
    assert state["initialNodeCount"] == 2


@pytest.mark.parametrize(("token", "id_"), [(CLUSTER, AT), (NODE_POOL, f"{AT}/nodePools/nodes")])
def test_what_a_program_read_is_refreshed(token: str, id_: str, supervisor: Supervisor) -> None:
    """It has no inputs."""
    state, _ = read(token, id_)
    assert read(token, id_, state) == (state, {})


@pytest.mark.parametrize(
    ("token", "id_"),
    [
        (CLUSTER, AT.replace("batch", "other")),
        (CLUSTER, AT.replace("us-central1", "us-east4")),
        (NODE_POOL, f"{AT}/nodePools/other"),
    ],
)
def test_what_is_not_there_is_not_read(token: str, id_: str, supervisor: Supervisor) -> None:
    assert read(token, id_) == ({}, {})


def test_a_pool_of_fixed_size_is_changed_without_the_number_that_google_answered(supervisor: Supervisor) -> None:
    state, inputs = read(NODE_POOL, f"{AT}/nodePools/nodes")
    request = provider_pb2.UpdateRequest(
        type=NODE_POOL,
        id=f"{AT}/nodePools/nodes",
        olds=render_struct(state),
        news=render_struct({**inputs, "nodeCount": 3}),
    )
    answer = GcpProvider("10.2.0", EngineLog(None)).Update(request, None)
    [asked] = supervisor.asked
    assert asked["nodeCount"] == 3
    assert "initialNodeCount" not in asked, "GKE refuses both"
    assert parse_struct(answer.properties)["nodeCount"] == 3


PROJECT = "gcp:organizations/project:Project"
URN = f"urn:pulumi:dev::platform::{PROJECT}::batch"


def created(token: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    log = Warnings()
    request = provider_pb2.CreateRequest(type=token, urn=URN, properties=render_struct(inputs))
    answer = GcpProvider("10.2.0", log).Create(request, None)
    return answer.id, parse_struct(answer.properties), log.warnings


def test_a_type_without_facts_is_kept_and_said_not_to_be_simulated() -> None:
    inputs = {"projectId": "acme-batch-1", "folderId": "1234"}
    id_, state, warnings = created(PROJECT, inputs)
    assert id_ == state["name"] == "batch"
    assert state == {**inputs, "name": "batch"}
    assert warnings == [f"{PROJECT} batch: is not simulated; it is kept as the program gives it"]


@pytest.mark.parametrize(
    ("inputs", "changed"),
    [
        ({"projectId": "acme-batch-1", "folderId": "1234"}, []),
        ({"projectId": "acme-batch-1"}, ["folderId"]),
        ({"projectId": "acme-batch-2", "folderId": "1234", "labels": {"a": "b"}}, ["labels", "projectId"]),
    ],
)
def test_of_a_type_without_facts_every_difference_is_an_update(inputs: dict[str, Any], changed: list[str]) -> None:
    _, state, _ = created(PROJECT, {"projectId": "acme-batch-1", "folderId": "1234"})
    request = provider_pb2.DiffRequest(type=PROJECT, urn=URN, olds=render_struct(state), news=render_struct(inputs))
    answer = GcpProvider("10.2.0", EngineLog(None)).Diff(request, None)
    assert (list(answer.diffs), list(answer.replaces)) == (changed, [])


def test_a_type_without_facts_is_updated_and_keeps_its_name() -> None:
    _, state, _ = created(PROJECT, {"projectId": "acme-batch-1"})
    news = render_struct({"projectId": "acme-batch-2"})
    request = provider_pb2.UpdateRequest(type=PROJECT, urn=URN, id="batch", olds=render_struct(state), news=news)
    answer = GcpProvider("10.2.0", EngineLog(None)).Update(request, None)
    assert parse_struct(answer.properties) == {"projectId": "acme-batch-2", "name": "batch"}


LUSTRE = "gcp:lustre/instance:Instance"
FILESTORE = "gcp:filestore/instance:Instance"


class _AbortedError(Exception):
    """A call that the plugin ended."""


class _Call:
    """A call of Pulumi's engine."""

    def abort(self, code: Any, details: str) -> None:
        """End it."""
        raise _AbortedError(details)


def resized(token: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    """What an update is refused with; empty: it is not."""
    request = provider_pb2.UpdateRequest(
        type=token, urn=URN, id="data", olds=render_struct(before), news=render_struct(after)
    )
    try:
        GcpProvider("10.2.0", EngineLog(None)).Update(request, _Call())
    except _AbortedError as refused:
        return str(refused)
    return ""


def lustre(size: int, speed: int = 1000) -> dict[str, Any]:
    return {"instanceId": "data", "capacityGib": str(size), "perUnitStorageThroughput": str(speed)}


def filestore(size: int, tier: str) -> dict[str, Any]:
    return {"name": "data", "tier": tier, "fileShares": {"name": "share", "capacityGb": size}}


@pytest.mark.parametrize(
    ("token", "before", "after", "why"),
    [
        (LUSTRE, lustre(18000), lustre(9000), "it can only grow"),
        (LUSTRE, lustre(18000), lustre(1584000), "an instance stays in the range of sizes that it was made in"),
        (FILESTORE, filestore(2048, "BASIC_HDD"), filestore(1024, "BASIC_HDD"), "it can only grow"),
        (FILESTORE, filestore(9984, "ZONAL"), filestore(10240, "ZONAL"), "an instance stays in the range of sizes"),
        (LUSTRE, lustre(9000), lustre(18000), ""),
        (FILESTORE, filestore(2048, "ZONAL"), filestore(1024, "ZONAL"), ""),
        (FILESTORE, filestore(2048, "OF_TOMORROW"), filestore(1024, "OF_TOMORROW"), ""),
    ],
)
def test_file_servers_get_no_size_that_google_refuses(
    token: str, before: dict[str, Any], after: dict[str, Any], why: str
) -> None:
    refused = resized(token, before, after)
    assert why in refused
    assert bool(refused) is bool(why)


def test_the_function_that_describes_a_project_is_answered_from_its_id() -> None:
    asked = render_struct({"projectId": "p-1234"})
    request = provider_pb2.InvokeRequest(tok="gcp:organizations/getProject:getProject", args=asked)
    answer = parse_struct(getattr(GcpProvider("10.2.0", EngineLog(None)).Invoke(request, None), "return"))
    assert (answer["projectId"], answer["id"]) == ("p-1234", "projects/p-1234")
    assert str(answer["number"]).isdigit()
