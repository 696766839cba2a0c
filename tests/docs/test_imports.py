"""Programs that users read import what is public alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.console import PAGES, ROOT, blocks

PUBLIC = {"kueue_fleet", "kueue_fleet.testing", "kueue_fleet_policies"}
OURS = ("kueue_admission", "kueue_fleet", "kueue_fleet_offline", "kueue_fleet_policies", "kueue_rehearsal")
OF_ADMISSION = ROOT / "components" / "kueue_admission" / "README.md"
"""The page of another distribution, whose modules it shows."""
PROGRAMS = [*sorted((ROOT / "examples").rglob("*.py")), *sorted((ROOT / "stacks").glob("*.py"))]


def deeper(source: str) -> list[str]:
    """Modules of ours that SOURCE imports and that are not public."""
    return [module for module in imported(source) if module.partition(".")[0] in OURS and module not in PUBLIC]


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_program(program: Path) -> None:
    assert deeper(program.read_text()) == []


@pytest.mark.parametrize("page", sorted({*PAGES} - {OF_ADMISSION}), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page(page: Path) -> None:
    assert [module for block in blocks(page, "python") for module in deeper(block)] == []


def test_what_is_deeper() -> None:
    source = (
        "import kueue_fleet as kf\nfrom kueue_fleet.testing import Mocks\nfrom kueue_fleet.objects import dashboards"
    )
    assert deeper(source) == ["kueue_fleet.objects"]
