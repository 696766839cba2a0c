"""Concurrent admission: the core is where the real Kueue was at the end of each round of each scenario."""

from __future__ import annotations

from tests.differential.variants import differs, load


def test_all_scenarios_are_as_on_kueue() -> None:
    answers = load()
    assert len(answers) > 50
    assert [text for answer in answers if (text := differs(answer))] == []


def test_they_have_jobs_that_move() -> None:
    moved = [
        answer["case"]["name"]
        for answer in load()
        if any("FlavorMigration" in state for one in answer["rounds"] for state in one["states"].values())
    ]
    assert len(moved) > 5
