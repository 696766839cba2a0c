"""Differences: which properties changed, and which of them replace the resource."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.google.property_diff import Change, Differ, parse_pattern, render_path, touches
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN


def _changes(old: dict[str, Any], new: dict[str, Any], *patterns: str) -> dict[str, Change]:
    differ = Differ(tuple(parse_pattern(text) for text in patterns))
    differ.compare(old, new)
    return {render_path(path): change for path, change in differ.changes.items()}


def test_equal_objects_have_no_changes() -> None:
    same = {"a": [1, {"b": "c"}], "d": {}}
    assert _changes(same, same) == {}


def test_changes_are_named_by_what_they_are() -> None:
    old = {"kept": 1, "changed": {"deep": 1}, "gone": 1, "list": ["a", "b"]}
    new = {"kept": 1, "changed": {"deep": 2}, "added": {"x": 1}, "list": ["a", "c", "d"]}
    assert _changes(old, new) == {
        "changed.deep": Change.UPDATE,
        "gone": Change.DELETE,
        "added": Change.ADD,
        "list[1]": Change.UPDATE,
        "list[2]": Change.ADD,
    }


def test_a_value_that_is_not_known_yet_is_a_change() -> None:
    assert _changes({"a": 1}, {"a": UNKNOWN}) == {"a": Change.UPDATE}


@pytest.mark.parametrize(
    ("old", "new", "pattern", "replaced"),
    [
        ({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}, "metadata.name", True),
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "2"}}}, "metadata.name", False),
        ({"data": {"k": "1"}}, {"data": {"k": "2"}}, "data", True),
        ({}, {"spec": {"selector": {"a": "b"}}}, "spec.selector", True),
        ({}, {"spec": {"replicas": 1}}, "spec.selector", False),
        ({"c": [{"image": "a"}]}, {"c": [{"image": "b"}]}, "c[*].image", True),
        ({"c": [{"image": "a"}]}, {"c": [{"image": "a"}, {"image": "b"}]}, "c[*].image", True),
        ({"data": {"k": "1"}}, {}, "data", True),
    ],
)
def test_a_change_replaces_when_a_pattern_names_it(
    old: dict[str, Any], new: dict[str, Any], pattern: str, replaced: bool
) -> None:
    assert any(change.replaces for change in _changes(old, new, pattern).values()) is replaced


def test_ignored_properties_are_no_changes() -> None:
    differ = Differ()
    differ.compare({"spec": {"a": 1, "b": 1}, "data": 1}, {"spec": {"a": 2, "b": 2}, "data": 2})
    differ.ignore(["spec.a", "data"])
    assert [render_path(path) for path in differ.changes] == ["spec.b"]


def test_keys_with_dots_are_quoted() -> None:
    assert render_path(("metadata", "annotations", "pulumi.com/waitFor")) == (
        'metadata.annotations["pulumi.com/waitFor"]'
    )


def test_a_pattern_below_a_path_needs_the_value_to_hold_it() -> None:
    assert touches(("spec",), {"template": {"x": 1}}, parse_pattern("spec.template"))
    assert not touches(("spec",), {"suspend": True}, parse_pattern("spec.template"))
    assert not touches(("spec",), None, parse_pattern("spec.template"))


def test_replacing_kinds_are_the_protocols() -> None:
    assert [change.as_replacing() for change in (Change.ADD, Change.DELETE, Change.UPDATE)] == [
        Change.ADD_REPLACE,
        Change.DELETE_REPLACE,
        Change.UPDATE_REPLACE,
    ]
