"""The figures that pages show: `make bench` keeps them in docs/figures.json, and writes them into the pages.

In a page a figure stands between comments that nobody sees: `<!-- figure first-run -->10 minutes<!-- / -->`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures.json"
_MARK = re.compile(r"(<!-- figure ([\w-]+) -->)(.*?)(<!-- / -->)", re.DOTALL)
_GIB = 1024**3


def pages() -> Iterator[Path]:
    """Every page that may show a figure."""
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "components").glob("*/README.md")


def stored() -> dict[str, dict[str, Any]]:
    """The figures by name: value, unit, date, and the machine with its load before the measurement."""
    figures: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text())
    return figures


def shown(figure: Mapping[str, Any]) -> str:
    """As it stands in a page: minutes from two on, and whole numbers from ten on."""
    value, unit = figure["value"], figure["unit"]
    if unit == "s" and value >= 120:
        return f"{round(value / 60)} minutes"
    return f"{round(value):,} {unit}".rstrip() if value >= 10 else f"{value:.2g} {unit}".rstrip()


def with_figures(text: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    """A page with these figures. Raises KeyError where it names one that nobody has measured."""
    return _MARK.sub(lambda mark: mark[1] + shown(figures[mark[2]]) + mark[4], text)


def names_in(text: str) -> set[str]:
    """The figures that a page shows."""
    return {mark[2] for mark in _MARK.finditer(text)}


def store(measured: Mapping[str, tuple[float, str]], load: float) -> None:
    """Keeps figures, each with its unit, and writes them into the pages. `load` is the machine's before it measured."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    new = {
        name: {"value": round(value, 2), "unit": unit, "date": date, "machine": machine}
        for name, (value, unit) in measured.items()
    }
    figures = dict(sorted({**stored(), **new}.items()))
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    for page in pages():
        text = page.read_text()
        if (updated := with_figures(text, figures)) != text:
            page.write_text(updated)
