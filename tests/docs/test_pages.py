"""Every command on every page: run and its output compared, or, where it needs a cloud, at least understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from click.exceptions import ClickException
from tests.bench.newcomer import commands
from tests.docs.console import PAGES, ROOT, blocks, commands_of_sh, matches, run, steps, workplace

from kueue_fleet.cli import app

RUN = [page for page in PAGES if blocks(page, "console")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUN, ids=name)
def test_what_a_page_shows_is_what_its_commands_print(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = workplace(tmp_path)
    text, wrong = page.read_text(), []
    for block in blocks(page, "console"):
        result = block
        for step in steps(block):
            printed = run(step, folder)
            if not matches(step.expected, printed):
                wrong.append(f"$ {step.command}\nprints\n{printed}and not\n{step.expected}")
                result = result.replace(step.shown + step.expected, step.shown + printed)
        text = text.replace(f"```console\n{block}```", f"```console\n{result}```")
    assert not [item for item in wrong if "Traceback (most recent call last)" in item], "\n".join(wrong)
    if request.config.getoption("update_snapshots"):
        page.write_text(text)
    else:
        assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_that_need_a_cloud_have_options_that_exist(page: Path) -> None:
    group = typer.main.get_command(app)
    for command in commands_of_sh(page):
        for part in re.split(r"\s*(?:\||&&|;)\s*", command):
            words = shlex.split(part.partition(" #")[0])
            if words[:1] != ["kueue-fleet"]:
                continue
            words = (
                words[1:] if not {">", "<"} & set(words) else words[1 : min(words.index(c) for c in "<>" if c in words)]
            )
            try:
                context = group.make_context("kueue-fleet", list(words), resilient_parsing=False)
                subcommand, arguments = words[0], words[1:]
                result = group.get_command(context, subcommand)  # type: ignore[attr-defined]
                assert result is not None, command
                result.make_context(subcommand, arguments, parent=context)
            except ClickException as refused:
                pytest.fail(f"{command}: {refused.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{name(page)}: {target}"


def test_the_tutorials_commands_up_to_the_first_rehearsal_are_what_the_benchmark_runs() -> None:
    typed = commands()
    programs = [command.split()[0] for command in typed]
    assert programs == ["git", "python3", "pip", "kueue-fleet", "kueue-fleet", "kueue-fleet", "kubectl", "kueue-fleet"]
    assert [command.split()[1] for command in typed if command.startswith("kueue-fleet")] == [
        "init",
        "simulate",
        "rehearse",
        "rehearse",
    ]
