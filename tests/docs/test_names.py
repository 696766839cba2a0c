"""Dotted names of ours that docstrings, comments and pages mention are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.console import PAGES, ROOT
from tests.docs.names import MENTIONED, Names

FOLDERS = ("components", "policies", "offline")
SOURCES = {
    path.relative_to(ROOT / folder): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py*"))
    if path.suffix in (".py", ".pyi")
}


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(SOURCES)


def test_every_dotted_name_is_there(names: Names) -> None:
    texts = {**SOURCES, **{page.relative_to(ROOT): page.read_text(encoding="utf-8") for page in PAGES}}
    mentioned = {(str(path), name) for path, text in texts.items() for name in MENTIONED.findall(text)}
    assert len(mentioned) > 100
    assert [f"{path}: {name}" for path, name in sorted(mentioned) if names.missing(name)] == []


def test_modules_of_the_page_on_fidelity_are_there() -> None:
    text = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    table = text.partition("| module | models |")[2].partition("\n\n")[0]
    modules = {
        name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([\w/]+)`", row)
    }
    paths = [path.with_suffix("").as_posix() for path in SOURCES if path.parts[0] in ("kueue_admission", "kueue_fleet")]
    assert len(modules) > 10
    assert [name for name in sorted(modules) if not any(f"/{name}/" in f"/{path}/" for path in paths)] == []


@pytest.mark.parametrize(
    ("name", "is_missing"),
    [
        ("pools.Resolved", False),
        ("pools.Gone", True),
        ("Resolved.nodes", False),
        ("resolved.name", False),
        ("Resolved.gone", True),
        ("google.pools.Resolved.nodes", False),
        ("google.gone", True),
        ("json.loads", False),
        ("pools.csv", False),
    ],
)
def test_what_is_missing(name: str, is_missing: bool) -> None:
    text = "class Base:\n    name: str\n\n\nclass Resolved(Base):\n    def nodes(self) -> int: ...\n"
    assert Names({Path("google/pools.py"): text}).missing(name) is is_missing
