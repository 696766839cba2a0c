"""What both pages answer with: headers, their files, and jobs by search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer: nothing of others is loaded, framed or kept."""
MOST_JOBS: Final = 100
"""Jobs in an answer."""
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def file_answer(name: str) -> web.Response:
    """A file of the page; the jobs are the same in each."""
    text = _text(name).replace("<!-- jobs -->\n", _text("jobs.html"))
    return web.Response(text=text, content_type=_TYPES[name.rpartition(".")[2]], charset="utf-8")


def _text(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text(encoding="utf-8")


def refusal(status: int, text: str, **headers: str) -> web.Response:
    """An answer in place of what was asked for."""
    return web.Response(status=status, text=text, headers={**HEADERS, **headers})


def jobs_answer(rows: Sequence[Mapping[str, Any]] | None, query: Mapping[str, str]) -> web.Response:
    """The first jobs of a state and a team whose names have a text in them, how many there are, and every team.

    `rows` None: not known.
    """
    if rows is None:
        return web.json_response({"count": None, "jobs": [], "teams": []})
    words, state, team = query.get("q", "").lower(), query.get("state", ""), query.get("team", "")
    rows_there = [
        row
        for row in rows
        if state in ("", row["state"])
        and team in ("", row["team"])
        and words in f"{row['namespace']}/{row['name']} {row['queue']}".lower()
    ]
    teams = sorted({row["team"] for row in rows})
    return web.json_response({"count": len(rows_there), "jobs": rows_there[:MOST_JOBS], "teams": teams})
