"""What `simulate` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kueue_fleet.cli import console
from kueue_fleet.cli.tables import Column, Table

if TYPE_CHECKING:
    from kueue_fleet.simulation.result import Result

_SHOWN_WORKLOADS = 60


def show(result: Result) -> None:
    """Print every workload, and how long each queue's, or class's, waited."""
    from kueue_fleet.simulation.result import waiting_times

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
        flavors = dict.fromkeys(name for pod_set in workload["flavors"].values() for name in pod_set.values())
        table.add(
            f"{workload['namespace']}/{workload['name']}",
            "/".join(part for part in (workload["cluster"], workload["clusterQueue"]) if part) or "-",
            ", ".join(flavors) or "-",
            workload["state"],
            "" if workload["state"] in (workload["reason"], "Finished") else workload["reason"],
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


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:g}"


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def show_difference(before: Result, after: Result) -> None:
    """Print the workloads that fare differently, and the waiting times of both runs."""
    from kueue_fleet.simulation.result import waiting_times
    from kueue_fleet.simulation.what_if import differences

    found = differences(before, after)
    table = Table(
        Column("workload"),
        Column("run"),
        Column("admitted", right=True),
        Column("state"),
        Column("cluster", leave_out=2),
        Column("evicted", right=True, leave_out=1),
    )
    for difference in found[:_SHOWN_WORKLOADS]:
        for run in ("before", "after"):
            table.add(f"{difference['namespace']}/{difference['name']}", run, *_fate(difference[run]))
    if found:
        console.show(table)
        console.line()
    console.line(f"{console.count(len(found), 'workload')} of {len(before.records)} fare differently.")
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


def _fate(side: Mapping[str, Any] | None) -> tuple[str, str, str, str]:
    if side is None:
        return "-", "not submitted", "-", "-"
    return _time(side["admittedAt"]), side["state"], side["cluster"] or "-", str(len(side["evictions"]) or "-")
