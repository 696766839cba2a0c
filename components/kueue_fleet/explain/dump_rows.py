"""The text of one Workload, cut into what it has in common with others and the names and times in which it differs.

In: the text of an item of a List, as kubectl prints it. Out: its fixed rows, and the values of the others. Rows are
only taken for values where a value fills the row: a plain scalar without spaces, or a quoted one without escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_SCALAR: Final = r"([A-Za-z0-9](?:[-A-Za-z0-9.:]*[-A-Za-z0-9.])?|\"[-A-Za-z0-9.:]*\"|'[-A-Za-z0-9.:]*')"
_OF_METADATA: Final = re.compile(
    r"(    (?:creationTimestamp|generation|name|namespace|resourceVersion|uid): "
    rf"|      (?:kueue\.x-k8s\.io/job-uid|name|uid): ){_SCALAR}"
)
_OF_STATUS: Final = re.compile(rf"((?:    - |      )(?:lastTransitionTime|observedGeneration): ){_SCALAR}")
_MOST_LAYOUTS: Final = 8
"""How many layouts are tried on a text of the same number of rows."""


class Layout(NamedTuple):
    """Which rows have values, and a pattern for all of these rows together."""

    number: int
    rows: tuple[int, ...]
    pattern: re.Pattern[str]


class Split(NamedTuple):
    """A text that was cut: `common` is equal for texts that differ in `values` only."""

    common: int
    values: tuple[str, ...]
    layout: Layout


def marked(text: str, layout: Layout, marks: Sequence[str]) -> str:
    """The text with these values instead of its own."""
    rows = text.split("\n")
    for row, mark in zip(layout.rows, marks, strict=True):
        before = rows[row].rpartition(": ")[0]
        rows[row] = f'{before}: "{mark}"'
    return "\n".join(rows)


class Splitter:
    """Cuts texts. Those that are alike have their values in the same rows, so that most need no search."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int, int], list[Layout]] = {}
        self._count = 0
        self._commons: dict[tuple[int, str], int] = {}

    def split(self, text: str) -> Split | None:
        """The parts of a text; None if it is no object with metadata, spec and status, in this order."""
        rows = text.split("\n")
        try:
            spec = rows.index("  spec:")
            status = rows.index("  status:", spec)
        except ValueError:
            return None
        known = self._layouts.setdefault((len(rows), spec, status), [])
        for layout in known:
            match = layout.pattern.fullmatch("\n".join([rows[row] for row in layout.rows]))
            if match is not None:
                return self._cut(rows, layout, match)
        if len(known) == _MOST_LAYOUTS:
            return None
        layout = self._find(rows, spec, status)
        known.append(layout)
        match = layout.pattern.fullmatch("\n".join([rows[row] for row in layout.rows]))
        return None if match is None else self._cut(rows, layout, match)

    def _find(self, rows: list[str], spec: int, status: int) -> Layout:
        matches = [(row, _OF_METADATA.fullmatch(rows[row])) for row in range(spec)]
        matches += [(row, _OF_STATUS.fullmatch(rows[row])) for row in range(status, len(rows))]
        found = [(row, match[1]) for row, match in matches if match is not None]
        self._count += 1
        pattern = re.compile("\n".join(re.escape(before) + _SCALAR for _, before in found))
        return Layout(self._count, tuple(row for row, _ in found), pattern)

    def _cut(self, rows: list[str], layout: Layout, match: re.Match[str]) -> Split:
        for row in layout.rows:
            rows[row] = ""
        common = self._commons.setdefault((layout.number, "\n".join(rows)), len(self._commons))
        return Split(common, match.groups(), layout)
