"""Jobs of before Kueue, from a CSV, as the same events.

It has `submitted` (a time, or seconds since 1970), `queue` (NAMESPACE/LOCALQUEUE), `gpus` or `requests`
(`cpu=4 memory=16Gi`, of each pod), `runSeconds` (empty: it has not ended), and if they are known `started`, `pods`,
`priority` and `name`.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.form_rules import OBJECT, FaultError
from kueue_admission.kernel.names import GPU_RESOURCE
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.kernel.suggest import nearest
from kueue_admission.kernel.syntax import number, whole_number
from kueue_admission.read.fields import seconds_of

Row = Mapping[str, str]
"""A row by its columns; one that is not there is empty."""
_COLUMNS: Final = ("submitted", "queue", "runSeconds")
"""What it must have; the first one is what it is known by."""
_OTHERS: Final = ("gpus", "requests", "started", "pods", "priority", "name")
_ANY_OF: Final = ("gpus", "requests")
"""Of which it must have one."""
_NOT_YET: Final = ("", "None", "Unknown")
_DELIMITERS: Final = ",;\t|"
_FROM_SLURM: Final = ", or make a CSV of what sacct prints, as docs/record.md says"
_TOO_LATE: Final = 7_258_118_400.0
"""The beginning of the year 2200, in seconds since 1970; milliseconds are beyond it."""


def table_reader(text: str) -> Callable[[str, str], list[Event]] | None:
    """What reads a text that begins like this, with its name for messages; None: it is no table.

    Of a table of other columns, it says which are missing.
    """
    header = text.split("\n", 1)[0].replace('"', "").lower()
    for delimiter in _DELIMITERS:
        if _COLUMNS[0] in map(str.strip, header.split(delimiter)):
            return partial(_read, delimiter)
    if header[:1] in ("", "#", "{", "[") or ": " in header:
        return None
    most = max(_DELIMITERS, key=header.count)
    return partial(_read, most) if header.count(most) > 1 else None


def _read(delimiter: str, text: str, source: str) -> list[Event]:
    """The events of all rows. Raises SpecError with everything that is wrong, by line."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    events, problems, seen_rows = list[Event](), list[Problem](), dict[str, tuple[int, Row]]()
    try:
        names = _columns(next(rows), source, _FROM_SLURM if delimiter == "|" else "")
        for cells in filter(None, rows):
            try:
                row = _row(names, cells)
                events_of_row = list(_events(row, rows.line_num))
                first, same = seen_rows.setdefault(events_of_row[0].uid, (rows.line_num, row))
                if same != row:
                    wrong = f"is another job with the name, the queue and the time of line {first}"
                    raise FaultError(wrong, "give each job a name of its own, or leave the column name out")
                events += events_of_row
            except FaultError as fault:
                problems.append(OBJECT.at(f"line {rows.line_num}", fault.fault.wrong, fault.fault.fix, source=source))
    except csv.Error as broken:
        problems.append(OBJECT.at(f"line {rows.line_num}", f"cannot be read: {broken}", "repair it", source=source))
    if problems:
        raise SpecError(problems)
    return events


def _columns(header: Sequence[str], source: str, otherwise: str = "") -> Sequence[str]:
    """The names of the columns, as they are known here. Raises SpecError."""
    known_columns = {name.lower(): name for name in (*_COLUMNS, *_OTHERS)}
    names = [known_columns.get(name.strip().lower(), name.strip()) for name in header]
    missing_columns = [", ".join(name for name in _COLUMNS if name not in names)]
    if not set(_ANY_OF) & set(names):
        missing_columns.append(" or ".join(_ANY_OF))
    if otherwise and missing_columns[0]:
        wrong = f"is a table without the columns {missing_columns[0]}"
        raise SpecError([OBJECT.at("", wrong, f"write them into the first line{otherwise}", source=source)])
    problems = [
        OBJECT.at("", f"has no column {item}", "add it to the first line", source=source)
        for item in filter(None, missing_columns)
    ]
    for name, times in Counter(names).items():
        near = nearest(name, set(_OTHERS) - set(names), 0.8) if name and name not in known_columns.values() else None
        if near is not None:
            problems.append(OBJECT.at("", f"has a column {name}", f"did you mean {near}?", source=source))
        if times > 1 and name in known_columns.values():
            problems.append(OBJECT.at("", f"has the column {name} twice", "remove one of them", source=source))
    if problems:
        raise SpecError(problems)
    return names


def _row(names: Sequence[str], cells: Sequence[str]) -> Row:
    if len(cells) != len(names):
        fix = "write one for each column, and one with a comma in quotes"
        raise FaultError(f"has another number of values, {len(cells)}, than the first line, {len(names)}", fix)
    if any("\n" in cell for cell in cells):
        raise FaultError("has a quote that ends on a later line", "close the quote on its line")
    return {name: cell.strip() for name, cell in zip(names, cells, strict=True)}


