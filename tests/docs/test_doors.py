"""The README leads to every page in two clicks, by the door of whoever asks."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from tests.docs.console import PAGES, ROOT

README = ROOT / "README.md"
DOORS = {
    "platform": ROOT / "docs/platform.md",
    "member": ROOT / "docs/members.md",
    "program": ROOT / "docs/program.md",
    "look-up": ROOT / "docs/look-up.md",
    "contribute": ROOT / "CONTRIBUTING.md",
}
"""Lists of pages, of which the site makes its navigation."""
WRITTEN = [page for page in PAGES if (ROOT / "docs") in page.parents]
GENERATED = {"reference.md", "troubleshooting.md"}


def links(page: Path) -> list[Path]:
    """The files that a page links to."""
    result = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", page.read_text())
    return [(page.parent / target).resolve() for target in result]


def questions() -> list[dict[str, str]]:
    lines = (Path(__file__).parent / "questions.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize("row", questions(), ids=lambda row: row["question"])
def test_a_question_is_answered_two_clicks_from_the_readme(row: dict[str, str]) -> None:
    page, door = ROOT / row["page"], DOORS[row["door"]]
    assert door in links(README)
    assert page == door or page in links(door)
    assert row["answer"] in page.read_text()


def test_there_are_five_questions_for_each_door() -> None:
    assert [row["door"] for row in questions()] == [door for door in DOORS for _ in range(5) if door != "contribute"]


def test_every_page_is_listed_at_one_door() -> None:
    """A new page: add it to `docs/platform.md`, `members.md`, `program.md`, `look-up.md` or `CONTRIBUTING.md`."""
    listed = [
        (door.parent / target).resolve()
        for door in DOORS.values()
        for target in re.findall(r"^- \[[^]]+\]\(([^):#]+\.md)\)", door.read_text(), re.MULTILINE)
    ]
    pages = {*WRITTEN} - {*DOORS.values()}
    assert {page for page in listed if listed.count(page) > 1} == set()
    assert pages - set(listed) == set()


@pytest.mark.parametrize("page", [page for page in WRITTEN if page.name not in GENERATED], ids=lambda page: page.name)
def test_a_page_says_in_one_line_what_one_can_do_after_it(page: Path) -> None:
    _, first, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]{20,118}[.]", first), first


def test_the_readme_is_short() -> None:
    text = README.read_text()
    assert text.count("](") <= 30
    assert len(re.sub(r"<!--.*?-->", "", text).split()) <= 540
