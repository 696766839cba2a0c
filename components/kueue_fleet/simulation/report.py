"""What a report draws, as plain data: use over time, waits, where jobs ran, evictions.

Long series are averaged over bins, so that a report of 50,000 workloads is not larger than one of fifty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from kueue_fleet.admission.amounts import resource_order
from kueue_fleet.simulation.records import Record, Run
from kueue_fleet.simulation.result import Result

_MOST_STEPS: Final = 600
_BINS: Final = 300
_MOST_SERIES: Final = 8
_MOST_ROWS: Final = 60
_EVICTION_BINS: Final = 40
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "cpu": ("CPUs", 1000.0),
    "memory": ("GiB", 1024.0**3),
    "ephemeral-storage": ("GiB", 1024.0**3),
}
REST: Final = "all others"
"""Name of the series of everything that has none of its own."""

JobRun = tuple[Record, Run]
"""A workload, and one of its runs."""


def report_data(results: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    """Everything that the report shows."""
    longest = max((_end(result) for _, result in results), default=0.0)
    seconds, unit = _time_unit(longest)
    return {"unit": unit, "sections": [_section(name, result, seconds) for name, result in results]}


def _section(name: str, result: Result, unit: float) -> dict[str, Any]:
    runs = [(record, run) for record in result.records for run in record.runs]
    end = _end(result)
    return {
        "name": name,
        "seed": result.seed,
        "end": end / unit,
        "counts": _counts(result.records),
        "use": _use(result, runs, end, unit),
        "waits": _waits(result.records, unit),
        "places": _places(runs),
        "timeline": _timeline(result, runs, end, unit),
        "evictions": _evictions(result, end, unit),
    }


def _end(result: Result) -> float:
    """Seconds from second 0 to the last thing that happened, or to `until`."""
    if result.until is not None:
        return result.until
    times = [
        time
        for record in result.records
        for time in (record.arrived_at, record.finished_at, *(run.admitted_at for run in record.runs))
        if time is not None
    ]
    return max(times, default=result.origin) - result.origin


def _time_unit(longest: float) -> tuple[float, str]:
    if longest > 3 * 86400:
        return 86400.0, "days"
    if longest > 3 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if longest > 600 else (1.0, "seconds")


def _counts(records: Sequence[Record]) -> dict[str, int]:
    counts = {"workloads": len(records)}
    for record in records:
        counts[record.state.value] = counts.get(record.state.value, 0) + 1
    evictions = sum(len(record.evictions) for record in records)
    reclaims = sum(len(run.reclaimed) for record in records for run in record.runs)
    return counts | {"evictions": evictions, "spot reclaims": reclaims}


# Use over time


def _use(result: Result, runs: Sequence[JobRun], end: float, unit: float) -> list[dict[str, Any]]:
    """By resource: GPUs and other devices first, CPUs and memory last."""
    resources = {resource for _, run in runs for _, resource in run.usage}
    ordered = sorted(resources, key=lambda resource: ("/" not in resource, resource_order(resource)))
    return [_use_of(resource, result, runs, end, unit) for resource in ordered]


def _use_of(resource: str, result: Result, runs: Sequence[JobRun], end: float, unit: float) -> dict[str, Any]:
    label, divisor = _UNITS.get(resource, ("", 1.0))
    by_flavor: dict[str, list[tuple[float, float]]] = {}
    by_team: dict[str, list[tuple[float, float]]] = {}
    for record, run in runs:
        begin = run.admitted_at - result.origin
        stop = end if run.ended_at is None else min(end, run.ended_at - result.origin)
        for (flavor, name), amount in run.usage.items():
            if name != resource or stop <= begin:
                continue
            changes = [(begin, amount / divisor), (stop, -amount / divisor)]
            by_flavor.setdefault(flavor, []).extend(changes)
            by_team.setdefault(result.teams.get(record.namespace, record.namespace), []).extend(changes)
    return {
        "resource": resource,
        "label": label or resource,
        "flavors": _steps(by_flavor, end, unit),
        "teams": _steps(by_team, end, unit),
    }


def _steps(groups: Mapping[str, list[tuple[float, float]]], end: float, unit: float) -> dict[str, Any]:
    """Amounts from each time to the next; the average of a bin where there are too many times."""
    groups = _largest(groups)
    times = sorted({0.0, end, *(time for changes in groups.values() for time, _ in changes)})
    binned = len(times) > _MOST_STEPS
    if binned:
        times = [end * index / _BINS for index in range(_BINS + 1)]
    make = _averages if binned else _levels
    series = [{"name": name, "y": _rounded(make(changes, times))} for name, changes in groups.items()]
    return {"x": _rounded(time / unit for time in times), "series": series, "averaged": binned}


def _largest(groups: Mapping[str, list[tuple[float, float]]]) -> dict[str, list[tuple[float, float]]]:
    """The groups that use most, by name; the others as one."""
    size = {name: -math.fsum(time * change for time, change in changes) for name, changes in groups.items()}
    kept = sorted(sorted(groups), key=lambda name: -size[name])[:_MOST_SERIES]
    found = {name: groups[name] for name in sorted(kept)}
    rest = [change for name in sorted(groups) if name not in found for change in groups[name]]
    return found | ({REST: rest} if rest else {})


def _levels(changes: Iterable[tuple[float, float]], times: Sequence[float]) -> list[float]:
    at = dict.fromkeys(times, 0.0)
    for time, change in changes:
        at[time] += change
    return list(accumulate(at.values()))


def _averages(changes: Iterable[tuple[float, float]], times: Sequence[float]) -> list[float]:
    """The exact average over each bin; the last value stands for the end."""
    width = times[1] - times[0]
    rates, areas = [0.0] * len(times), [0.0] * len(times)
    for time, change in changes:
        index = min(int(time / width), len(times) - 2)
        areas[index] += change * (times[index + 1] - time)
        rates[index + 1] += change * width
    found = [area + before for area, before in zip(areas, accumulate(rates), strict=True)]
    return [area / width for area in found[:-1]] + [found[-2] / width]


# Waits, places, evictions


def _waits(records: Iterable[Record], unit: float) -> list[dict[str, Any]]:
    """Time to the first admission: five numbers of each queue, or of each class where records have one."""
    groups: dict[str, list[float]] = {}
    waiting: dict[str, int] = {}
    for record in records:
        name = record.label or record.cluster_queue or "(no queue)"
        waits = groups.setdefault(name, [])
        if record.first_admitted_at is None:
            waiting[name] = waiting.get(name, 0) + 1
        else:
            waits.append((record.first_admitted_at - record.arrived_at) / unit)
    return [
        {
            "queue": name,
            "admitted": len(groups[name]),
            "waiting": waiting.get(name, 0),
            "mean": round(math.fsum(groups[name]) / len(groups[name]), 3) if groups[name] else None,
            "numbers": _rounded(_share(sorted(groups[name]), part) for part in (0, 0.25, 0.5, 0.75, 0.95, 1))
            if groups[name]
            else [],
        }
        for name in sorted(groups)
    ]


def _share(ordered: Sequence[float], part: float) -> float:
    position = part * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _places(runs: Sequence[JobRun]) -> dict[str, Any]:
    """How often jobs ran, by cluster and flavors."""
    counts: dict[tuple[str, str], int] = {}
    for _, run in runs:
        key = run.cluster or "this cluster", ", ".join(run.flavors) or "no flavor"
        counts[key] = counts.get(key, 0) + 1
    clusters = sorted({cluster for cluster, _ in counts})
    flavors = sorted({flavor for _, flavor in counts})
    series = [{"name": name, "y": [counts.get((cluster, name), 0) for cluster in clusters]} for name in flavors]
    return {"clusters": clusters, "series": series}


def _timeline(result: Result, runs: Sequence[JobRun], end: float, unit: float) -> list[dict[str, Any]]:
    """Every run, where there are few enough jobs to give each a line."""
    if not 0 < len({record.key for record, _ in runs}) <= _MOST_ROWS:
        return []
    ordered = sorted(runs, key=lambda place: (place[0].arrived_at, place[0].key, place[1].admitted_at))
    return [
        {
            "job": f"{record.namespace}/{record.name}",
            "where": " ".join(part for part in (run.cluster or "", ", ".join(run.flavors)) if part) or "this cluster",
            "from": round((run.admitted_at - result.origin) / unit, 3),
            "to": round((end if run.ended_at is None else run.ended_at - result.origin) / unit, 3),
            "end": run.end or "still running",
        }
        for record, run in ordered
    ]


def _evictions(result: Result, end: float, unit: float) -> dict[str, Any]:
    """How many in each span of time, by reason; and the first of them."""
    found = sorted(
        (
            (eviction.time - result.origin, record, eviction)
            for record in result.records
            for eviction in record.evictions
        ),
        key=lambda item: (item[0], item[1].key),
    )
    reclaimed = [time - result.origin for record in result.records for run in record.runs for time in run.reclaimed]
    times: dict[str, list[float]] = {}
    for time, _, eviction in found:
        times.setdefault(eviction.reason, []).append(time)
    if reclaimed:
        times["spot nodes reclaimed"] = reclaimed
    width = end / _EVICTION_BINS or 1.0
    return {
        "x": _rounded((index + 0.5) * width / unit for index in range(_EVICTION_BINS)),
        "width": width / unit,
        "series": [{"name": name, "y": _histogram(times[name], width)} for name in sorted(times)],
        "list": [
            {
                "time": round(time / unit, 3),
                "job": f"{record.namespace}/{record.name}",
                "reason": eviction.reason,
                "for": eviction.preemptor,
            }
            for time, record, eviction in found[:_MOST_ROWS]
        ],
        "more": max(0, len(found) - _MOST_ROWS),
    }


def _histogram(times: Iterable[float], width: float) -> list[int]:
    counts = [0] * _EVICTION_BINS
    for time in times:
        counts[min(int(time / width), _EVICTION_BINS - 1)] += 1
    return counts


def _rounded(numbers: Iterable[float]) -> list[float]:
    return [round(number, 3) + 0.0 for number in numbers]
