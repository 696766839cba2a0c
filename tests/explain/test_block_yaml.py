"""The quick reader gives what the full one gives, or none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kueue_fleet.explain.block_yaml import NotSimpleError, read_block
from kueue_fleet.fleet_file.yaml_text import load_yaml
from kueue_fleet.kueue_api.problem import SpecError

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))

texts = st.one_of(
    st.text("abcz019-_./:# '\"%&*!|>[]{},?@`\\~+\n\t", max_size=24),
    st.sampled_from(
        ["true", "null", "1e3", "0x1f", "012", "12:30", "2026-11-20T12:00:00Z", "", "<<", "=", "-", "x" * 90]
    ),
    st.text(max_size=12),
    st.lists(
        st.sampled_from(["couldn't", "assign", "flavors:", "to", "pod", "set", "(0)", "+", ">", "#4"]), max_size=30
    ).map(" ".join),
)
scalars = st.one_of(texts, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))
data = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)
plain = (
    st.sampled_from(["main", "4", "a/b", "1, 2", "it's so", "some longer words " * 8, "8Gi"])
    | st.integers(0)
    | st.booleans()
)
maps = st.recursive(
    plain | st.lists(plain, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["name", "nvidia.com/gpu", "status", "f:spec_1"]),
        inner | st.lists(st.dictionaries(st.sampled_from(["key", "value"]), inner, min_size=1), max_size=3),
        min_size=1,
    ),
    max_leaves=20,
)


def dumped(value: Any) -> str:
    return yaml.safe_dump(value, width=80, allow_unicode=True)


class TestSameAsTheFullReader:
    @settings(max_examples=400, deadline=None)
    @given(st.dictionaries(texts, data, min_size=1, max_size=5) | st.lists(data, min_size=1, max_size=5))
    def test_of_anything(self, value: Any) -> None:
        agrees(dumped(value))

    @settings(max_examples=300, deadline=None)
    @given(st.text("ab: -'\"\n#\t01~&|\x85\u2028\x07", max_size=60))
    @example("- ")
    @example("- \n  a: 1")
    @example("-  b")
    @example("a:  b")
    @example("- a \n  b")
    @example("a: b\x85")
    @example("a: b\x07")
    def test_of_garbage(self, text: str) -> None:
        agrees(text)

    @settings(max_examples=100, deadline=None)
    @given(st.dictionaries(st.sampled_from(["kind", "spec", "metadata"]), maps, min_size=1))
    def test_what_kubectl_prints_is_simple(self, value: dict[str, Any]) -> None:
        assert read_block(dumped(value)) == load_yaml(dumped(value), "x")

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
    def test_of_real_objects(self, case: Path) -> None:
        for item in yaml.safe_load(case.read_text())["objects"]:
            text = dumped(item)
            assert read_block(text) == load_yaml(text, "x")


def agrees(text: str) -> None:
    try:
        found = read_block(text)
    except NotSimpleError:
        return
    try:
        assert same(found, load_yaml(text, "x")), text
    except SpecError as refused:
        raise AssertionError(f"read {found!r} from {text!r}, which is refused: {refused}") from None


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: True is not 1."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: {b: 1}\n",
        "a: [1]\n",
        "a: |\n  text\n",
        "a: 1 # one\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
        'a: "x\\ty"\n',
        "a:\n\tb: 1\n",
        "a: 'x\n",
        "a: 1\n  b: 2\n",
        "- a\nb: 1\n",
        "-",
        "- \n",
        "- \n  a: 1\n",
        "-\n  a: 1\n",
        "-  b\n",
        "a:  b\n",
        "a: b \n",
        "a: b\u2028c\n",
    ],
)
def test_the_rest_is_left_to_it(text: str) -> None:
    with pytest.raises(NotSimpleError):
        read_block(text)
