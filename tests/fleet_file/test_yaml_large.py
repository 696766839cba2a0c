"""The faster reader gives what the careful one gives, or leaves the text to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import examples
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_large import load_large
from kueue_admission.kernel.yaml_text import load_documents

PLAIN = (
    "~ null yes on True 0x1F 0o17 010 0b11 1_000 12:30 2026-11-20 1e3 .5 -.inf +5 # --- ... &a *a !a | > %a @a `a { ["
)
WORDS = st.sampled_from(
    [*PLAIN.split(" "), "", " a", "a ", "\t", "a #b", "a: b", "- a", "a\nb", "a\n\n b\n", "x" * 90 + " " + "y" * 90]
)
TEXTS = WORDS | st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=20)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
DATA = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


def careful(text: str) -> list[tuple[int, Any]] | None:
    try:
        return [(document.line, document.data) for document in load_documents(text, "x") if document.data is not None]
    except SpecError:
        return None


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.dictionaries(TEXTS, DATA, min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_printed_is_read_alike(objects: list[dict[str, Any]]) -> None:
    for text in (yaml.safe_dump_all(objects), yaml.safe_dump_all(objects, allow_unicode=True), json.dumps(objects[0])):
        result = load_large(text)
        assert result is None or result == careful(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: yes\nc: 12:30\nd: 2026-11-20T00:00:00Z\ne: 0x1F\nf: ~\ng: 1e3\nh: 0o17\nj: 08\nk: .5\n",
        "# first\n\nkind: A\n---\n---\n# second\nkind: B\n--- {kind: C}\n---\n",
        "a: 'b\n  c'\nd: |\n  ---\n  e\nf: >-\n  g\n\n  h\n",
        'message: "insufficient unused quota for nvidia.com/gpu in\n    flavor \\u00e9, 1 more needed"\n',
        "run: |\n  make a && make b\n  test ! -f x\n",
        '{"kind": "List", "items": [{"a": 1}]}',
    ],
)
def test_these_are_read(text: str) -> None:
    result = load_large(text)
    assert result is not None
    assert result == careful(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c\n",
        "a: [1\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: !x 1\n",
        "a:\n  <<: {b: 1}\n",
        "%YAML 1.1\n---\na: yes\n",
        "a: 1\n...\nb: 2\n",
        "a: \0\n",
        "a: 1\r\nb: 2\r\n",
        "a: " + "[" * 5000 + "]" * 5000,
    ],
)
def test_these_are_left_to_the_careful_reader(text: str) -> None:
    assert load_large(text) is None
