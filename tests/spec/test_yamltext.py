"""YAML that would end the process, or that Python refuses, is told with its line."""

from __future__ import annotations

import pytest

from kueue_fleet.spec.problem import SpecError
from kueue_fleet.spec.yamltext import load_documents


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: " + "[" * 1_000_000, 2),
        ("{a: " * 100_000, 1),
        ("[\n" * 100_000, 501),
        ("- " * 100_000, 1),
        ("? " * 100_000, 1),
    ],
)
def test_too_deep_is_refused_before_it_is_read(text: str, line: int) -> None:
    with pytest.raises(SpecError, match=f"f.yaml:{line}: is nested too deeply; write plain fields and lists"):
        load_documents(text, "f.yaml")


def test_brackets_within_text_are_no_levels() -> None:
    text = "\n".join(f"k{number}: 'from [ to'" for number in range(2000))
    [(_, found)] = load_documents(text, "f.yaml")
    assert len(found) == 2000


def test_what_is_deep_but_bearable_is_read() -> None:
    [(_, found)] = load_documents("a: " + "[" * 400 + "]" * 400, "f.yaml")
    for _ in range(399):
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    assert found == [[]]


def test_a_number_of_too_many_digits() -> None:
    with pytest.raises(SpecError, match=r"f.yaml:2: .*a number has 5000 digits") as refused:
        load_documents("a: 1\nb: " + "9" * 5000, "f.yaml")
    assert len(str(refused.value)) < 300
