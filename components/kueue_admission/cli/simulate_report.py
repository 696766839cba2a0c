"""The report of a simulation: one HTML file with its data and the script that draws them, for a browser offline."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from hashlib import sha256
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kueue_admission.cli import console
from kueue_admission.cli.input_files import is_there, write_text

if TYPE_CHECKING:
    from kueue_admission.simulate.result import Result


class Choice(NamedTuple):
    """A fleet among others, in a picture of cost against waiting."""

    name: str
    """Its label there; empty: none."""
    usd: float
    """What it costs a month, in USD."""
    wait: float
    """Seconds that jobs wait, on average."""
    goals: str
    changes: str
    """What is other than today."""


def check_report_file(file: Path) -> None:
    """Raise CommandError if no report can be written to FILE."""
    if str(file) == "-":
        raise console.mistyped("--html -: a report goes into a file; name one")
    if is_there(file) and file.is_dir():
        raise console.CommandError(f"--html {file}: is a folder; name a file")
    if not is_there(file.parent):
        raise console.CommandError(f"--html {file}: there is no folder {file.parent}; make it, or name another file")


def about_run(fleet: str, file: Path, jobs: str, seed: int) -> dict[str, str]:
    """What the report says of a run below its title."""
    today = date.today().isoformat()  # noqa: DTZ011  (the day where the user is)
    return {"Fleet": fleet, "File": str(file), "Jobs": jobs, "Seed": str(seed), "Date": today}


def write_report(
    file: Path,
    title: str,
    about: Mapping[str, str],
    results: Sequence[tuple[str, Result]],
    choices: Sequence[Choice] = (),
) -> None:
    """Write the report of results, each with a name. Raises CommandError if it cannot be written."""
    write_text(file, report_page(title, about, results, choices))


def report_page(
    title: str, about: Mapping[str, str], results: Sequence[tuple[str, Result]], choices: Sequence[Choice] = ()
) -> str:
    """The page. `about` is shown below its title; results with the same clock are drawn over each other, and above
    them the fleets that there was a choice of."""
    from kueue_admission.simulate.report import report_data

    files = resources.files("kueue_admission.simulate")
    script = files.joinpath("report.js").read_text(encoding="utf-8")
    facts = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in about.items() if value)
    parts = {
        "title": escape(title),
        "about": "".join(facts),
        "data": json.dumps({**report_data(results), "choices": choices}, separators=(",", ":")).replace("<", "\\u003c"),
        "script": script,
        # The browser runs this script alone, whatever a name of the input may contain.
        "hash": b64encode(sha256(script.encode()).digest()).decode(),
    }
    page = files.joinpath("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)
