"""The command as a whole: its list of commands, what it imports for it, versions, extras, mistyped names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kueue_admission.cli import application
from kueue_admission.cli.console import CommandError
from kueue_fleet import cli
from kueue_fleet.cli import COMMANDS, app

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_modules_name_their_commands() -> None:
    for module in {listed.module for listed in COMMANDS.values()}:
        output = str(import_module(module).__doc__).partition(":")[0]
        named = {name for name, listed in COMMANDS.items() if listed.module == module}
        assert set(re.findall("`([a-z]+)`", output)) == named


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert re.search(rf"{name} (\[OPTIONS\]|COMMAND)", result.stdout)


def test_the_list_of_commands() -> None:
    output = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    rows = [line for line in output.splitlines() if line.startswith("  ") and line.split()[0] in COMMANDS]
    listed = {name: item for name, item in COMMANDS.items() if item.group}
    assert [row.split()[0] for row in rows] == list(listed)
    assert all(entry.help in row for entry, row in zip(listed.values(), rows, strict=True))
    assert len(rows) <= 20
    assert {each.group for each in listed.values()} <= {line.removesuffix(":") for line in output.splitlines()}
    assert "Exit codes: 0 done; 1 " in output


def test_help_names_the_other_commands_at_its_end() -> None:
    output = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout.split())
    hidden = [name for name, item in COMMANDS.items() if not item.group and not item.instead]
    assert f"Not in the list: {', '.join(hidden)}." in output


@pytest.mark.parametrize("name", [name for name, listed in COMMANDS.items() if listed.instead])
def test_an_old_name_says_what_to_write(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert (
        f"{name}: is an old name, which the next release does not have; write {COMMANDS[name].instead}" in result.stderr
    )


def test_help_imports_neither_models_nor_components() -> None:
    script = (
        "import sys\n"
        "from kueue_fleet.cli import main\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    print(*sorted(sys.modules), sep=',')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "components")}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.splitlines()[-1].split(","))
    assert "typer" in loaded
    assert not loaded & {
        "pydantic",
        "pulumi",
        "yaml",
        "kubernetes",
        "rich",
        "kueue_admission.decide",
        "kueue_admission.kernel.base",
    }


def test_check_imports_no_more_than_it_needs() -> None:
    script = (
        "import sys\n"
        "from kueue_fleet.cli import main\n"
        "sys.argv[1:] = ['check', 'stacks/Pulumi.dws-multikueue.yaml']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    print(*sorted(sys.modules), sep=',')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "components")}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(result.stdout.splitlines()[-1].split(","))
    assert "kueue_fleet.fleet_file.model.fleet" in loaded
    slow = {"rich", "kubernetes", "asyncio", "pulumi", "kueue_admission.decide", "kueue_fleet.fleet_simulation"}
    assert not loaded & {
        *slow,
        "kueue_fleet.fleet_file.cost",
        "kueue_fleet.fleet_file.knobs",
        "kueue_fleet.fleet_file.model.rehearsal_section",
        "kueue_fleet.fleet_file.reference",
        "kueue_fleet.fleet_file.schema",
        "kueue_fleet.objects.controller",
        "kueue_fleet.objects.fleet_page",
        "kueue_admission.cli.tables",
    }


@pytest.mark.parametrize(
    "package", ["kueue_admission.api", "kueue_admission.kernel", "kueue_fleet.fleet_file", "kueue_fleet.objects"]
)
def test_names_of_a_package_are_loaded_when_they_are_used(package: str) -> None:
    script = (
        "import sys\n"
        "import kueue_admission.decide.engine, kueue_admission.explain\n"
        "print('kueue_fleet.fleet_file.model.fleet' in sys.modules)\n"
        f"import {package} as package\n"
        "for name in package.__all__:\n"
        "    getattr(package, name)\n"
        "print(hasattr(package, 'Fleet'))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "components")}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"kueue-fleet {PROJECT['version']}\n")


@pytest.mark.parametrize("name", ["--show-completion", "--install-completion"])
def test_completion_is_offered(name: str) -> None:
    assert name in CliRunner().invoke(app, ["--help"]).stdout


def test_completion_of_commands() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "components"),
        "_KUEUE_FLEET_COMPLETE": "complete_bash",
        "COMP_WORDS": "kueue-fleet re",
        "COMP_CWORD": "1",
    }
    script = "from kueue_fleet.cli import app; app(prog_name='kueue-fleet')"
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == [name for name in COMMANDS if name.startswith("re")]


def test_a_mistyped_command() -> None:
    result = CliRunner().invoke(app, ["explan"])
    assert isinstance(result.exception, CommandError)
    assert str(result.exception) == "there is no command explan; did you mean explain?"
    assert result.exception.exit_code == 2


class TestExtras:
    @pytest.fixture(autouse=True)
    def no_command_known(self) -> None:
        application.load_command.cache_clear()

    def test_they_exist(self) -> None:
        assert {listed.extra for listed in COMMANDS.values() if listed.extra} <= set(PROJECT["optional-dependencies"])

    def test_rehearse_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in sys.modules if name.startswith("kueue_rehearsal.session")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "psutil", None)
        result = CliRunner().invoke(app, ["rehearse", "run"])
        assert isinstance(result.exception, CommandError)
        assert (
            str(result.exception)
            == "rehearse: needs psutil, which is not installed; run: pip install 'kueue-fleet[rehearsal]'"
        )
        assert result.exception.exit_code == 1

    def test_a_module_that_belongs_to_no_extra_is_not_explained_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "kueue_fleet.cli.init", raising=False)
        monkeypatch.delattr(cli, "init", raising=False)
        monkeypatch.setitem(sys.modules, "kueue_fleet.cli.init", None)
        assert isinstance(CliRunner().invoke(app, ["init"]).exception, ModuleNotFoundError)
