"""The files that pages for contributors name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "components|offline|policies|stacks|examples|tests|docs"
PATH = re.compile(rf"`((?:{FOLDERS})/[^`\s*<{{]+)`")
PAGES = ("docs/find-your-way.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = PATH.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(named) >= 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_twenty_questions_have_one_file_each() -> None:
    rows = re.findall(r"^\| \d+\. (.*) \| (.*) \|$", (ROOT / PAGES[0]).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) >= 20
    for question, answer in rows:
        assert PATH.fullmatch(answer), question
        assert (ROOT / answer.strip("`")).is_file(), question


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listed = re.findall(r"\]\((\d{4}-[-a-z0-9]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name[:4] for name in listed] == [f"{number:04}" for number in range(1, len(listed) + 1)]
