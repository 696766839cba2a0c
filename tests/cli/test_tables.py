"""Tables on terminals of 60, 80 and 200 columns, and in a pipe: a row is a line, and no word is cut or broken."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.cli.test_rehearse import VIEWS
from tests.cli.test_status import lists
from typer.testing import CliRunner

from forked_command import program_folder
from kueue_admission.cli import console
from kueue_admission.cli.console import Styled
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli import app, live_fleet
from kueue_fleet.cli.job_report import jobs_table

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "stacks/Pulumi.dws-multikueue.yaml"
SIMULATE = ["simulate", "fleet", str(FLEET), "-w", str(ROOT / "examples/dws-multikueue/workload.yaml"), "--seed", "7"]
WHAT_IF = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota=2"


def printed(table: Table, width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(table, crop=False)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def jobs() -> Table:
    table = Table(Column("job"), Column("team", leave_out=1), Column("wait", right=True, leave_out=2), Column("state"))
    table.add("detector-abcde", "team-vision", "7 s", "Finished")
    table.add("too-big", "team-language", "1000 s", Styled("Pending", "red"))
    return table


def test_all_of_it_where_there_is_room() -> None:
    assert printed(jobs(), 60) == [
        "job             team             wait  state",
        "detector-abcde  team-vision       7 s  Finished",
        "too-big         team-language  1000 s  Pending",
    ]


def test_gaps_go_before_columns_do() -> None:
    assert printed(jobs(), 45)[1] == "detector-abcde team-vision      7 s Finished"


def test_a_column_is_left_out_as_a_whole_and_named() -> None:
    assert printed(jobs(), 43) == [
        "job            team          state",
        "detector-abcde team-vision   Finished",
        "too-big        team-language Pending",
        "(no room for wait)",
    ]
    assert printed(jobs(), 36)[-1] == "(no room for team, wait)"


def test_cells_below_each_other_where_no_column_may_go() -> None:
    assert printed(jobs(), 20) == [
        "job    detector-abcde",
        "team   team-vision",
        "wait   7 s",
        "state  Finished",
        "",
        "job    too-big",
        "team   team-language",
        "wait   1000 s",
        "state  Pending",
    ]


def test_sentences_are_broken_between_words() -> None:
    table = Table(Column("cluster"), Column("state", sentences=True))
    table.add("worker-us-east4", ["no answer: ", Styled("the server at projects/p/zones/us-east4-a is away", "red")])
    assert printed(table, 50) == [
        "cluster          state",
        "worker-us-east4  no answer: the server at",
        "                 projects/p/zones/us-east4-a is",
        "                 away",
    ]
    assert printed(table, 40) == [
        "cluster  worker-us-east4",
        "state    no answer: the server at",
        "         projects/p/zones/us-east4-a is",
        "         away",
    ]


WORD = st.text("abc-/0", min_size=1, max_size=40)


@given(
    rows=st.lists(st.tuples(WORD, WORD, WORD, st.lists(WORD, min_size=1, max_size=12).map(" ".join)), max_size=5),
    width=st.sampled_from([20, 60, 80, 200, 1_000_000]),
)
def test_no_word_is_cut_or_broken(rows: list[tuple[str, str, str, str]], width: int) -> None:
    table = Table(
        Column("one"), Column("two", leave_out=1), Column("three", right=True), Column("four", sentences=True)
    )
    for row in rows:
        table.add(*row)
    lines = printed(table, width)
    words = " ".join(lines).split()
    left_out = {"two"} if any(line.startswith("(no room for two)") for line in lines) else set()
    output = [
        cell
        for row in rows
        for name, cell in zip(("one", "two", "three", "four"), row, strict=True)
        if name not in left_out
    ]
    for word in " ".join(output).split():
        words.remove(word)
    # Where a line is too long, one word of it is.
    assert all(len(line) <= width or max(map(len, line.split())) + 7 > width for line in lines)
    if width == 1_000_000:
        assert len(lines) == 1 + len(rows)


def on_a_terminal(columns: int, arguments: list[str]) -> list[str]:
    """The lines that a command shows on a terminal of so many columns."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen(
        [f"{program_folder()}/kueue-fleet", *arguments], env=environment, stdin=its, stdout=its, stderr=its
    ):
        os.close(its)
        output = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                output += os.read(ours, 65536)
            except OSError:  # How Linux says that nobody writes any more.
                break
    os.close(ours)
    return output.decode().replace("\r\n", "\n").splitlines()


def in_a_pipe(arguments: list[str], **environment: str) -> list[str]:
    result = subprocess.run(
        [f"{program_folder()}/kueue-fleet", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines()


@pytest.mark.parametrize("arguments", [SIMULATE, [*SIMULATE, "--what-if", WHAT_IF]], ids=["simulate", "what-if"])
def test_simulate(arguments: list[str]) -> None:
    piped = in_a_pipe(arguments, COLUMNS="30")
    names = {line.split()[0] for line in piped if "/" in line.split(" ")[0]}
    assert len(names) > 19
    assert all(line == line.rstrip() for line in piped)
    for columns in (60, 80, 200):
        lines = on_a_terminal(columns, arguments)
        assert [line for line in lines if len(line) > columns] == []
        assert len(lines) - sum(line.startswith("(no room") for line in lines) == len(piped)
        assert {line.split()[0] for line in lines if "/" in line.split(" ")[0]} == names
        if columns == 200:
            assert [line.rstrip() for line in lines] == piped
        else:
            assert re.search(r"\(no room for .*\)", "\n".join(lines))


@pytest.mark.parametrize("columns", [60, 80, 200, 1_000_000])
def test_jobs_of_a_rehearsal(columns: int) -> None:
    lines = printed(jobs_table(VIEWS, {}), columns)
    assert max(map(len, lines)) <= columns
    assert [line.split()[0] for line in lines[1:4]] == [view.name for view in VIEWS]
    assert ("team-language" in lines[1]) == (columns >= 80)


@pytest.mark.parametrize("columns", [60, 80, 200, 1_000_000])
def test_status(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_fleet, "_read", lists)
    monkeypatch.setattr(console, "_UNLIMITED", columns)
    result = CliRunner().invoke(app, ["status", str(FLEET)])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    words = " ".join(lines).split()
    for name in ("manager-europe-west4", "worker-asia-southeast1", "team-a/req", "NewConnectionError", "5"):
        assert name in words
