"""Mistakes in YAML: each is named where it was made, which is often before the place where reading fails."""

from __future__ import annotations

import pytest

from kueue_admission.kernel import SpecError
from kueue_admission.kernel.yaml_text import load_yaml

COLON = "a value has a colon in it, or two fields are in one row"
SPACE_AFTER_COLON = "there is no space after a colon"
OPEN_QUOTE = "a quote is opened and not closed"
OPEN_BRACKET = "a bracket is opened and not closed, or a comma is missing"
ITEM = "an item of a list stands among the fields of a map"
NO_NAME = "a map or a list stands where a field is needed"

MISTAKES = {
    "a colon in a text in braces": ("a:\n  - { name: d, text: A customer: it waits. }\n", 2, COLON),
    "a colon in a text in brackets": ("a: [x, b: c: d]\n", 1, COLON),
    "two fields in one row": ("budget: usd: 8000\n", 1, COLON),
    "no comma in braces": ("a: { b: 1 c: 2 }\n", 1, COLON),
    "no space after the dash of a second item": (
        "teams:\n  - name: a\n  -name: b\n    x: 1\n",
        3,
        "no space after a dash",
    ),
    "no space after the dash of a first item": ("teams:\n  -name: a\n   x: 1\n", 2, "no space after a dash"),
    "an item in braces after the list has ended": ("t:\n  - a: 1\n\no: {}\n  - { name: r, l: [{ n: 1 }] }\n", 5, ITEM),
    "an item in rows after the list has ended": ("t:\n  - a: 1\no: {}\n  - name: r\n    l: []\n", 4, ITEM),
    "an item in another field's map": ("t:\n  - a: 1\no:\n  x: 1\n  - name: r\n", 5, ITEM),
    "a map without a name": ("t:\n  a: { b: 1 }\n  { name: r }\n", 3, NO_NAME),
    "a quote that ends at the next one": ('a: "x\nb: 1\nc: "x\nd: 1\n', 1, OPEN_QUOTE),
    "a quote that ends at an apostrophe": ("a: 'x\nb: 1\nd: it's\n", 1, OPEN_QUOTE),
    "a quote in braces": ('a: { n: "x, b: 1 }\nb: { n: "y", c: 2 }\n', 1, OPEN_QUOTE),
    "a quote to the end": ('a: "x\nb: 1\n', 1, OPEN_QUOTE),
    "an apostrophe in quotes": ("a: 'it's'\n", 1, "a value goes on behind its closing quote"),
    "no space after the colon of a first field": ("b:\n  usd:8000\n  c: 1\n", 2, SPACE_AFTER_COLON),
    "no space after the colon of a middle field": ("b:\n  c: 1\n  usd:8000\n  d: 2\n", 3, SPACE_AFTER_COLON),
    "no space after the colon of a last field": ("b:\n  c: 1\n  usd:8000\n", 3, SPACE_AFTER_COLON),
    "a bracket too many": ("a: { b: 1 }}\nc: 1\n", 1, "a bracket is closed that was not opened"),
    "a bracket left open": ("a: { b: 1\nc: 2\n", 1, OPEN_BRACKET),
    "JSON without a comma": ('{\n  "a": { "b": 1 },\n  "c": [{ "d": 1 } { "e": 2 }]\n}\n', 3, OPEN_BRACKET),
    "a field to the left of its map": ("a:\n    b: 1\n   c: 2\n", 3, "the indentation is wrong"),
    "text alone in a row": ("a: 1\nfoo\nb: 2\n", 2, "there is no colon"),
}


@pytest.mark.parametrize(("text", "line", "wrong"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_where_it_was_made(text: str, line: int, wrong: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_yaml(text, "fleet.yaml")
    [problem] = refused.value.problems
    assert problem.line == line
    assert wrong in problem.wrong
