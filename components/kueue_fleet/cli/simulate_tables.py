"""What `simulate` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kueue_fleet.cli import console

if TYPE_CHECKING:
    from kueue_fleet.simulation.result import Result

_SHOWN_WORKLOADS = 60
_UNLIMITED_COLUMNS = 10_000


def show(result: Result) -> None:
    """Print every workload, and how long each queue's, or class's, waited."""
    from kueue_fleet.simulation.result import waiting_times

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    for heading in ("queue", "flavors"):
        table.add_column(heading, overflow="fold")
    for heading in ("state", "reason"):
        table.add_column(heading, no_wrap=True)
    for heading in ("arrived", "admitted", "finished", "evicted"):
        table.add_column(heading, justify="right", no_wrap=True)
    workloads = result.as_json()["workloads"]
    for workload in workloads[:_SHOWN_WORKLOADS]:
        flavors = dict.fromkeys(name for pod_set in workload["flavors"].values() for name in pod_set.values())
        table.add_row(
            f"{workload['namespace']}/{workload['name']}",
            "/".join(part for part in (workload["cluster"], workload["clusterQueue"]) if part) or "-",
            ", ".join(flavors) or "-",
            workload["state"],
            "" if workload["state"] in (workload["reason"], "Finished") else workload["reason"],
            *(_time(workload[name]) for name in ("arrivedAt", "admittedAt", "finishedAt")),
            str(len(workload["evictions"]) or "-"),
        )
    console.out.print(table, width=None if console.interactive() else _UNLIMITED_COLUMNS, crop=False)
    if len(workloads) > _SHOWN_WORKLOADS:
        rest = console.count(len(workloads) - _SHOWN_WORKLOADS, "more workload")
        console.out.print(f"and {rest}; --output json has all")
    console.out.print()
    waits = Table("waiting", "workloads", "admitted", "mean wait", "longest wait", box=None, header_style="bold")
    for wait in waiting_times(result.records):
        waits.add_row(wait.name, str(wait.workloads), str(wait.admitted), _span(wait.mean), _span(wait.longest))
    console.out.print(waits)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:g}"


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def show_difference(before: Result, after: Result) -> None:
    """Print the workloads that fare differently, and the waiting times of both runs."""
    from kueue_fleet.simulation.result import waiting_times
    from kueue_fleet.simulation.what_if import differences

    found = differences(before, after)
    table = Table("workload", "before", "after", box=None, pad_edge=False, header_style="bold")
    for difference in found[:_SHOWN_WORKLOADS]:
        name = f"{difference['namespace']}/{difference['name']}"
        table.add_row(name, _fate(difference["before"]), _fate(difference["after"]))
    if found:
        console.out.print(table)
        console.out.print()
    console.out.print(f"{console.count(len(found), 'workload')} of {len(before.records)} fare differently.")
    waits = Table("waiting", "admitted", "then", "mean wait", "then", box=None, header_style="bold")
    then = {wait.name: wait for wait in waiting_times(after.records)}
    for wait in waiting_times(before.records):
        other = then.get(wait.name)
        waits.add_row(
            wait.name,
            str(wait.admitted),
            str(other.admitted if other else 0),
            _span(wait.mean),
            _span(other.mean if other else None),
        )
    console.out.print(waits)


def _fate(side: Mapping[str, Any] | None) -> str:
    if side is None:
        return "-"
    where = f" on {side['cluster']}" if side["cluster"] else ""
    when = f", admitted at {_time(side['admittedAt'])}" if side["admittedAt"] is not None else ""
    evicted = f", evicted {len(side['evictions'])} times" if side["evictions"] else ""
    return f"{side['state']}{where}{when}{evicted}"
