"""Colours and width on a terminal, plain text elsewhere; exit codes; completion in each shell."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import call
from forked_command import program_folder
from kueue_fleet.cli import COMMANDS

ROOT = Path(__file__).parents[2]
ESCAPE = "\x1b"
PROGRAM = str(Path(sys.executable).with_name("kueue-fleet"))
"""Where it matters how Python starts and ends."""
FLEET = "stacks/Pulumi.dws-multikueue.yaml"
SIMULATE = ["simulate", "fleet", FLEET, "-w", "examples/dws-multikueue/workload.yaml", "--seed", "7"]
WHAT_IF = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota=2"


def environment(**more: str) -> dict[str, str]:
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "KUBECONFIG")
    return {**{key: value for key, value in os.environ.items() if key not in unset}, "TERM": "xterm-256color", **more}


def piped(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"{program_folder()}/kueue-fleet", *arguments],
        cwd=ROOT,
        env=environment(**more),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def on_a_terminal(*arguments: str, **more: str) -> str:
    """What the command shows on a terminal of 80 columns."""
    ours, its = pty.openpty()
    with subprocess.Popen(
        [f"{program_folder()}/kueue-fleet", *arguments],
        cwd=ROOT,
        env=environment(COLUMNS="80", LINES="40", **more),
        stdin=its,
        stdout=its,
        stderr=its,
    ):
        os.close(its)
        output = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                read = os.read(ours, 65536)
            except OSError:  # How Linux says that nobody writes any more.
                break
            if not read:
                break
            output += read
    os.close(ours)
    return output.decode().replace("\r\n", "\n")


def test_colours_are_for_terminals_alone() -> None:
    assert f"{ESCAPE}[1;31merror:" in on_a_terminal("check", "nofile.yaml")
    output = piped("check", "nofile.yaml")
    assert output.stderr.startswith("error: nofile.yaml: no such file")
    assert ESCAPE not in output.stderr


def test_what_goes_on_while_a_rehearsal_is_taken_down_is_shown_on_a_terminal_alone(tmp_path: Path) -> None:
    left, removed = (
        tmp_path / "rehearsals" / "dev",
        "The rehearsal of dev was removed: its processes, clusters and state.",
    )
    down = ("rehearse", "down", "--stack", "dev")
    left.mkdir(parents=True)
    assert piped(*down, KUEUE_FLEET_STATE_DIR=str(tmp_path)).stdout == f"{removed}\n"
    left.mkdir()
    output = on_a_terminal(*down, KUEUE_FLEET_STATE_DIR=str(tmp_path))
    assert "Taking down" in output
    assert removed in output


def test_no_color_turns_colours_off() -> None:
    assert on_a_terminal("check", "nofile.yaml", NO_COLOR="1").startswith("error: nofile.yaml: no such file")
    assert ESCAPE in on_a_terminal("check", "nofile.yaml", NO_COLOR="")


def test_tables_fit_80_columns() -> None:
    for arguments in (SIMULATE, [*SIMULATE, "--what-if", WHAT_IF]):
        lines = on_a_terminal(*arguments, NO_COLOR="1").splitlines()
        assert len(lines) > 20
        assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        (["check", "stacks/Pulumi.batch-platform.yaml"], "", 0),
        (["--version"], "", 0),
        (["diff", FLEET, FLEET, "--exit-code"], "", 0),
        (["diff", FLEET, "stacks/Pulumi.prod.yaml", "--exit-code"], "", 1),
        (["check", "-"], "name: x\n", 1),
        (["check", "nofile.yaml"], "", 1),
        (["check", "--stirct"], "", 2),
        (["chekc"], "", 2),
        ([], "", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_codes(arguments: list[str], stdin: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = call(*arguments, stdin=stdin)
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert bool(result.stderr) == (code != 0 and "--exit-code" not in arguments)


def test_ctrl_c_ends_it_with_130() -> None:
    with subprocess.Popen(
        [PROGRAM, "check", "-"], cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        wait_until_idle(running.pid)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        output = running.stderr.read()
    assert running.returncode == 130
    assert "Traceback" not in output


def wait_until_idle(pid: int) -> None:
    """Until the process has used no processor for half a second, as it waits for its input."""
    used = ""
    while used != (used := " ".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])):
        time.sleep(0.5)


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        ["bash", "-c", f"{PROGRAM} render {FLEET}; echo $? >&2"], cwd=ROOT, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == "141\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_commands_and_options(shell: str) -> None:
    def completed(line: str) -> str:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
        action = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        return piped(_KUEUE_FLEET_COMPLETE=f"complete_{shell}", **words, **action).stdout

    offered = completed("kueue-fleet re")
    result = [name for name in COMMANDS if re.search(rf"\b{name}\b", offered)]
    assert result == [name for name in COMMANDS if name.startswith("re")]
    assert "--what-if" in completed("kueue-fleet simulate fleet --w")
