"""What a program can import, and what it need not."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import kueue_fleet


def test_every_name_of_the_package_can_be_imported() -> None:
    for name in kueue_fleet.__all__:
        assert getattr(kueue_fleet, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Cluster'"):
        kueue_fleet.Cluster  # type: ignore[attr-defined]  # noqa: B018


def test_every_model_of_the_fleet_file_can_be_imported() -> None:
    reference = (Path(__file__).parents[1] / "docs/reference.md").read_text()
    headings = re.findall(r"^## (\w+)$", reference, re.MULTILINE)
    assert len(headings) > 100
    assert not set(headings) - set(kueue_fleet.__all__)


def test_nothing_that_programs_need_has_two_meanings() -> None:
    """A component and what it takes never share a name."""
    names = re.findall(r" as (\w+)$", Path(kueue_fleet.__file__).with_suffix(".pyi").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(set(names)) == kueue_fleet.__all__


def test_the_version_is_that_of_the_distribution() -> None:
    assert kueue_fleet.__version__ == version("kueue-fleet")


@pytest.mark.parametrize(
    ("model", "begins"),
    [
        ("FleetSpec", "(name: str, project: str, *, deletion_protection: bool = True, "),
        ("ClusterQueueSpec", "(*, resource_groups: Sequence[ResourceGroup] = (), cohort_name: str | None = None, "),
        ("Pool", "(name: str, machine_type: str, *, existing: bool = False, "),
    ],
)
def test_a_model_shows_its_fields(model: str, begins: str) -> None:
    shown = getattr(kueue_fleet, model)
    assert str(inspect.signature(shown)).startswith(begins)
    assert f"{model}{begins}" in pydoc.plain(pydoc.render_doc(shown))


def test_a_fleet_shows_what_it_takes_beside_the_spec() -> None:
    signature = str(inspect.signature(kueue_fleet.Fleet))
    assert "spec: FleetSpec | dict[str, Any], *, opts: ResourceOptions | None = None, project: Input[str]" in signature


def test_no_validator_is_in_any_help() -> None:
    """What pydantic and Python keep for themselves apart: `__annotations__` and the like."""
    lines = {
        (name, line)
        for name in kueue_fleet.__all__
        for line in pydoc.plain(pydoc.render_doc(getattr(kueue_fleet, name))).splitlines()
        if not re.match(r" \|  __(?!init__|new__)", line)
    }
    assert not [each for each in lines if "AfterValidator" in each[1] or "Strict(" in each[1]]


def python(program: str) -> str:
    """What a fresh interpreter prints."""
    root = Path(__file__).parents[1]
    paths = [str(root), str(root / "tests/support"), str(root / "components")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {paths!r}\n{program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_the_spec_does_without_pulumi() -> None:
    program = "import kueue_fleet.fleet_file; print([m for m in sys.modules if m.startswith('pulumi')])"
    assert python(program).strip() == "[]"
