"""Every model of the reference can be imported from `kueue_fleet`, and programs import nothing deeper."""

from __future__ import annotations

from pathlib import Path

import pytest

import kueue_fleet as kf

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
HEADINGS = [line.removeprefix("## ") for line in REFERENCE.read_text().splitlines() if line.startswith("## ")]


def test_the_reference_has_models() -> None:
    assert len(HEADINGS) > 50


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_is_a_public_name(heading: str) -> None:
    assert getattr(kf, heading).__name__ == heading
