"""The figures of the project: `make bench` keeps them in docs/figures.json, and writes them into the pages.

`make figures` prints all of them, a table for each part of the benchmark. In pages a figure stands between comments
that nobody sees: `<!-- figure first-run -->10 minutes<!-- / -->`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures.json"
_MARK = re.compile(r"(<!-- figure ([\w-]+) -->)(.*?)(<!-- / -->)", re.DOTALL)
_GIB = 1024**3

Parts = Mapping[str, Mapping[str, Any]]
"""Parts of the benchmark by name: `date`, `machine` with its load before the measurement, and `figures`."""


def pages() -> Iterator[Path]:
    """Every page that may show a figure."""
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "components").glob("*/README.md")


def stored() -> dict[str, dict[str, Any]]:
    """What was measured last, by part."""
    parts: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text())
    return parts


def named(parts: Parts) -> dict[str, dict[str, Any]]:
    """The figures that have a name for pages, each with the date of its part."""
    return {
        figure["shown"]: {**figure, "date": part["date"]}
        for part in parts.values()
        for figure in part["figures"]
        if figure["shown"]
    }


def shown(figure: Mapping[str, Any]) -> str:
    """As it stands in a page: minutes from two on, and whole numbers from ten on."""
    value, unit = figure["value"], figure["unit"]
    if unit == "s" and value >= 120:
        return f"{round(value / 60)} minutes"
    if unit == "MiB" and value >= 1024:
        value, unit = value / 1024, "GiB"
    return _number(value, unit)


def _number(value: float, unit: str) -> str:
    return f"{round(value):,} {unit}".rstrip() if value >= 10 else f"{value:.2g} {unit}".rstrip()


def with_figures(text: str, parts: Parts) -> str:
    """A page with these figures, those that are older than the last release with their day.

    Raises KeyError where it names one that nobody has measured.
    """
    figures, release = named(parts), last_release()

    def marked(figure: Mapping[str, Any]) -> str:
        return shown(figure) + (f" (of {figure['date']})" if figure["date"] < release else "")

    return _MARK.sub(lambda mark: mark[1] + marked(figures[mark[2]]) + mark[4], text)


def tables(parts: Parts) -> str:
    """A table for each part, those that are older than the last release marked."""
    return "".join(_table(name, part) for name, part in parts.items())


def _table(name: str, part: Mapping[str, Any]) -> str:
    old = ", before the last release" if part["date"] < last_release() else ""
    rows = "".join(_rows(part["figures"]))
    return (
        f"### `{name}`\n\n{part['date']}{old}: {part['machine']}.\n\n| | | limit | peer |\n|---|---|---|---|\n{rows}\n"
    )


def _rows(figures: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for figure in figures:
        unit = figure["unit"]
        limit = _number(figure["limit"], unit) if figure["limit"] else ""
        peer = figure["peer"] and f"{figure['peer']} {_number(figure['peer_value'], unit)}"
        yield f"| {figure['what']} | {_number(figure['value'], unit)} | {limit} | {peer} |\n"


def last_release() -> str:
    """The day of the release before the one that is being made, as the changelog says."""
    text = (ROOT / "CHANGELOG.md").read_text()
    _, unreleased, *_ = re.split(r"^## .*$", text, flags=re.MULTILINE)
    dates = re.findall(r"^## \S+ \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    return str(dates[0 if unreleased.strip() else 1])


def names_in(text: str) -> set[str]:
    """The figures that a page shows."""
    return {mark[2] for mark in _MARK.finditer(text)}


def store(part: str, figures: Iterable[Mapping[str, Any]], load: float) -> None:
    """Keeps a part's figures, and writes them into the pages. `load` is the machine's before it measured."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB
    new = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}",
        "figures": [dict(figure) for figure in figures],
    }
    parts = {**stored(), part: new}
    FIGURES.write_text(json.dumps(parts, indent=1) + "\n")
    for page in pages():
        text = page.read_text()
        if (updated := with_figures(text, parts)) != text:
            page.write_text(updated)


if __name__ == "__main__":
    print(tables(stored()), end="")
