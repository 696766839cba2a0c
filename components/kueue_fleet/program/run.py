"""Runs the program of a project under Pulumi's mocks, in a process of its own, and returns the fleets that it declares.

The process has the Python of the project, no credentials, a limit of time, and its output is kept only as far as it is
shown when the program fails.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from kueue_fleet.program.handed_out import FOLDER_VARIABLE, DeclaredFleet, handed_out
from kueue_fleet.program.in_yaml import fleets_in
from kueue_fleet.program.project import PROJECT_FILE, Project, ProjectError

LIMIT_SECONDS: Final = 120.0
"""How long a program may run; one of five clusters takes three seconds."""
HIDDEN: Final = ("PULUMI_", "KUBECONFIG", "GOOGLE_", "CLOUDSDK_", "GCLOUD_", "HELM_")
"""Prefixes of variables that give access to something; a program under mocks needs none of them."""
_SHOWN_LINES: Final = 30
_LINE_BYTES: Final = 4096
_STARTED: Final = "started"


class ProgramFailedError(ProjectError):
    """The program ended with an error; `fleets` are those that it had declared by then."""

    fleets: Sequence[DeclaredFleet] = ()


def fleets_of(
    project: Project, stack: str, python: Path | None = None, seconds: float = LIMIT_SECONDS
) -> list[DeclaredFleet]:
    """The fleets that the program of PROJECT declares for STACK.

    `python` runs it, by default the one of the project. A program in YAML is read, and not run.

    Raises:
        ProjectError: it cannot be run, or takes longer than `seconds`.
        ProgramFailedError: it ended with an error; what it printed last is in it.
    """
    if project.language == "yaml":
        return fleets_in(project, stack)
    python = python or project.python()
    if not project.program.is_file():
        wrong = f"main: there is no {project.program}"
        raise ProjectError(project.folder / PROJECT_FILE, wrong, "name the folder or the file of the program")
    values, secrets = project.config(stack)
    with tempfile.TemporaryDirectory(prefix="kueue-fleet-program-") as place:
        folder = Path(place, "fleets")
        folder.mkdir()
        request = Path(place, "request.json")
        request_data = {
            "project": project.name,
            "stack": stack,
            "main": str(project.program),
            "config": values,
            "secrets": secrets,
        }
        request.write_text(json.dumps({**request_data, "started": str(Path(place, _STARTED)), "seconds": seconds}))
        exit_code, lines = _run([str(python), "-m", "kueue_fleet.program", str(request)], project, folder, seconds)
        fleets = handed_out(folder)
        begun = Path(place, _STARTED).exists()
    if exit_code is None:
        raise ProjectError(
            project.program, f"the program did not end within {seconds:g} s", "see where it waits", lines
        )
    if not begun:
        raise ProjectError(python, "cannot run the program", "install this release of kueue-fleet there", lines)
    if exit_code:
        failure = ProgramFailedError(project.program, "the program failed", "correct it", lines)
        failure.fleets = fleets
        raise failure
    return fleets


def _run(command: list[str], project: Project, folder: Path, seconds: float) -> tuple[int | None, list[str]]:
    """The exit code, None where it did not end, and the last lines that it wrote."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(HIDDEN)}
    environment |= {
        FOLDER_VARIABLE: str(folder),
        "KUBECONFIG": "/dev/null",
        "CLOUDSDK_CONFIG": "/dev/null",
        "PYTHONUNBUFFERED": "1",
    }
    process = subprocess.Popen(
        command,
        cwd=project.program.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that all of it can be ended
    )
    lines: deque[str] = deque(maxlen=_SHOWN_LINES)
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        exit_code: int | None = process.wait(seconds)
        reader.join(1)  # What the program started may hold its output open.
    except subprocess.TimeoutExpired:
        exit_code = None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reader.join(1)
    return exit_code, list(lines)


def _read(stream: IO[bytes], lines: deque[str]) -> None:
    with stream:
        while line := stream.readline(_LINE_BYTES):
            lines.append(line.decode(errors="replace").rstrip())
