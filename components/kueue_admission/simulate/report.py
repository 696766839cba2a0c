"""What a report shows, as plain data: use against quota over time, waiting times, GPU hours and cost, each job.

Results that are compared share one row of times, so that they can be drawn over each other. Long series are averaged
over bins, so that those of 50,000 workloads are not larger than those of fifty.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from kueue_admission.decide.amounts import resource_order
from kueue_admission.kernel.names import ACCELERATOR_RESOURCES, GPU_RESOURCE, TPU_RESOURCE
from kueue_admission.simulate.records import Phase, Record, Run
from kueue_admission.simulate.result import Result

_MOST_STEPS: Final = 600
_BINS: Final = 300
_MOST_SERIES: Final = 8
_MOST_ROWS: Final = 60
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    GPU_RESOURCE: ("GPUs", 1.0),
    TPU_RESOURCE: ("TPU chips", 1.0),
    "cpu": ("CPUs", 1000.0),
    "memory": ("GiB", 1024.0**3),
    "ephemeral-storage": ("GiB", 1024.0**3),
}
_PHASES: Final = tuple(Phase)
REST: Final = "all others"
"""Name of the series of everything that has none of its own."""

Changes = list[tuple[float, float]]
"""Times in seconds from second 0, and by how much an amount changes at each."""


class Span(NamedTuple):
    """A phase of a workload from one time to another, in seconds from second 0; and which of its runs that is."""

    phase: Phase
    begin: float
    end: float
    run: Run | None


def report_data(results: Sequence[tuple[str, Result]]) -> dict[str, Any]:
    """Everything that the report shows: a section for each result, with its name."""
    ends = [_end(result) for _, result in results]
    end = max(ends, default=0.0)
    seconds, unit = _time_unit(end)
    series = [_all_changes(result, of_it) for (_, result), of_it in zip(results, ends, strict=True)]
    quota_times = {at for _, result in results for at, _ in result.later_quotas if at < end}
    times = sorted({0.0, end, *quota_times, *(time for of in series for changes in of.values() for time, _ in changes)})
    is_averaged = len(times) > _MOST_STEPS
    if is_averaged:
        times = [end * index / _BINS for index in range(_BINS + 1)]
    amounts = _averages if is_averaged else _levels
    sections = []
    for (name, result), of_it, changes in zip(results, ends, series, strict=True):
        jobs, runs = _jobs(result, of_it, seconds)
        drawn = [{**key._asdict(), "y": _rounded(amounts(of, times), 4)} for key, of in changes.items()]
        section = {
            "name": name,
            "end": of_it / seconds,
            "counts": _counts(result.records),
            "quotas": list(_quotas(result, times)),
            "series": drawn,
            "waits": _waits(result, seconds),
            "runs": runs,
            "jobs": jobs,
            "evictions": _evictions(result, seconds),
            "goals": [[str(goal), goal.standing] for goal in result.goals],
        }
        sections.append(section)
    resources = sorted({key.resource for of in series for key in of if key.resource}, key=_order)
    return {
        "unit": unit,
        "unitSeconds": seconds,
        "begin": next((begin for _, result in reversed(results) if (begin := _begin(result))), None),
        "x": _rounded(time / seconds for time in times),
        "averaged": is_averaged,
        "resources": [{"name": name, "label": _UNITS.get(name, (name, 1.0))[0]} for name in resources],
        "phases": [phase.value for phase in _PHASES],
        "sections": sections,
    }


def _begin(result: Result) -> float | None:
    """Second 0 in seconds since 1970, where that is known: objects have times."""
    return result.begin.timestamp() if result.begin is not None else result.origin or None


def _order(resource: str) -> tuple[bool, tuple[int, str]]:
    """GPUs and other devices first, CPUs and memory last."""
    return "/" not in resource, resource_order(resource)


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
    return counts | {"evictions": evictions, "nodes reclaimed": reclaims}


def _spans(record: Record, origin: float, end: float) -> Iterator[Span]:
    """The phases of a workload up to its end or the `end` of the simulation, each that lasted."""
    runs = iter(record.runs)
    run: Run | None = None
    phases = [(record.arrived_at, Phase.QUOTA), *record.phases]
    times = [*(time - origin for time, _ in phases), end]
    for (_, phase), begin, until in zip(phases, times, times[1:], strict=False):
        if phase is Phase.NODES:
            run = next(runs, None)
        if phase is not Phase.OVER and min(until, end) > begin:
            yield Span(phase, begin, min(until, end), run if phase not in (Phase.QUOTA, Phase.CHECKS) else None)


# Amounts over time


class Series(NamedTuple):
    """What is drawn over time.

    `kind` is "own" or "borrowed" (by cluster and flavor), "waiting" or "checks" (what jobs ask for that wait for quota,
    or for checks), "team", or "evicted" (how often in all, by the reason as the name).
    """

    kind: str
    resource: str
    name: str = ""
    cluster: str = ""


def _all_changes(result: Result, end: float) -> dict[Series, Changes]:
    changes_by_series: dict[Series, Changes] = {}
    by_queue: dict[tuple[str, str, str, str], Changes] = {}
    by_team: dict[str, dict[str, Changes]] = {}
    for record in result.records:
        team = _team(result, record)
        for phase, begin, until, _ in _spans(record, result.origin, end):
            kind = {Phase.QUOTA: "waiting", Phase.CHECKS: "checks"}.get(phase)
            for resource, amount in record.requests if kind else ():
                changes_by_series.setdefault(Series(kind or "", resource), []).extend(
                    _use_changes(resource, amount, begin, until)
                )
        for run in record.runs:
            begin = run.admitted_at - result.origin
            until = end if run.ended_at is None else run.ended_at - result.origin
            for (flavor, resource), amount in run.usage.items():
                changes_held = _use_changes(resource, amount, begin, min(until, end))
                key = run.cluster or "", run.admission.cluster_queue, flavor, resource
                by_queue.setdefault(key, []).extend(changes_held)
                by_team.setdefault(resource, {}).setdefault(team, []).extend(changes_held)
        for eviction in record.evictions:
            changes_by_series.setdefault(Series("evicted", "", eviction.reason), []).append(
                (eviction.time - result.origin, 1.0)
            )
        for run in record.runs:
            for time in run.reclaimed:
                changes_by_series.setdefault(Series("evicted", "", "nodes reclaimed"), []).append(
                    (time - result.origin, 1.0)
                )
    nominal = [
        (at, {(quota.cluster, quota.queue, quota.flavor, quota.resource): quota.nominal for quota in quotas})
        for at, quotas in ((0.0, result.quotas), *result.later_quotas)
    ]
    for key, changes in sorted(by_queue.items()):
        cluster, _, flavor, resource = key
        # A queue without quota of a flavor borrows all of it; where no quotas are known at all, nothing is borrowed.
        limits = [(at, _amount(resource, of.get(key, 0)) if result.quotas else math.inf) for at, of in nominal]
        own, borrowed_parts = _parts(changes, limits)
        changes_by_series.setdefault(Series("own", resource, flavor, cluster), []).extend(own)
        if borrowed_parts:
            changes_by_series.setdefault(Series("borrowed", resource, flavor, cluster), []).extend(borrowed_parts)
    for resource, teams in by_team.items():
        changes_by_series |= {Series("team", resource, name): changes for name, changes in _largest(teams).items()}
    return {key: changes_by_series[key] for key in sorted(changes_by_series)}


def _amount(resource: str, amount: float) -> float:
    return amount / _UNITS.get(resource, ("", 1.0))[1]


def _use_changes(resource: str, amount: int, begin: float, until: float) -> Changes:
    value = _amount(resource, amount)
    return [(begin, value), (until, -value)] if value and until > begin else []


def _parts(changes: Changes, limits: Changes) -> tuple[Changes, Changes]:
    """What is held within the limit, which is another from each of its times on, and what above it."""
    level = within = limit = 0.0
    own, borrowed_parts = [], []
    steps = [(time, 0.0, amount) for time, amount in limits] + [(time, change, None) for time, change in changes]
    for time, change, amount in sorted(steps, key=lambda step: (step[0], step[2] is None, step[1])):
        level, limit = level + change, limit if amount is None else amount
        if (now := min(level, limit)) != within:
            own.append((time, now - within))
        if over := change - (now - within):
            borrowed_parts.append((time, over))
        within = now
    return own, borrowed_parts


def _largest(groups: Mapping[str, Changes]) -> dict[str, Changes]:
    """The groups that use most, by name; the others as one."""
    size = {name: -math.fsum(time * change for time, change in changes) for name, changes in groups.items()}
    names = sorted(sorted(groups), key=lambda name: -size[name])[:_MOST_SERIES]
    largest = {name: groups[name] for name in sorted(names)}
    rest = [change for name in sorted(groups) if name not in largest for change in groups[name]]
    return largest | ({REST: rest} if rest else {})


def _levels(changes: Changes, times: Sequence[float]) -> list[float]:
    """The amount from each time to the next."""
    at = dict.fromkeys(times, 0.0)
    for time, change in changes:
        at[time] += change
    return list(accumulate(at.values()))


def _averages(changes: Changes, times: Sequence[float]) -> list[float]:
    """The exact average over each bin; the last value stands for the end."""
    width = times[1] - times[0]
    rates, areas = [0.0] * len(times), [0.0] * len(times)
    for time, change in changes:
        index = min(int(time / width), len(times) - 2)
        areas[index] += change * (times[index + 1] - time)
        rates[index + 1] += change * width
    averages = [area + before for area, before in zip(areas, accumulate(rates), strict=True)]
    return [area / width for area in averages[:-1]] + [averages[-2] / width]


def _quotas(result: Result, times: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Nominal quota by cluster, flavor and resource: that of all queues, and of the cohorts themselves.

    `y` has it at each time, where it changes.
    """
    amounts: dict[tuple[str, str, str], dict[float, float]] = {}
    begins = [0.0, *(at for at, _ in result.later_quotas)]
    for at, quotas in zip(begins, (result.quotas, *(quotas for _, quotas in result.later_quotas)), strict=True):
        for quota in quotas:
            of = amounts.setdefault((quota.cluster, quota.flavor, quota.resource), dict.fromkeys(begins, 0.0))
            of[at] += _amount(quota.resource, quota.nominal)
    for (cluster, flavor, resource), of in sorted(amounts.items()):
        quota_data = {"cluster": cluster, "name": flavor, "resource": resource, "quota": round(of[0.0], 3)}
        if len(set(of.values())) > 1:
            quota_data["y"] = _rounded(of[begins[bisect_right(begins, time) - 1]] for time in times)
        yield quota_data


