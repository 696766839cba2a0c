"""The stacks of the repository are right, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_fleet.spec import check_fleet, parse_fleet_text

STACKS = sorted((Path(__file__).parents[2] / "stacks").glob("Pulumi.*.yaml"))


def test_there_are_stacks() -> None:
    assert STACKS


@pytest.mark.parametrize("path", STACKS, ids=lambda path: str(path.name))
def test_nothing_to_say(path: Path) -> None:
    assert check_fleet(parse_fleet_text(path.read_text(encoding="utf-8"), path.name)) == []
