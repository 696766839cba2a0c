"""What `status --page` shows of clusters that answer, and of those that do not."""

from __future__ import annotations

import re
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.live_fleet import serve
from tests.cli.test_jobs import WORKLOADS, pod, workload
from tests.cli.test_status import STACK, lists
from tests.cli.test_streams import PROGRAM, kubeconfig
from tests.status.test_fleet_status import ADMITTED, RESERVED, connection
from tests.status.test_top_nodes import node

from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store
from kueue_fleet.cli import live_fleet
from kueue_fleet.cli.fleet_files import load_fleet, load_prices
from kueue_fleet.cli.live_fleet import FleetReader
from kueue_fleet.cli.past_goals import HOURS
from kueue_fleet.cli.ui import History, explain, logs, look
from kueue_fleet.cli.ui_server import View
from kueue_fleet.objects import render_cluster
from kueue_fleet.status import ClusterObjects
from plain_fleets import PRODUCT, mixed

NOW = datetime(2026, 11, 27, 9, 59, tzinfo=UTC)
FLEET = load_fleet(Path(STACK))


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> View:
    monkeypatch.setattr(live_fleet, "_read", lists)
    return look(FLEET, FleetReader("ui", FLEET, None, 20.0), load_prices(None), History(FLEET, None))


def test_it_shows_what_status_and_top_say(view: View) -> None:
    assert view.summary["fleet"] == "dws-multikueue"
    clusters = {entry["name"]: entry for entry in view.summary["clusters"]}
    assert (clusters["manager-europe-west4"]["pending"], clusters["worker-us-east4"]["connected"]) == (2, False)
    assert clusters["worker-asia-southeast1"]["message"] == "no answer: NewConnectionError"
    assert clusters["worker-asia-southeast1"]["admitted"] is None
    assert {(item["name"], item["active"]) for item in view.summary["queues"]} == {("dws", True)}
    assert [each["name"] for each in view.summary["requests"]] == ["req", "req"]


def test_each_job_that_has_not_ended_is_a_row_with_its_reason(view: View) -> None:
    assert {(row["name"], row["state"]) for row in view.jobs or ()} == {("a", "Pending"), ("b", "Pending")}
    assert all(row["reason"] for row in view.jobs or ())


def test_jobs_are_not_known_where_the_manager_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_fleet, "_read", lambda _, __, role, *___: ClusterObjects(role, unreachable="no answer"))
    assert look(FLEET, FleetReader("ui", FLEET, None, 20.0), load_prices(None), History(FLEET, None)).jobs is None


def test_what_cannot_be_explained_is_said(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}")
    assert explain(FLEET, file, "team-a", "a").startswith("Not known: ")


def test_the_ends_of_logs_are_those_of_the_cluster_that_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, pods = FLEET.job_clusters[0], "/api/v1/namespaces/vision/pods"
    with serve(FLEET.cluster_names, monkeypatch, tmp_path / "kubeconfig") as fleet:
        train = workload("train", QuotaReserved=RESERVED, Admitted=ADMITTED)
        train["status"]["clusterName"] = worker
        fleet.tables[FLEET.home][WORKLOADS] = [train]
        fleet.tables[worker][pods] = [pod("train-0"), pod("train-1")]
        fleet.tables[worker][f"{pods}/train-0/log"] = "epoch 1\nepoch 2\n"
        output = logs(FLEET, None, "vision", "train")
        assert output.startswith(f"train-0 on {worker}:\nepoch 1\nepoch 2\n\ntrain-1 on {worker}:\nNot known: ")


def test_the_last_hours_are_those_of_the_history_and_read_again_after_minutes(tmp_path: Path) -> None:
    def event(kind: Kind, minutes: float, uid: str) -> Event:
        at = NOW.timestamp() + 60 * minutes
        return Event(kind=kind, time=at, key=f"{uid}/{kind}", uid=uid, namespace="vision", workload=uid)

    store = Store(str(tmp_path / "history"), create=True)
    with store.writing():
        store.add([event(Kind.ARRIVED, -90, "a"), event(Kind.ADMITTED, -30, "a"), event(Kind.ENDED, -5, "a")])
        store.add([event(Kind.ARRIVED, -20, "b")])
    history = History(FLEET, str(tmp_path / "history"))
    result = history.at(NOW)["hours"]
    assert len(result) == HOURS
    assert result[0] == {"hour": "2026-11-27T09:00+00:00", "arrived": 1, "began": 1, "ended": 1, "wait": 3600.0}
    assert (result[1]["arrived"], result[1]["began"], result[1]["wait"]) == (1, 0, None)
    with store.writing():
        store.add([event(Kind.ARRIVED, -1, "c")])
    assert history.at(NOW + timedelta(seconds=1))["hours"][0]["arrived"] == 1
    assert history.at(NOW + timedelta(minutes=6))["hours"][1]["arrived"] == 2


def test_without_a_store_no_hours_are_shown_and_goals_are_not_known() -> None:
    assert History(FLEET, None).at(NOW) == {"goals": [], "hours": []}


@pytest.fixture
def refusing(tmp_path: Path) -> list[str]:
    """A call for a fleet whose clusters refuse connections."""
    kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1")
    return [PROGRAM, "status", "--page", STACK, "--kubeconfig", str(tmp_path / "kubeconfig"), "--every", "1"]


def test_its_first_line_is_the_address_and_ctrl_c_ends_it(refusing: list[str]) -> None:
    with subprocess.Popen(refusing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            result = re.fullmatch(r"Open http://127\.0\.0\.1:(\d+)/[\w-]{32}/\n", running.stdout.readline())
            assert result is not None
            other = subprocess.run([*refusing, "--port", result[1]], capture_output=True, text=True, check=False)
            assert (other.returncode, other.stdout) == (1, "")
            assert other.stderr == f"error: --port {result[1]}: Address already in use; give another one\n"
            running.send_signal(signal.SIGINT)
            _, output = running.communicate(timeout=20)
            assert (running.returncode, output) == (130, "")
        finally:
            running.kill()


def test_clusters_outside_gke_are_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: str, cluster: str, role: str, *__: object) -> ClusterObjects:
        if role == "manager":
            return ClusterObjects(role, {"workloads": [], "multikueueclusters": [connection("paris", active=True)]})
        nodes = [node("gpu-0", {PRODUCT: "NVIDIA-A100-SXM4-40GB"}, 8)] if cluster == "paris" else []
        return ClusterObjects(role, {"clusterqueues": [queue], "workloads": [], "nodes": nodes})

    fleet = mixed()
    queue = next(item for item in render_cluster(fleet, "paris") if item["kind"] == "ClusterQueue")
    monkeypatch.setattr(live_fleet, "_read", read)
    output = look(fleet, FleetReader("ui", fleet, None, 20.0), load_prices(None), History(fleet, None)).summary
    [paris] = [entry for entry in output["clusters"] if entry["name"] == "paris"]
    assert (paris["role"], paris["reachable"], paris["connected"]) == ("worker", True, True)
    [flavor] = [each for each in output["flavors"] if each["cluster"] == "paris"]
    assert (flavor["flavor"], flavor["capacity"], flavor["nodes"], flavor["on_nodes"]) == ("dgx", ("owned",), 1, 8)
