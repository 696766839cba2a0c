"""What is read of a live fleet whose clusters do not all answer."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from tests.cli.live_fleet import Fleet, serve

from kueue_fleet.cli import contexts, live_fleet
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.live_fleet import FleetReader
from kueue_fleet.cli.live_jobs import find_job
from kueue_fleet.kube import requests
from kueue_fleet.kube.answers import ApiError
from plain_fleets import alone, mixed

STACK = load_fleet(Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml")
HUNG = "worker-us-east4"
KINDS = ("clusterqueues", "workloads", "multikueueclusters")
SINCE = r"not answered since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def full() -> Iterator[socket.socket]:
    """A server to which no connection comes: Linux drops what asks for one, as its queue is full."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        stack.enter_context(socket.create_connection(server.getsockname()))
        yield server


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with serve(STACK.cluster_names, monkeypatch, tmp_path / "kubeconfig") as result:
        for tables in result.tables.values():
            tables.update({f"/apis/kueue.x-k8s.io/v1beta2/{kind}": [] for kind in KINDS})
        yield result


def hang(kubeconfig: Path, server: socket.socket, names: Sequence[str] = (HUNG,)) -> Path:
    """The kubeconfig, with the server in the place of those of these workers."""
    config = yaml.safe_load(kubeconfig.read_text())
    for cluster in config["clusters"]:
        if cluster["name"] in names:
            cluster["cluster"]["server"] = f"http://127.0.0.1:{server.getsockname()[1]}"
    file = kubeconfig.with_name("hung")
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.mark.parametrize("kind", ["taken", "full"])
def test_a_cluster_that_hangs_delays_no_other(
    fleet: Fleet, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kubeconfig = hang(tmp_path / "kubeconfig", request.getfixturevalue(kind))
    reader = FleetReader("ui", STACK, kubeconfig, 1.0)
    reader.look()  # The first one imports the client.
    began = time.monotonic()
    result = reader.look()
    assert time.monotonic() - began < 3
    assert re.fullmatch(SINCE, result.pop(HUNG).unreachable)
    assert [item.unreachable for item in result.values()] == [""] * 3


def test_a_request_is_tried_once_and_no_longer_than_allowed(fleet: Fleet, taken: socket.socket, tmp_path: Path) -> None:
    client = contexts.connect("ui", HUNG, hang(tmp_path / "kubeconfig", taken))
    began = time.monotonic()
    with pytest.raises(ApiError, match="no answer: Read timed out"):
        requests.request(client, "GET", "/version", seconds=0.3)
    assert time.monotonic() - began < 1.2
    taken.settimeout(5)
    taken.accept()[0].close()
    taken.settimeout(0.1)
    with pytest.raises(TimeoutError):
        taken.accept()


def test_a_connection_that_nobody_takes_is_given_up(
    fleet: Fleet, full: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_CONNECT_SECONDS", 0.3)
    client = contexts.connect("ui", HUNG, hang(tmp_path / "kubeconfig", full))
    began = time.monotonic()
    with pytest.raises(ApiError, match=r"no answer: Connection to .* timed out"):
        requests.request(client, "GET", "/version")
    assert time.monotonic() - began < 5


def test_what_was_read_stands_while_it_is_read_again_and_then_is_not_known(
    fleet: Fleet, taken: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    reader = FleetReader("ui", STACK, kubeconfig, 20.0)
    reader.look()
    read_at = live_fleet._now()
    kubeconfig.write_text(hang(kubeconfig, taken).read_text())
    reader._patience = 0.2
    result = reader.look()[HUNG]
    assert (result.unreachable, result.knows("workloads")) == ("", True)
    monkeypatch.setattr(live_fleet, "_now", lambda: read_at + timedelta(minutes=1))
    result = reader.look()[HUNG]
    assert re.fullmatch(SINCE, result.unreachable)
    assert not result.knows("workloads")


def test_a_cluster_that_fails_says_when_it_was_read(fleet: Fleet) -> None:
    reader = FleetReader("ui", STACK, None, 20.0)
    reader.look()
    fleet.refused["/workloads"] = 503
    assert re.fullmatch(r"workloads: 503 Forbidden; last read at .* UTC", reader.look()[HUNG].unreachable)


def test_workers_are_asked_for_a_job_at_the_same_time(
    fleet: Fleet, taken: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that hang delay what is said of a job no longer than one."""
    hung = [HUNG, "worker-asia-southeast1"]
    workload = {
        "metadata": {"name": "w", "namespace": "vision", "ownerReferences": [{"kind": "Job", "name": "train"}]},
        "status": {"nominatedClusterNames": hung},
    }
    fleet.tables[STACK.home]["/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"] = [workload]
    file = hang(tmp_path / "kubeconfig", taken, hung)
    monkeypatch.setattr("kueue_fleet.cli.live_jobs.READ_SECONDS", 1.0)
    result = find_job("describe", "train", STACK.home, "vision", file)
    began = time.monotonic()
    result.status()
    assert time.monotonic() - began < 1.9
    assert [problem.split(":")[0] for problem in result.problems] == hung


def test_nodes_outside_gke_have_no_label_of_gke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fleet = mixed()
    with serve(fleet.cluster_names, monkeypatch, tmp_path / "kubeconfig") as result:
        for tables in result.tables.values():
            tables.update({f"/apis/kueue.x-k8s.io/v1beta2/{kind}": [] for kind in KINDS})
            tables["/api/v1/nodes"] = [{"metadata": {"name": "dgx-0"}}]
        results = FleetReader("status", fleet, tmp_path / "kubeconfig", 20.0, nodes=True).look()
    assert [len(results[name].nodes) for name in fleet.cluster_names] == [0, 2, 1]
    assert len(result.selectors) == 2  # those of the cluster of GKE


@pytest.mark.parametrize(
    ("there", "name"),
    [
        (("admin@paris",), "admin@paris"),
        (("paris",), "paris"),  # as in a rehearsal
        (("paris", "admin@paris"), "admin@paris"),
        (("other",), "admin@paris"),  # which is then said to be missing
    ],
)
def test_a_cluster_outside_gke_has_the_context_of_the_file(there: tuple[str, ...], name: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({"contexts": [{"name": item, "context": {}} for item in there]}))
    assert contexts.context_name(file, "paris", mixed()) == name
    assert contexts.context_name(file, "gke", mixed()) == "gke"
    assert contexts.context_name(file, "paris", None) == "paris"


def test_a_fleet_is_read_through_the_context_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, context = tmp_path / "kubeconfig", "admin@paris"
    with serve((context,), monkeypatch, file) as result:
        result.tables[context].update({f"/apis/kueue.x-k8s.io/v1beta2/{kind}": [] for kind in KINDS})
        [results] = FleetReader("status", alone(), file, 20.0).look().values()
    assert results.unreachable == ""
    assert contexts.namespace_of(file, alone()) == "vision"
