"""What pages show and a shell does not run: settings, programs, commands in a sentence, the output of a rehearsal."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import typer
import yaml
from pydantic import TypeAdapter, ValidationError
from tests.docs.console import PAGES, ROOT, blocks, commands_of_sh, languages, prose
from tests.docs.rehearsal_output import lacks

import pulumi_mocks
from kueue_fleet.cli import COMMANDS, app
from kueue_fleet.fleet_file import FleetSpec
from kueue_rehearsal.simulation_settings import parse_settings
from small_fleets import MANAGER, WORKER, fleet_data

# `text` and blocks without a language are pictures and output; TypeScript is compiled with the example that it is from.
LANGUAGES = {"", "awk", "console", "json", "python", "sh", "mermaid", "text", "ts", "yaml"}
PROGRAMS = {
    "actions/check-fleet/check-fleet",
    "awk",
    "base64",
    "cd",
    "export",
    "gcloud",
    "git",
    "kubectl",
    "sacct",
    "mkdir",
    "kueue-fleet",
    "make",
    "pip",
    "poetry",
    "python3",
    ".",
    "pulumi",
    "sed",
    "docker",
    "npm",
    "npx",
    "helm",
    "pytest",
}
ELSEWHERE = re.compile(
    r"\b(docker build|gcloud|git clone|kubectl|make|npm|pip install|pulumi|sacct|"
    r"kueue-fleet (rehearse|status|controller|import .* --kubernetes|upgrade .* --rehearse))\b"
)
TARGETS = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE), ".venv/.ready"}
SECTIONS = {field.alias or name: name for name, field in FleetSpec.model_fields.items()}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_block(language: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{name(page)} {number}")
        for page in PAGES
        for number, block in enumerate(blocks(page, language), 1)
    ]


def split(command: str) -> list[str]:
    return [part for part in re.split(r"\s*(?:\||&&|;)\s*", command.partition(" #")[0]) if part]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_escapes_the_tests_of_pages(page: Path) -> None:
    assert languages(page) <= LANGUAGES
    for language in ("", "text"):
        for block in blocks(page, language):
            assert not re.search(r"^\s*\$ ", block, re.MULTILINE), block
    for block in blocks(page, "sh"):
        assert ELSEWHERE.search(block), f"nothing of it needs a cluster or a cloud; make it a console block:\n{block}"
    for command in commands_of_sh(page):
        for part in split(command):
            assert part.split()[0] in PROGRAMS, part
            if part.startswith("pytest "):
                assert (ROOT / part.split()[1]).exists(), part
            if part.startswith("make "):
                assert {word for word in shlex.split(part)[1:] if "=" not in word} <= TARGETS, part


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_sentences_exist(page: Path) -> None:
    group = typer.main.get_command(app)
    for output in re.findall(r"`((?:kueue-fleet|make) [^`]+)`", prose(page)):
        program, first, *rest = output.partition("|")[0].partition(" -- ")[0].split()
        if program == "make":
            assert first in TARGETS, output
            continue
        if first.startswith("-"):
            continue
        assert first in COMMANDS, output
        command = group.get_command(group.make_context("kueue-fleet", [first]), first)  # type: ignore[attr-defined]
        while rest and hasattr(command, "commands") and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word.partition("=")[0] for word in rest if word.startswith("-") and len(word) > 1} <= known | {
            "--help"
        }, output


def problems(settings: Any) -> Iterator[str]:
    """What of a part of a fleet file is no such part."""
    for section, value in settings.items():
        if section not in SECTIONS:
            yield f"there is no section {section}"
            continue
        field = FleetSpec.model_fields[SECTIONS[section]]
        try:
            TypeAdapter[Any](field.annotation or Any).validate_python(value, by_alias=True, by_name=False)
        except ValidationError as wrong:
            # What a page leaves out is left out, and not wrong.
            yield from (
                f"{section}.{error['loc']}: {error['msg']}" for error in wrong.errors() if error["type"] != "missing"
            )


OF_KUBERNETES: Final = {"apiVersion", "kind", "metadata", "spec"}
"""What an object has, or the part of one that a page shows; no section of a fleet file is called so."""


@pytest.mark.parametrize("block", with_block("yaml"))
def test_settings_are_such_as_the_models_have(block: str) -> None:
    settings = yaml.safe_load(re.sub(r"\[\.\.\.\]", "[]", block))
    if "kueue-fleet:rehearsal" in settings.get("config", {}):
        parse_settings(settings["config"]["kueue-fleet:rehearsal"], "the page")
    elif "runtime" not in settings and not settings.keys() <= OF_KUBERNETES:
        result = [problem for problem in problems(settings) if "should have at least 1 item" not in problem]
        assert result == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cluster: []", "there is no section cluster"),
        ("clusters: [{name: a, rol: manager}]", "clusters.(0, 'rol'): Extra inputs are not permitted"),
        ("nodePools: [{name: a, machineType: m, capacity: {type: flexStart, maxRunDuration: 7}}]", "maxRunDuration"),
    ],
)
def test_wrong_settings_are_found(text: str, says: str) -> None:
    assert any(says in problem for problem in problems(yaml.safe_load(text)))


@pytest.mark.parametrize("block", with_block("python"))
def test_what_programs_import_is_there(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "fleet"):  # The page's own.
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def test_the_rehearsal_that_is_shown_is_one_of_this_version() -> None:
    """`tests/engines/dws_stack` compares it with a real one."""
    [output] = blocks(ROOT / "docs" / "rehearse.md", "text")
    assert lacks(output, output) == []
    jobs = yaml.safe_load((ROOT / "examples/dws-multikueue/jobs.yaml").read_text())["items"]
    assert f"Jobs          {len(jobs)} submitted to manager-europe-west4 (" in output
    assert lacks(output, output.replace("273 create", "272 create")) == ["pulumi up 273 create (N s)"]
    assert lacks(output, output.replace("QuotaReserved", "Finished")) == [
        "too-big-x team-language - - N s QuotaReserved"
    ]
    assert lacks(output, output.replace("4 control planes", "some control planes")) != []
    assert lacks(output, re.sub(r"-[a-z0-9]{5} ", "-zzzzz ", output).replace("81", "9")) == []


def test_the_program_of_the_page_is_a_pulumi_program() -> None:
    program, *_ = blocks(ROOT / "docs" / "programs.md", "python")
    code = compile(program, "programs.md", "exec")
    config = {"kueue-fleet:fleet": json.dumps(fleet_data(WORKER))}
    result = pulumi_mocks.run(lambda: exec(code, {"__name__": "__main__"}), config=config)
    assert result.one("kueue-fleet:index:Fleet").name == "lab"
    assert {cluster.place for cluster in result.of_type("gcp:container/cluster:Cluster")} == {MANAGER, WORKER}


def test_the_program_of_single_components_declares_them_in_order() -> None:
    _, program, *_ = blocks(ROOT / "docs" / "programs.md", "python")
    code = compile(program, "programs.md", "exec")
    result = pulumi_mocks.run(lambda: exec(code, {"__name__": "__main__"}))
    order = [result.one(kind, custom=True) for kind in ("ResourceFlavor", "ClusterQueue", "LocalQueue")]
    assert all(result.is_before(first, then) for first, then in pairwise(order))


def test_the_program_of_kueue_admission_explains_and_decides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = blocks(ROOT / "components" / "kueue_admission" / "README.md", "python")
    monkeypatch.chdir(ROOT)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
    headline, *decided = capsys.readouterr().out.splitlines()
    assert headline == "It asks for 2 cpu; 1 is free in flavor default, 1 is missing."
    assert [line.partition("(")[0] for line in decided] == ["QuotaReserved", "Admitted"]
