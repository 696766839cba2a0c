"""What `ui` shows of clusters that answer, and of those that do not."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.test_status import STACK, lists
from tests.cli.test_streams import PROGRAM, kubeconfig

from kueue_fleet.cli import live_fleet
from kueue_fleet.cli.fleet_files import load_fleet, load_prices
from kueue_fleet.cli.live_fleet import FleetReader
from kueue_fleet.cli.ui import explain, look
from kueue_fleet.cli.ui_server import View
from kueue_fleet.status import ClusterObjects

FLEET = load_fleet(Path(STACK))


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> View:
    monkeypatch.setattr(live_fleet, "_read", lists)
    return look(FLEET, FleetReader("ui", FLEET, None, 20.0), load_prices(None))


def test_it_shows_what_status_and_top_say(view: View) -> None:
    assert view.summary["fleet"] == "dws-multikueue"
    clusters = {each["name"]: each for each in view.summary["clusters"]}
    assert (clusters["manager-europe-west4"]["pending"], clusters["worker-us-east4"]["connected"]) == (2, False)
    assert clusters["worker-asia-southeast1"]["message"] == "no answer: NewConnectionError"
    assert clusters["worker-asia-southeast1"]["admitted"] is None
    assert {(each["name"], each["active"]) for each in view.summary["queues"]} == {("dws", True)}
    assert [each["name"] for each in view.summary["requests"]] == ["req", "req"]


def test_each_job_that_has_not_ended_is_a_row_with_its_reason(view: View) -> None:
    assert {(row["name"], row["state"]) for row in view.jobs or ()} == {("a", "Pending"), ("b", "Pending")}
    assert all(row["reason"] for row in view.jobs or ())


def test_jobs_are_not_known_where_the_manager_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_fleet, "_read", lambda _, __, role, *___: ClusterObjects(role, unreachable="no answer"))
    assert look(FLEET, FleetReader("ui", FLEET, None, 20.0), load_prices(None)).jobs is None


def test_what_cannot_be_explained_is_said(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}")
    assert explain(FLEET, file, "team-a", "a").startswith("Not known: ")


@pytest.fixture
def refusing(tmp_path: Path) -> list[str]:
    """A call for a fleet whose clusters refuse connections."""
    kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1")
    return [PROGRAM, "ui", STACK, "--kubeconfig", str(tmp_path / "kubeconfig"), "--every", "1"]


def test_its_first_line_is_the_address_and_ctrl_c_ends_it(refusing: list[str]) -> None:
    with subprocess.Popen(refusing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            found = re.fullmatch(r"Open http://127\.0\.0\.1:(\d+)/[\w-]{32}/\n", running.stdout.readline())
            assert found is not None
            other = subprocess.run([*refusing, "--port", found[1]], capture_output=True, text=True, check=False)
            assert (other.returncode, other.stdout) == (1, "")
            assert other.stderr == f"error: --port {found[1]}: Address already in use; give another one\n"
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=20)
            assert (running.returncode, said) == (130, "")
        finally:
            running.kill()