def _maker(
    uid: str, queue: tuple[str, str], name: str, requests: Mapping[str, Quantity], pods: int, **submitted: Any
) -> Callable[..., Event]:
    """Makes the events of a job; the first one has what it asks for, `requests` for each pod."""
    container = {"resources": {"requests": {resource: str(amount) for resource, amount in requests.items()}}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
    arrival = {
        "requests": {resource: float(amount.decimal) * pods for resource, amount in requests.items()},
        "pod_sets": json.dumps([pod_set], separators=(",", ":")),
        **submitted,
    }
    about: dict[str, Any] = {"uid": uid, "workload": name, "job": f"Job/{name}"}
    about["namespace"], about["queue"] = queue

    def event(kind: Kind, time: float, **more: Any) -> Event:
        own = arrival if kind is Kind.ARRIVED else more
        return Event(kind=kind, time=time, key=f"{uid}/{kind}/{time:.0f}", **about, **own)

    return event


_TIME: Final = "write a time such as 2026-11-01T09:30:00Z, or seconds since 1970"


def _whole(row: Row, name: str, default: int, least: int) -> int:
    """The whole number in a column, which may be empty. Raises FaultError."""
    text = row.get(name, "")
    whole = whole_number(text.removeprefix("-"))
    whole = -whole if whole is not None and text.startswith("-") else whole
    if text and (whole is None or not least <= whole < 2**31):
        raise FaultError(f"has {text!r} in {name}", f"write a whole number from {least} on")
    return default if whole is None else whole


def _amount(name: str, text: str) -> Quantity:
    """An amount of a resource, of which it tells the name. Raises FaultError."""
    try:
        quantity = Quantity(text)
    except FaultError as wrong:
        raise FaultError(f"has {text!r} for {name}, which {wrong.fault.wrong}", wrong.fault.fix) from None
    if quantity < Quantity(0) or (name == GPU_RESOURCE and quantity.decimal % 1):
        fix = "write a whole number from 0 on" if name == GPU_RESOURCE else "write 0 or more"
        raise FaultError(f"has {text!r} for {name}", fix)
    return quantity


def _events(row: Row, line: int) -> Iterator[Event]:
    space, _, queue = row["queue"].partition("/")
    submit_time, start_time, seconds = _time(row, "submitted"), _time(row, "started"), number(row["runSeconds"])
    if not space or not queue or "/" in queue:
        raise FaultError(f"has the queue {row['queue']!r}", "write NAMESPACE/LOCALQUEUE")
    if submit_time is None or (row["runSeconds"] and (seconds is None or not 0 <= seconds < _TOO_LATE)):
        raise FaultError("has no time in submitted, or no number in runSeconds", "write 2026-11-01T09:30:00Z, and 3600")
    if start_time is not None and start_time < submit_time:
        raise FaultError("was started before it was submitted", "write both times of one clock, with their time zone")
    name = row.get("name") or f"line-{line}"
    event = _maker(
        f"csv/{row['queue']}/{name}/{submit_time:.0f}",
        (space, queue),
        name,
        _requests(row),
        _whole(row, "pods", 1, 1),
        priority=_whole(row, "priority", 0, -(2**31)),
    )
    yield event(Kind.ARRIVED, submit_time)
    if start_time is not None:
        yield from _started(event, start_time)
    if seconds is not None:
        yield event(
            Kind.ENDED, (submit_time if start_time is None else start_time) + seconds, reason="", count=round(seconds)
        )


def _requests(row: Row) -> dict[str, Quantity]:
    """What each pod of a row of a CSV asks for. Raises FaultError."""
    quantities, gpus = dict[str, Quantity](), row.get("gpus", "")
    for request in row.get("requests", "").replace(",", " ").split():
        name, equals, text = request.partition("=")
        if not equals or name in quantities:
            raise FaultError(f"has {request!r} in requests", "write each resource once, such as cpu=4 memory=16Gi")
        quantities[name] = _amount(name, text)
    if gpus and GPU_RESOURCE in quantities:
        raise FaultError(f"has {GPU_RESOURCE} in requests, and gpus", "remove one of the two")
    if gpus:
        quantities[GPU_RESOURCE] = _amount(GPU_RESOURCE, gpus)
    if not quantities:
        raise FaultError("does not say what it asks for", "write gpus, 0 if it asks for none, or requests")
    return quantities


def _started(event: Callable[..., Event], at: float) -> Iterator[Event]:
    for kind in (Kind.RESERVED, Kind.ADMITTED, Kind.STARTED):
        yield event(kind, at)


def _time(row: Row, name: str) -> float | None:
    """The time in a column; None: not yet. Raises FaultError."""
    text = row.get(name, "")
    if text in _NOT_YET:
        return None
    try:
        seconds = number(text)
        seconds = seconds_of(text) if seconds is None else seconds
    except ValueError:
        raise FaultError(f"has {text!r} in {name}", _TIME) from None
    if not 0 <= seconds < _TOO_LATE:
        raise FaultError(f"has {text!r} in {name}, which is not in the years 1970 to 2199", _TIME)
    return seconds
