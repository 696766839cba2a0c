"""The report of a simulation: one HTML file with its plots and the script that draws them, for a browser offline."""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from kueue_fleet.cli import console
from kueue_fleet.cli.input_files import is_there

if TYPE_CHECKING:
    from kueue_fleet.simulation.result import Result


def check_report_file(file: Path) -> None:
    """Raise CommandError if no report can be written to FILE."""
    plotly_script()
    if is_there(file) and file.is_dir():
        raise console.CommandError(f"--html {file}: is a folder; name a file")
    if not is_there(file.parent):
        raise console.CommandError(f"--html {file}: there is no folder {file.parent}; make it, or name another file")


def write_report(file: Path, title: str, subtitle: str, results: Sequence[tuple[str, Result]]) -> None:
    """Write the report of results, each with a name. A file that was there is replaced when the new one is whole.

    Raises:
        CommandError: it cannot be written.
    """
    text = report_page(title, subtitle, results)
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, suffix=".html", delete=False) as made:
            temporary = made.name
            made.write(text)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(file)
    except OSError as wrong:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise console.CommandError(f"--html {file}: cannot be written: {wrong.strerror}; name another file") from None


def report_page(title: str, subtitle: str, results: Sequence[tuple[str, Result]]) -> str:
    """The page. Raises CommandError where plotly is not installed."""
    from kueue_fleet.simulation.report import report_data

    data = json.dumps(report_data(results), separators=(",", ":")).replace("<", "\\u003c")
    page = resources.files("kueue_fleet.simulation").joinpath("report.html").read_text(encoding="utf-8")
    parts = {"title": html.escape(title), "subtitle": html.escape(subtitle), "plotly": plotly_script(), "data": data}
    pieces = page.split("{{")
    made = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        made += [parts[name], rest]
    return "".join(made)


def plotly_script() -> str:
    """Plotly's script. Raises CommandError where it is not installed."""
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError:
        raise console.CommandError("--html: needs plotly; install kueue-fleet[report]") from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present
