from __future__ import annotations

import math
from typing import Any

from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection, SpotSection
from kueue_rehearsal.cloud.spot import choose_reclaims, due_reclaims, lifetime_seconds, spot_nodes

CREATED = "2026-11-01T00:00:00Z"
BEGIN = 1793491200.0


def node(pool: str = "spot", *, spot: bool = True) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": pool, **({"cloud.google.com/gke-spot": "true"} if spot else {})}
    return {"metadata": {"labels": labels, "creationTimestamp": CREATED}}


NODES = {"a": node(), "b": node(), "c": node("other"), "d": node(spot=False)}


def reclaiming(seed: int, per_hour: float) -> RehearsalSection:
    return RehearsalSection(seed=seed, spot=SpotSection(reclaims_per_hour=per_hour))


def test_only_spot_nodes_can_be_taken_back() -> None:
    assert spot_nodes(NODES) == ["a", "b", "c"]
    assert spot_nodes(NODES, "spot") == ["a", "b"]


def test_nothing_is_taken_back_unless_asked_for() -> None:
    assert due_reclaims(NODES, RehearsalSection(), BEGIN + 10**9) == []
    assert lifetime_seconds(RehearsalSection(), "a") == math.inf


def test_a_node_goes_at_its_time_which_depends_on_seed_and_name() -> None:
    settings = reclaiming(7, 2.0)
    assert due_reclaims(NODES, settings, BEGIN) == []
    assert due_reclaims(NODES, settings, BEGIN + 10**6) == ["a", "b", "c"]
    end = BEGIN + lifetime_seconds(settings, f"a/{BEGIN:.0f}")
    assert "a" not in due_reclaims(NODES, settings, end - 1)
    assert "a" in due_reclaims(NODES, settings, end + 1)
    assert lifetime_seconds(reclaiming(8, 2.0), "a") != lifetime_seconds(settings, "a")


def test_the_rate_is_about_what_was_asked_for() -> None:
    lives = [lifetime_seconds(reclaiming(1, 4.0), str(number)) for number in range(2000)]
    assert 850 < sum(lives) / len(lives) < 950


def test_chosen_nodes_are_the_same_for_the_same_seed() -> None:
    chosen = [choose_reclaims(NODES, "spot", 1, RehearsalSection(seed=seed)) for seed in range(20)]
    assert {name for (name,) in chosen} == {"a", "b"}
    assert chosen == [choose_reclaims(NODES, "spot", 1, RehearsalSection(seed=seed)) for seed in range(20)]
    assert len(choose_reclaims(NODES, None, 99, RehearsalSection())) == 3
