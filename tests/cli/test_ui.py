"""What `ui` shows of clusters that answer, and of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_status import STACK, lists

from kueue_fleet.cli import live_fleet
from kueue_fleet.cli.fleet_files import load_fleet, load_prices
from kueue_fleet.cli.ui import explain, look
from kueue_fleet.cli.ui_server import View


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> View:
    monkeypatch.setattr(live_fleet, "_read", lists)
    return look(load_fleet(Path(STACK)), None, load_prices(None))


def test_it_shows_what_status_and_top_say(view: View) -> None:
    assert view.summary["fleet"] == "dws-multikueue"
    clusters = {each["name"]: each for each in view.summary["clusters"]}
    assert (clusters["manager-europe-west4"]["pending"], clusters["worker-us-east4"]["connected"]) == (2, False)
    assert clusters["worker-asia-southeast1"]["message"] == "no answer: NewConnectionError"
    assert clusters["worker-asia-southeast1"]["admitted"] is None
    assert {(each["name"], each["active"]) for each in view.summary["queues"]} == {("dws", True)}
    assert [each["name"] for each in view.summary["requests"]] == ["req", "req"]


def test_each_job_that_has_not_ended_is_a_row_with_its_reason(view: View) -> None:
    assert {(row["name"], row["state"]) for row in view.jobs} == {("a", "Pending"), ("b", "Pending")}
    assert all(row["reason"] for row in view.jobs)


def test_what_cannot_be_explained_is_said(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}")
    assert explain(load_fleet(Path(STACK)), file, "team-a", "a").startswith("Not known: ")