# Waits, jobs, evictions


def _waits(result: Result, unit: float) -> dict[str, list[dict[str, Any]]]:
    """Time to the first admission, by queue (or by class, where records have one) and by team."""
    return {
        "queue": _waits_by({record.key: record.group for record in result.records}, result, unit),
        "team": _waits_by({r.key: _team(result, r) for r in result.records}, result, unit),
    }


def _team(result: Result, record: Record) -> str:
    return result.teams.get(record.namespace, record.namespace)


def _waits_by(group_of: Mapping[str, str], result: Result, unit: float) -> list[dict[str, Any]]:
    groups: dict[str, list[float]] = {}
    waiting: dict[str, int] = {}
    for record in result.records:
        name = group_of[record.key]
        waits = groups.setdefault(name, [])
        if (wait := record.wait) is None:
            waiting[name] = waiting.get(name, 0) + 1
        else:
            waits.append(wait / unit)
    return [
        {
            "name": name,
            "admitted": len(groups[name]),
            "waiting": waiting.get(name, 0),
            "mean": round(math.fsum(groups[name]) / len(groups[name]), 3) if groups[name] else None,
            "numbers": _rounded(_share(sorted(groups[name]), part) for part in (0, 0.25, 0.5, 0.75, 0.95, 1))
            if groups[name]
            else [],
        }
        for name in sorted(groups)
    ]


