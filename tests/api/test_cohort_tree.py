"""Walks up the cohort tree."""

from __future__ import annotations

from kueue_admission.api.check_objects import cycles
from kueue_admission.api.cohort_tree import is_below_cycle, root_of, roots_of, with_ancestors

TREE = {"leaf": "middle", "middle": "root", "root": None, "out": "undeclared"}
ROUND = {"below": "a", "a": "b", "b": "a", "self": "self", "fine": None}


def test_ancestors_are_nearest_first_and_end_at_the_root() -> None:
    assert with_ancestors("leaf", TREE) == ["leaf", "middle", "root"]
    assert with_ancestors("out", TREE) == ["out", "undeclared"]
    assert with_ancestors(None, TREE) == []


def test_a_walk_in_a_cycle_ends() -> None:
    assert with_ancestors("below", ROUND) == ["below", "a", "b"]


def test_roots() -> None:
    assert root_of("leaf", TREE) == "root"
    assert root_of(None, TREE) is None
    assert roots_of({"q": "leaf", "alone": None}, TREE) == {"q": "cohort root", "alone": "queue alone"}


def test_each_cycle_is_found_once_and_what_is_below_is_not_in_it() -> None:
    assert cycles(ROUND) == [("a", "b", "a"), ("self", "self")]
    assert cycles(TREE) == []
    assert {name for name in ROUND if is_below_cycle(name, ROUND)} == {"below", "a", "b", "self"}
