"""Scenarios of each file of Kueue's corpora, and jobs that move, for `test_compiled_wheel`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential import corpus, variants
from tests.differential.compare import mismatch

LEAST = 6
"""So many scenarios of each file, evenly spread; or all, where it has less."""
FILES = sorted([*corpus.FOLDER.glob("*.xz"), *corpus.FOLDER.glob("0.*/*.xz")])
"""Those of all releases."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name} {file.name.partition('.')[0]}")
def test_the_answers_are_kueues(file: Path) -> None:
    check_answers(file, LEAST)


def test_jobs_move_between_flavors_as_on_kueue() -> None:
    check_moves(LEAST)


def check_answers(file: Path, least: int) -> None:
    """The core answers so many scenarios of a file as Kueue did."""
    records = corpus.read(file)
    asked = records[:: max(1, len(records) // least)]
    assert [banner for case, answer in asked if (banner := mismatch(case, answer)) is not None] == []


def check_moves(least: int) -> None:
    """Jobs that wait for several flavors at once are where they were on Kueue, in so many scenarios."""
    answers = variants.load()
    asked = answers[:: max(1, len(answers) // least)]
    assert [text for answer in asked if (text := variants.differs(answer))] == []