def _share(ordered_numbers: Sequence[float], part: float) -> float:
    position = part * (len(ordered_numbers) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered_numbers) - 1)
    return ordered_numbers[below] + (position - below) * (ordered_numbers[above] - ordered_numbers[below])


def _jobs(result: Result, end: float, unit: float) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Each job, and the runs of all by team, cluster and flavors.

    A job is name, queue, team, state with its reason, the flavors and cluster of its last run, arrival, waiting time
    (None: never admitted), GPU hours, evictions, and its phases as a flat list of begin, end, number of the phase.
    """
    jobs: list[list[Any]] = []
    sums: dict[tuple[str, str, str], list[float | None]] = {}
    for record in sorted(result.records, key=lambda record: (record.arrived_at, record.key)):
        team = _team(result, record)
        phases: list[float] = []
        hours = 0.0
        for phase, begin, until, run in _spans(record, result.origin, end):
            phases += [*_rounded((begin / unit, until / unit)), _PHASES.index(phase)]
            cluster = (run.cluster if run else None) or ""
            for (flavor, _), seconds in _accelerator_hours(run, until - begin).items():
                hours += seconds
                entry = sums.setdefault((team, cluster, flavor), [0.0, 0.0])
                entry[0] = (entry[0] or 0.0) + seconds
                price = result.accelerator_usd.get((cluster, flavor))
                if price is None or entry[1] is None:
                    entry[1] = None
                elif phase is Phase.RUNNING:
                    entry[1] += price * seconds
        last = record.runs[-1] if record.runs else None
        wait = None if record.wait is None else record.wait / unit
        reason = "not known whether it starts" if record.not_known else record.reason
        state = record.state.value if record.finished_at is not None else f"{record.state.value}: {reason}"
        jobs.append(
            [
                f"{record.namespace}/{record.name}",
                record.group,
                team,
                state,
                ", ".join(last.flavors) if last else "",
                (last.cluster or "") if last else "",
                round((record.arrived_at - result.origin) / unit, 3),
                None if wait is None else round(wait, 3),
                round(hours, 3),
                len(record.evictions),
                phases,
            ]
        )
    runs = [
        {
            "team": team,
            "cluster": cluster,
            "name": flavor,
            "hours": round(hours or 0.0, 2),
            "usd": None if usd is None else round(usd, 2),
        }
        for (team, cluster, flavor), (hours, usd) in sorted(sums.items())
    ]
    return jobs, runs


def _accelerator_hours(run: Run | None, seconds: float) -> dict[tuple[str, str], float]:
    """What a run holds of GPUs and TPU chips in this time, by flavor and resource."""
    if run is None:
        return {}
    return {key: amount * seconds / 3600 for key, amount in run.usage.items() if key[1] in ACCELERATOR_RESOURCES}


def _evictions(result: Result, unit: float) -> dict[str, Any]:
    """The first evictions, and how many more there are."""
    evictions = sorted(
        ((eviction.time - result.origin, r.key, r, eviction) for r in result.records for eviction in r.evictions),
        key=lambda item: item[:2],
    )
    rows = [
        [round(time / unit, 3), f"{record.namespace}/{record.name}", eviction.reason, eviction.preemptor]
        for time, _, record, eviction in evictions[:_MOST_ROWS]
    ]
    return {"list": rows, "more": max(0, len(evictions) - _MOST_ROWS)}


def _rounded(numbers: Iterable[float], digits: int = 3) -> list[float]:
    return [round(number, digits) + 0.0 for number in numbers]
