"""Paths to properties, in Pulumi's notation, and changes in the protocol's numbers."""

from __future__ import annotations

import pytest

from kueue_fleet.google.property_paths import Change, Path, is_within, parse_pattern, render_path


def test_keys_with_dots_are_quoted() -> None:
    assert render_path(("metadata", "annotations", "pulumi.com/waitFor")) == (
        'metadata.annotations["pulumi.com/waitFor"]'
    )


def test_indices_are_in_brackets() -> None:
    assert render_path(("webhooks", 0, "name")) == "webhooks[0].name"


@pytest.mark.parametrize(
    ("path", "pattern", "within"),
    [
        (("spec", "a"), "spec", True),
        (("spec",), "spec.a", False),
        (("data",), "spec", False),
        (("c", 1, "image"), "c[*].image", True),
        (("c", 1), "c[*].image", False),
    ],
)
def test_a_path_is_within_a_pattern_that_names_it_or_what_is_above(path: Path, pattern: str, within: bool) -> None:
    assert is_within(path, parse_pattern(pattern)) is within


def test_replacing_kinds_are_the_protocols() -> None:
    assert [change.as_replacing() for change in (Change.ADD, Change.DELETE, Change.UPDATE)] == [
        Change.ADD_REPLACE,
        Change.DELETE_REPLACE,
        Change.UPDATE_REPLACE,
    ]
