"""The example companies: their fleets are valid, and their histories are always the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.plan import COMPANIES, EXAMPLES, company
from typer.testing import CliRunner

from kueue_admission.history.store import Store
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text


@pytest.mark.parametrize("name", COMPANIES)
def test_the_fleet_has_goals_and_limits(name: str) -> None:
    file = EXAMPLES / "companies" / f"{name}.yaml"
    assert CliRunner().invoke(app, ["check", str(file)]).exit_code == 0
    fleet = parse_fleet_text(file.read_text(), str(file))
    assert fleet.plan is not None
    assert all(queue.goals for queue in fleet.cluster_queues)


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    first, second = ({event.key for event in history(tmp_path / name).read()} for name in ("one", "two"))
    assert first == second


def history(folder: Path) -> Store:
    company("lab", str(folder))
    return Store(str(folder))
