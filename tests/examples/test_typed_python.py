"""Whole fleets in typed Python declare what their twins in YAML declare, resource by resource."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import kueue_fleet as kf
import pulumi_mocks

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path.parent for path in (ROOT / "examples" / "typed-python").glob("*/__main__.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_it_declares_what_its_twin_declares(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(program))
    monkeypatch.delitem(sys.modules, "fleet", raising=False)
    file = ROOT / "stacks" / f"Pulumi.{program.name}.yaml"
    spec = kf.parse_fleet_text(file.read_text(), file.name)
    theirs = pulumi_mocks.run(lambda: kf.Fleet(spec.name, spec) and None)
    ours = pulumi_mocks.run(lambda: runpy.run_path(str(program / "__main__.py"), run_name="__main__") and None)
    assert {item.urn: item.inputs for item in ours} == {entry.urn: entry.inputs for entry in theirs}


def test_there_are_some() -> None:
    assert [program.name for program in PROGRAMS] == ["batch-platform", "dws-multikueue"]


def test_the_page_shows_the_smaller_one() -> None:
    page = (ROOT / "docs" / "programs.md").read_text()
    for name in ("fleet.py", "__main__.py"):
        assert (ROOT / "examples" / "typed-python" / "dws-multikueue" / name).read_text() in page
