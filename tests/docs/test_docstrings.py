"""`make check` fails for a public name that does not say what it is: each rule broken once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.docstrings import ROOT, missing

from kueue_fleet_policies import RULES

RULE = Path("components/kueue_fleet/fleet_file/check/new.py")
OTHER = Path("components/kueue_fleet/fleet_file/new.py")
COMMAND = Path("components/kueue_fleet/cli/new.py")


def said(text: str, path: Path = OTHER) -> list[str]:
    return [line.partition(": ")[2] for line in missing(path, text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LIMIT = 3\n", ["LIMIT"]),
        ("LIMIT: Final = 3\nOTHER: Final = 4\n'''Both.'''\n", ["LIMIT"]),
        ("_LIMIT = 3\nT = TypeVar('T')\n", []),
        ("class A(SpecModel):\n    size: Count\n", ["A.size"]),
        ("class A(RuledModel):\n    size: Text\n    '''Such as L.'''\n", []),
        ("class A(SpecModel):\n    kind: ClassVar[str]\n    _own: Text\n", []),
        ("class _A(SpecModel):\n    size: Text\n", []),
        ("class A(OtherSpec):\n    size: Text\n", ["A.size"]),
        ("class A:\n    size: Text\n", []),
    ],
)
def test_constants_and_fields_have_docstrings(text: str, names: list[str]) -> None:
    assert said(text) == [f"{name}: has no docstring; write below it what it is" for name in names]


@pytest.mark.parametrize(
    "field", ["size: Count\n    '''How large.'''", "size: float | None = None\n    '''Default 3.'''"]
)
def test_a_number_without_a_unit_is_found(field: str) -> None:
    assert said(f"class A(SpecModel):\n    {field}\n") == [
        "A.size: names no unit; write it in its name or its docstring"
    ]


@pytest.mark.parametrize("field", ["size_gb: Count\n    '''How large.'''", "size: Count\n    '''In seconds.'''"])
def test_a_unit_is_in_the_name_or_in_the_docstring(field: str) -> None:
    assert said(f"class A(SpecModel):\n    {field}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        "    if a:\n        raise SpecError(a)\n",
        "    with a:\n        raise errors.SpecError\n",
        "    match a:\n        case 1:\n            raise SpecError\n",
        "    try:\n        b()\n    except KeyError:\n        raise SpecError from None\n",
        "    try:\n        raise SpecError\n    except KeyError:\n        pass\n",
    ],
)
def test_errors_that_leave_a_function_are_named(body: str) -> None:
    text = f"def parse(a):\n    '''What a says.'''\n{body}"
    assert said(text) == ["parse: raises SpecError; name it in the docstring, and say when"]
    assert said(text.replace("What a says.", "What a says. Raises SpecError if it says nothing.")) == []
    assert said(f"class A:\n    '''An A.'''\n\n    {text.replace(chr(10), chr(10) + '    ')}") != []


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        raise SpecError\n    except (KeyError, SpecError):\n        pass\n",
        "    def inner():\n        raise SpecError\n",
        "    raise InvariantError('cannot be')\n",
        "    raise wrong from None\n",
    ],
)
def test_errors_that_stay_inside_or_are_the_programs_own_need_no_name(body: str) -> None:
    assert said(f"def parse(a):\n    '''What a says.'''\n{body}") == []


def test_a_command_ends_with_an_error_that_its_help_need_not_name() -> None:
    text = (
        "def check(file: Annotated[Path, typer.Argument()]):\n    '''Check.'''\n    raise console.CommandError('no')\n"
    )
    assert said(text, COMMAND) == []
    assert said(text) != []


def test_rules_name_their_source() -> None:
    assert said("'''Names are unique.'''\n", RULE) == [
        "new: names no source; write where its rules come from, as https://... or kueue@v0.19.2 FILE"
    ]
    assert said("'''Names are unique.\n\nSource: kueue@v0.19.2 pkg/a.go.\n'''\n", RULE) == []
    assert said("'''Names are unique.'''\n", OTHER) == []


def test_policies_name_their_source_and_their_number() -> None:
    assert [rule.name for rule in RULES if not rule.source.startswith("https://")] == []
    assert [
        rule.name for rule in RULES if rule.cis and not re.fullmatch(r"\d+(\.\d+)+(, \d+(\.\d+)+)*", rule.cis)
    ] == []


def test_make_check_runs_it() -> None:
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert "python tests/docs/docstrings.py" in recipe[1]


def test_it_fails_and_says_where(tmp_path: Path) -> None:
    """The whole program, on a copy of it beside a module that says nothing."""
    program = tmp_path / "tests" / "docs" / "docstrings.py"
    program.parent.mkdir(parents=True)
    program.write_text((ROOT / "tests" / "docs" / "docstrings.py").read_text())
    module = tmp_path / "components" / "kueue_fleet" / "new.py"
    module.parent.mkdir(parents=True)
    module.write_text("LIMIT = 3\n")
    failed = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stdout == "components/kueue_fleet/new.py:1: LIMIT: has no docstring; write below it what it is\n"
    module.write_text('LIMIT = 3\n"""GPUs."""\n')
    assert subprocess.run([sys.executable, str(program)], capture_output=True, check=False).returncode == 0
