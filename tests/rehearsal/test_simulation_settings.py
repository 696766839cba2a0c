from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, RehearsalSection, StockRange
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.simulation_settings import SettingsFile, parse_settings


def test_what_is_left_out_keeps_its_default() -> None:
    assert parse_settings(None, "f") == parse_settings({}, "f") == RehearsalSection()


def test_every_section_is_read() -> None:
    result = parse_settings(
        {
            "seed": 7,
            "nodes": {"provisionSeconds": 2, "idleSeconds": 5.5},
            "spot": {"reclaimsPerHour": 4},
            "dws": {
                "low": 1,
                "high": 2,
                "stock": {"us-east4": {"low": 0, "high": 0}},
                "failPercentIn": {"us-east4": 100},
            },
            "reservations": [{"name": "r", "zone": "us-east4-a", "machineType": "g2-standard-24", "count": 4}],
        },
        "f",
    )
    assert (result.nodes.provision_seconds, result.nodes.idle_seconds) == (2, 5.5)
    assert (result.seed, result.spot.reclaims_per_hour) == (7, 4)
    stock = {"us-east4": StockRange(low=0, high=0)}
    assert result.dws == DwsSection(low=1, high=2, stock=stock, fail_percent_in={"us-east4": 100})
    assert [(one.name, one.count) for one in result.reservations] == [("r", 4)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "f: config.kueue-fleet:rehearsal: is not a map of fields; write seed:"),
        ({"dsw": {}}, "config.kueue-fleet:rehearsal.dsw: is not a known field; did you mean dws"),
        ({"spot": {"reclaimsPerHour": -1}}, "config.kueue-fleet:rehearsal.spot.reclaimsPerHour: -1"),
        ({"dws": {"failPercent": 101}}, "config.kueue-fleet:rehearsal.dws.failPercent: 101"),
        ({"dws": {"intervalSeconds": 0}}, "config.kueue-fleet:rehearsal.dws.intervalSeconds: 0"),
        ({"dws": {"low": 9}}, "dws.low: 9 is more than high, 8; write a smaller one"),
        ({"dws": {"leastWaitSeconds": 5}}, "dws.leastWaitSeconds: 5 is more than mostWaitSeconds, 4"),
        ({"dws": {"stock": {"us-east4": {"low": 3, "high": 1}}}}, r"dws.stock\[us-east4\].low: 3 is more than high, 1"),
        ({"reservations": [{"name": "r"}]}, r"rehearsal.reservations\[r\].zone: is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(data: Any, message: str) -> None:
    with pytest.raises(RehearsalError, match=message):
        parse_settings(data, "f")


def test_all_problems_at_once() -> None:
    with pytest.raises(RehearsalError) as error:
        parse_settings({"seed": -1, "spot": {"rate": 1}}, "f")
    assert len(str(error.value).splitlines()) == 2


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "simulation.json"
    file = SettingsFile(path)
    assert file.current() == RehearsalSection()
    path.write_text(json.dumps({"seed": 2}))
    assert file.current().seed == 2
    changed = tmp_path / "new"
    changed.write_text(json.dumps({"seed": 3}))
    os.replace(changed, path)
    assert file.current().seed == 3
