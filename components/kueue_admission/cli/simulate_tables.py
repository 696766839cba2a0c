"""What `simulate` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kueue_admission.cli import console
from kueue_admission.cli.tables import Column, Table
from kueue_admission.kernel.names import SINGLE_POD_SET_REFUSAL

if TYPE_CHECKING:
    from kueue_admission.simulate.result import Result

_SHOWN_WORKLOADS = 60
_MILLION = 1_000_000
_SHOWN_PAIRS = 10


def show(result: Result) -> None:
    """Print every workload, and how long each queue's, or class's, waited."""
    from kueue_admission.simulate.result import waiting_times

    table = Table(
        Column("workload"),
        Column("queue", leave_out=4),
        Column("flavors", leave_out=5),
        Column("state"),
        Column("reason", leave_out=1),
        Column("arrived", right=True, leave_out=6),
        Column("admitted", right=True),
        Column("finished", right=True, leave_out=2),
        Column("evicted", right=True, leave_out=3),
    )
    workloads = result.as_json()["workloads"]
    for workload in workloads[:_SHOWN_WORKLOADS]:
        table.add(
            f"{workload['namespace']}/{workload['name']}",
            "/".join(part for part in (workload["cluster"], workload["clusterQueue"]) if part) or "-",
            flavors_of(workload) or "-",
            workload["state"],
            _reason(workload),
            *(_time(workload[name]) for name in ("arrivedAt", "admittedAt", "finishedAt")),
            str(len(workload["evictions"]) or "-"),
        )
    console.show(table)
    if len(workloads) > _SHOWN_WORKLOADS:
        rest = console.count(len(workloads) - _SHOWN_WORKLOADS, "more workload")
        console.line(f"and {rest}; --output json has all")
    console.line()
    waits = Table(
        Column("waiting"),
        Column("workloads", right=True, leave_out=1),
        Column("admitted", right=True),
        Column("mean wait", right=True),
        Column("longest wait", right=True, leave_out=2),
    )
    for wait in waiting_times(result.records):
        waits.add(wait.name, str(wait.workloads), str(wait.admitted), _span(wait.mean), _span(wait.longest))
    console.show(waits)
    _show_snapshots(result)
    _show_contended(result)
    _show_budgets(result)
    in_vain = [record for record in result.records if record.runs and record.wait is None]
    for record in in_vain[:_SHOWN_PAIRS]:
        times = console.count(len(record.runs), "time")
        console.paragraph(f"{record.key} was admitted {times} and never ran: {record.why_not_started}")
    for workload in workloads[:_SHOWN_WORKLOADS]:
        if workload["state"] == "QuotaReserved" and SINGLE_POD_SET_REFUSAL in workload["message"]:
            console.line(f"{workload['namespace']}/{workload['name']} keeps its quota: {workload['message']}")
        if workload["notKnown"]:
            name = f"{workload['namespace']}/{workload['name']}"
            console.paragraph(f"{name}: whether it starts is not known: {workload['notKnown']}")


def _show_snapshots(result: Result) -> None:
    """Print the pending and admitted jobs of each queue, and the nodes of each pool, with a column for each time."""
    if not result.snapshots:
        return
    times = [Column(f"at {_time(snapshot.at)} s", right=True) for snapshot in result.snapshots]
    queues, nodes = Table(Column("pending/admitted"), *times), Table(Column("nodes"), *times)
    for name in dict.fromkeys(name for snapshot in result.snapshots for name in snapshot.queues):
        counts = [snapshot.queues[name] for snapshot in result.snapshots]
        queues.add(name, *(f"{count['pending']}/{count['admitted']}" for count in counts))
    for name in sorted({name for snapshot in result.snapshots for name in snapshot.nodes}):
        nodes.add(name, *(str(snapshot.nodes.get(name, 0)) for snapshot in result.snapshots))
    for table in (queues, nodes):
        console.line()
        console.show(table)


def _show_contended(result: Result, run: str = "") -> None:
    """Print who was preempted for the same workload again and again, in the run of this name."""
    lines = [
        f"{pair.preempted} was preempted {pair.times} times for {pair.preemptor}"
        + (f" on {pair.cluster}" if pair.cluster else "")
        for pair in result.contended
    ]
    if len(lines) > _SHOWN_PAIRS:
        lines[_SHOWN_PAIRS:] = [f"{len(lines) - _SHOWN_PAIRS} more; --output json has all"]
    for line in lines:
        console.line(f"contended{run}: {line}")


def _show_budgets(result: Result, run: str = "") -> None:
    """Print how far budgets are used up where that is most, in the run of this name."""
    for budget in result.budgets:
        style = "red" if budget.percent >= 100 else "yellow" if budget.is_near else ""
        console.line(console.Styled(f"budget{run}: {budget}", style))


def _reason(workload: Mapping[str, Any]) -> str:
    if workload["notKnown"]:
        return "not known"
    return "" if workload["state"] in (workload["reason"], "Finished") else workload["reason"]


def flavors_of(workload: Mapping[str, Any]) -> str:
    """The flavors of a workload of a result."""
    return ", ".join(dict.fromkeys(name for pod_set in workload["flavors"].values() for name in pod_set.values()))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.6g}" if abs(seconds) < _MILLION else f"{seconds:.0f}"


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def show_difference(before: Result, after: Result) -> None:
    """Print the workloads that fare differently, and the waiting times of both runs."""
    from kueue_admission.simulate.result import waiting_times
    from kueue_admission.simulate.what_if import differences

    changes = differences(before, after)
    unseen = any(map(_looks_equal, changes[:_SHOWN_WORKLOADS]))
    table = Table(
        Column("workload"),
        Column("run"),
        Column("admitted", right=True),
        Column("state"),
        Column("cluster", leave_out=2),
        Column("evicted", right=True, leave_out=1),
        *([Column("otherwise")] if unseen else []),
    )
    for difference in changes[:_SHOWN_WORKLOADS]:
        for run in ("before", "after"):
            more = [_unseen(difference, run)] if unseen else []
            table.add(f"{difference['namespace']}/{difference['name']}", run, *_fate(difference[run]), *more)
    if changes:
        console.show(table)
        console.line()
    console.line(f"{console.count(len(changes), 'workload')} of {len(before.records)} fare differently.")
    waits = Table(
        Column("waiting"),
        Column("admitted", right=True),
        Column("then", right=True),
        Column("mean wait", right=True),
        Column("then", right=True),
    )
    then = {wait.name: wait for wait in waiting_times(after.records)}
    for wait in waiting_times(before.records):
        other = then.get(wait.name)
        waits.add(
            wait.name,
            str(wait.admitted),
            str(other.admitted if other else 0),
            _span(wait.mean),
            _span(other.mean if other else None),
        )
    console.show(waits)
    _show_contended(before, " before")
    _show_contended(after, " after")
    _show_budgets(before, " before")
    _show_budgets(after, " after")


def _fate(side: Mapping[str, Any] | None) -> tuple[str, str, str, str]:
    if side is None:
        return "-", "not submitted", "-", "-"
    return _time(side["admittedAt"]), side["state"], side["cluster"] or "-", str(len(side["evictions"]) or "-")


def _looks_equal(difference: Mapping[str, Any]) -> bool:
    return _fate(difference["before"]) == _fate(difference["after"])


def _unseen(difference: Mapping[str, Any], run: str) -> str:
    """What is different about a run although its row looks the same: exact times, flavors."""
    if not _looks_equal(difference):
        return ""
    side, other = difference[run], difference["after" if run == "before" else "before"]
    time_texts = {
        "admittedAt": f"admitted {side['admittedAt']}",
        "finishedAt": f"finished {side['finishedAt'] if side['finishedAt'] is not None else 'never'}",
        "flavors": f"on {flavors_of(side) or 'no flavor'}",
        "evictions": f"evicted {', '.join(str(eviction['time']) for eviction in side['evictions']) or 'never'}",
    }
    return "; ".join(text for field, text in time_texts.items() if side[field] != other[field])
