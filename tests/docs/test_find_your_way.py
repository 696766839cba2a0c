"""The files that pages for contributors name are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "components|offline|policies|stacks|examples|tests|docs"
PATH = re.compile(rf"`((?:{FOLDERS})/[^`\s*<{{]+)`")
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")


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


@pytest.mark.parametrize("package", ["kueue_fleet", "kueue_admission"])
def test_the_layers_of_the_page_are_those_of_the_contracts(package: str) -> None:
    """In their order; parts of one layer may have a row each, in any order."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [item["layers"] for item in contracts if item["type"] == "layers" and package in item["containers"]]
    table = (ROOT / PAGES[0]).read_text().partition(f"| layer of `{package}` | does |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)]
    named = [name for row in rows for name in row]
    expected = [sorted(layer.split(" | ")) for layer in layers]
    for layer in expected:
        assert sorted(named[: len(layer)]) == layer
        del named[: len(layer)]
    assert named == []


def test_decisions_are_numbered() -> None:
    numbers = re.findall(r"^## (\d+)\. ", (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in numbers] == [*range(1, len(numbers) + 1)]
