"""The list of words that `make check` finds."""

from __future__ import annotations

import pytest
from tests.docs.english import FOLDERS, ROOT, found


@pytest.mark.parametrize(
    "line",
    [
        "Waits for ever.",
        "Nobody answers.",
        "It is made anew.",
        "Who is told of it.",
        "moon-west1 is " + "no region.",
        "is gone on with",
        "off the books",
    ],
)
def test_these_are_found(line: str) -> None:
    [place] = found("a.py", f"fine\n{line}\n")
    assert place.startswith("a.py:2: ")


def test_others_are_not() -> None:
    assert (
        list(
            found(
                "a.py",
                "It is forever blue. The told story. No body. There is no queue; it is no longer there.",
            )
        )
        == []
    )


def test_folders_exist() -> None:
    assert [folder for folder in FOLDERS if not (ROOT / folder).exists()] == []
