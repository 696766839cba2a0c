"""Jobs of before Kueue: Slurm's `sacct` and a CSV, as the same events.

`TZ=UTC sacct --parsable2 -X` with the columns of `_SACCT`; AllocTRES, NNodes, QOS and Priority are used where they are.
The namespace is the account, the LocalQueue the partition. Source: https://slurm.schedmd.com/sacct.html.

The CSV has `submitted` (a time, or seconds since 1970), `queue` (NAMESPACE/LOCALQUEUE), `gpus` or `requests`
(`cpu=4 memory=16Gi`, of each pod), `runSeconds` (empty: it has not ended), and if they are known `started`, `pods`,
`priority` and `name`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_CEILING
from functools import partial
from typing import Any, Final

from kueue_admission.forms.form_rules import OBJECT, FaultError
from kueue_admission.forms.names import GPU_RESOURCE
from kueue_admission.forms.problem import Problem, SpecError
from kueue_admission.forms.quantity import Quantity
from kueue_admission.forms.syntax import number, whole_number
from kueue_admission.history.schema import Event, Kind
from kueue_admission.read.fields import seconds_of

Row = Mapping[str, str]
"""A row by its columns; one that is not there is empty."""
_SACCT: Final = ("JobID", "Account", "Partition", "Submit", "Start", "End", "State", "ReqTRES")
_CSV: Final = ("submitted", "queue", "runSeconds")
_NOT_YET: Final = ("", "None", "Unknown")
_UNENDED: Final = ("PENDING", "RUNNING", "SUSPENDED", "RESIZING", "COMPLETING")
_AGAIN: Final = ("PREEMPTED", "NODE_FAIL", "REQUEUED")
"""States of a run after which Slurm starts the job once more, unless it was submitted with --no-requeue."""
_TRES: Final = {"cpu": "cpu", "mem": "memory", "gres/gpu": GPU_RESOURCE}


def table_reader(text: str) -> Callable[[str, str], list[Event]] | None:
    """What reads a text that begins like this, with its name for messages; None: it is neither of the two."""
    header = text.split("\n", 1)[0]
    if "|" in header:
        return partial(_read, "|", _SACCT, _slurm) if "JobID" in header else None
    return partial(_read, ",", _CSV, _csv) if "submitted" in header.split(",") else None


def _read(
    delimiter: str, wanted: tuple[str, ...], events_of: Callable[[Row, int], Iterator[Event]], text: str, source: str
) -> list[Event]:
    """The events of all rows. Raises SpecError with everything that is wrong, by line."""
    rows = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    missing = ", ".join(name for name in wanted if name not in (rows.fieldnames or ()))
    if missing:
        raise SpecError([OBJECT.at("", f"has no column {missing}", "add it to the first line", source=source)])
    events, problems = list[Event](), list[Problem]()
    for row in rows:
        try:
            given = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            events += events_of(given, rows.line_num)
        except FaultError as wrong:
            problems.append(OBJECT.at(f"line {rows.line_num}", wrong.fault.wrong, wrong.fault.fix, source=source))
    if problems:
        raise SpecError(problems)
    return events


def _maker(
    uid: str, queue: tuple[str, str], name: str, requests: Mapping[str, Quantity], pods: int, **submitted: Any
) -> Callable[..., Event]:
    """Makes the events of a job; the first one has what it asks for, `requests` for each pod."""
    container = {"resources": {"requests": {each: str(amount) for each, amount in requests.items()}}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
    arrival = {
        "requests": {each: float(amount.decimal) * pods for each, amount in requests.items()},
        "pod_sets": json.dumps([pod_set], separators=(",", ":")),
        **submitted,
    }
    about: dict[str, Any] = {"uid": uid, "workload": name, "job": f"Job/{name}"}
    about["namespace"], about["queue"] = queue

    def event(kind: Kind, time: float, **more: Any) -> Event:
        own = arrival if kind is Kind.ARRIVED else more
        return Event(kind=kind, time=time, key=f"{uid}/{kind}/{time:.0f}", **about, **own)

    return event


def _slurm(row: Row, _: int) -> Iterator[Event]:
    job, state = row["JobID"], row["State"].split(" ")[0].rstrip("+")
    if "." in job:
        return  # A step of a job.
    tres = dict(each.split("=", 1) for each in (row.get("AllocTRES") or row["ReqTRES"]).split(",") if "=" in each)
    pods = whole_number(row.get("NNodes", "") or tres.get("node", "1")) or 1
    requests = {}
    for name, resource in _TRES.items():
        if name in tres:
            amount = Quantity(tres[name] + ("i" if tres[name][-1] in "KMGTP" else "")).decimal / pods
            requests[resource] = Quantity(amount if name == "cpu" else amount.to_integral_value(ROUND_CEILING))
    event = _maker(
        f"slurm/{job}",
        (row["Account"], row["Partition"]),
        f"slurm-{job}",
        requests,
        pods,
        priority_class=row.get("QOS", ""),
        priority=whole_number(row.get("Priority", "")) or 0,
    )
    submitted, started, ended = (_time(row, name) for name in ("Submit", "Start", "End"))
    if submitted is None:
        raise FaultError("has no Submit", "print it with sacct --format")
    yield event(Kind.ARRIVED, submitted)
    if started is not None:
        yield from _started(event, started)
        if ended is not None and state in _AGAIN:
            yield event(Kind.EVICTED, ended, reason=state)
    if ended is not None and state not in (*_UNENDED, *_AGAIN):
        yield event(Kind.ENDED if started is not None else Kind.DELETED, ended, reason=state)


def _csv(row: Row, line: int) -> Iterator[Event]:
    space, slash, queue = row["queue"].partition("/")
    submitted, started, seconds = _time(row, "submitted"), _time(row, "started"), number(row["runSeconds"])
    if not slash or not space or not queue:
        raise FaultError(f"has the queue {row['queue']!r}", "write NAMESPACE/LOCALQUEUE")
    if submitted is None or (row["runSeconds"] and (seconds is None or seconds < 0)):
        raise FaultError("has no time in submitted, or no number in runSeconds", "write 2026-11-01T09:30:00Z, and 3600")
    given = [each.partition("=") for each in row.get("requests", "").split()]
    amounts = {name: text for name, _, text in given} | ({GPU_RESOURCE: row["gpus"]} if row.get("gpus") else {})
    pods = whole_number(row.get("pods", "")) or 1
    name = row.get("name") or f"line-{line}"
    event = _maker(
        f"csv/{row['queue']}/{name}/{submitted:.0f}",
        (space, queue),
        name,
        {each: Quantity(amount) for each, amount in amounts.items()},
        pods,
        priority=whole_number(row.get("priority", "")) or 0,
    )
    yield event(Kind.ARRIVED, submitted)
    if started is not None:
        yield from _started(event, started)
    if seconds is not None:
        yield event(Kind.ENDED, (submitted if started is None else started) + seconds, reason="", count=round(seconds))


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
        return seconds_of(text) if seconds is None else seconds
    except ValueError:
        raise FaultError(f"has {text!r} in {name}", "write a time such as 2026-11-01T09:30:00Z") from None
