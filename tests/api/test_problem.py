"""Problems as text."""

from __future__ import annotations

from kueue_admission.kernel import SpecError, errors_of
from kueue_admission.kernel.form_rules import MISSING
from kueue_admission.kernel.problem import join_path


def test_text() -> None:
    assert str(MISSING.at("a.b", "is wrong", "mend it")) == "a.b: is wrong; mend it"
    assert str(MISSING.at("", "is wrong", "mend it")) == "is wrong; mend it"


def test_seen_from_an_enclosing_object() -> None:
    assert MISSING.at("b", "w", "f").at("a").path == "a.b"
    assert MISSING.at("[0]", "w", "f").at("a").path == "a[0]"
    assert MISSING.at("", "w", "f").at("a").path == "a"
    assert join_path("", "b") == "b"


def test_error_says_all_of_them() -> None:
    error = SpecError([MISSING.at("a", "w", "f"), MISSING.at("b", "v", "g", "warning")])
    assert str(error) == f"a: w; f [{MISSING.code}]\nwarning: b: v; g [{MISSING.code}]"
    assert errors_of(error.problems) == (MISSING.at("a", "w", "f"),)
