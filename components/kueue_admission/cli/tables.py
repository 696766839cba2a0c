"""Tables that stay readable: one line a row, and no word is ever cut or broken.

Where a terminal is too narrow, whole columns are left out, and named; where even the others have no room, each cell has
a line of its own. Where there is no terminal, a table is as wide as it has to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from kueue_admission.cli.console import Part, Styled, broken, rich_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_SENTENCE_WIDTH: Final = 24
"""Columns below which a column of sentences is not made narrower."""
_GAPS: Final = (2, 1)
"""Blanks between two columns; the second where it saves a column."""

Cell = Part | Sequence[Part]
"""What is in a row under a heading."""


class Column(NamedTuple):
    """A column."""

    heading: str
    right: bool = False
    """Whether it is aligned to the right, as numbers are."""
    leave_out: int = 0
    """Where there is no room, the column with the largest number is left out first; 0: it stays."""
    sentences: bool = False
    """Whether it may be broken between words; for the last column alone."""


class Table:
    """Rows under headings, which `console.show` and rich print."""

    def __init__(self, *columns: Column) -> None:
        self._columns = columns
        self._rows: list[list[Text]] = []

    def add(self, *cells: Cell) -> None:
        """Add a row, which has a cell for each column."""
        self._rows.append([rich_text([cell] if isinstance(cell, str | Styled) else cell) for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table as wide as `options` allows."""
        numbers = list(range(len(self._columns)))
        for gap in _GAPS:
            if self._width(numbers, gap) <= options.max_width:
                yield self._side_by_side(numbers, gap, options.max_width)
                return
        left_out = sorted((n for n in numbers if self._columns[n].leave_out), key=lambda n: self._columns[n].leave_out)
        missing_numbers: list[int] = []
        while left_out:
            missing_numbers.append(left_out.pop())
            shown_numbers = [number for number in numbers if number not in missing_numbers]
            if self._width(shown_numbers, _GAPS[-1]) <= options.max_width:
                yield self._side_by_side(shown_numbers, _GAPS[-1], options.max_width)
                names = ", ".join(self._columns[number].heading for number in sorted(missing_numbers))
                yield Text(f"(no room for {names})", "dim")
                return
        yield from self._below_each_other(options.max_width)

    def _cells(self, number: int) -> list[Text]:
        return [Text(self._columns[number].heading, "bold"), *(row[number] for row in self._rows)]

    def _column_width(self, number: int) -> int:
        """The columns that it needs at least."""
        cells = self._cells(number)
        longest = max(cell.cell_len for cell in cells)
        if not self._columns[number].sentences:
            return longest
        word = max(cell_len(word) for cell in cells for word in cell.plain.split(" "))
        return max(word, min(longest, _SENTENCE_WIDTH))

    def _width(self, numbers: Sequence[int], gap: int) -> int:
        return sum(self._column_width(number) for number in numbers) + gap * (len(numbers) - 1)

    def _side_by_side(self, numbers: Sequence[int], gap: int, width: int) -> RichTable:
        table = RichTable(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
        columns = []
        for number in numbers:
            column = self._columns[number]
            table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
            cells = [row[number] for row in self._rows]
            if column.sentences:
                room = width - self._width(numbers, gap) + self._column_width(number)
                cells = [Text("\n").join(broken(cell, room)) for cell in cells]
            columns.append(cells)
        for row in zip(*columns, strict=True):
            table.add_row(*row)
        return table

    def _below_each_other(self, width: int) -> Iterator[Text]:
        label = max(cell_len(column.heading) for column in self._columns) + _GAPS[0]
        for position, row in enumerate(self._rows):
            if position:
                yield Text()
            for column, cell in zip(self._columns, row, strict=True):
                lines = broken(cell, width - label) if column.sentences else [cell]
                for number, text in enumerate(lines):
                    heading = Text("" if number else column.heading, "bold")
                    heading.pad_right(label - cell_len(heading.plain))
                    yield Text.assemble(heading, text, no_wrap=True, overflow="ignore")
