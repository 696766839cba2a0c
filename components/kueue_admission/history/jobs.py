"""Jobs as their events tell: when each came, what it asked for, how it waited, ran and ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kueue_admission.history.schema import Event, Kind

_ORDER: Final = {kind: number for number, kind in enumerate(Kind)}
"""Of events within a second: in that of a Workload's life."""
_OF_OTHERS: Final = (Kind.NOMINATED, Kind.NODE_ADDED, Kind.NODE_GONE, Kind.STOCK_OUT, Kind.COUNTED)
OF_JOBS: Final = tuple(kind for kind in Kind if kind not in _OF_OTHERS)
"""Kinds of events that tell of jobs."""


class Waited(NamedTuple):
    """How long an admission check took, from the reservation until it was Ready; where, and with which flavors.

    `is_ready` is False where it was not by then: another worker was first, or it was evicted or deleted.
    """

    region: str
    check: str
    flavors: tuple[str, ...]
    seconds: float
    is_ready: bool


@dataclass(slots=True)
class Ran:
    """A time in which a job was admitted. `end` is why it was over: the kind of the last event; None: it still was."""

    admitted: float
    cluster: str = ""
    region: str = ""
    flavors: tuple[str, ...] = ()
    started: float | None = None
    interruptions: list[float] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)
    """Seconds from an interruption until all pods were ready again."""
    ended: float | None = None
    end: Kind | None = None

    @property
    def began(self) -> float:
        """When it began to hold what it ran with: admitted, or after an interruption when its pods were ready again."""
        if self.recoveries:
            return self.interruptions[len(self.recoveries) - 1] + self.recoveries[-1]
        return self.admitted

    def until(self, at: float) -> float | None:
        """Seconds from then until it was over; None: it was not."""
        return None if self.ended is None else max(0.0, self.ended - at)


@dataclass(slots=True)
class PastJob:
    """A job. `arrival` is its first event, `ended` when it was over, by itself or deleted."""

    arrival: Event
    runs: list[Ran] = field(default_factory=list)
    reserved: float | None = None
    """The first reservation; None: none is known."""
    evictions: int = 0
    ended: float | None = None
    is_deleted: bool = False
    run_seconds: float | None = None
    """How long its last run was; None: it did not end, or never began."""

    @property
    def wait(self) -> float | None:
        """Seconds from arrival to first admission; None: it was never admitted."""
        return self.runs[0].admitted - self.arrival.time if self.runs else None


@dataclass(frozen=True, slots=True)
class Past:
    """What the events of a time tell. `without_arrival`: Workloads of which nothing says what they asked for."""

    jobs: tuple[PastJob, ...]
    waits: tuple[Waited, ...]
    without_arrival: int
    begin: float
    end: float
    """The first and last event."""
    counted: tuple[Event, ...] = ()
    """What metrics counted, in the order of time."""
    stock_outs: tuple[Event, ...] = ()
    """Requests for nodes that found no capacity, in the order of time."""


def past_of(events: Iterable[Event]) -> Past:
    """The jobs that the events tell of; what workers say of their copies is part of the manager's."""
    by_uid: dict[str, list[Event]] = {}
    events = sorted(events, key=lambda event: (event.time, _ORDER[event.kind]))
    first, last = (events[0].time, events[-1].time) if events else (0.0, 0.0)
    for event in events:
        if event.kind in OF_JOBS:
            by_uid.setdefault(event.uid, []).append(event)
    copies: dict[tuple[str, str], list[Event]] = {}
    for events_of_one in by_uid.values():
        if events_of_one[0].copy:
            copies.setdefault((events_of_one[0].namespace, events_of_one[0].workload), []).extend(events_of_one)
    jobs, waits, unknown = [], list[Waited](), 0
    for events_of_one in by_uid.values():
        if events_of_one[0].copy:
            continue
        arrival = next((event for event in events_of_one if event.kind is Kind.ARRIVED), None)
        if arrival is None:
            unknown += 1
            continue
        of_copies = copies.get((arrival.namespace, arrival.workload), [])
        job = _job(arrival, [*_only_on_worker(events_of_one, of_copies), *events_of_one])
        for copy in of_copies:
            _place(job, copy)
        jobs.append(job)
        admission_times = [run.admitted for run in job.runs]
        for uid in dict.fromkeys(copy.uid for copy in of_copies) or [arrival.uid]:
            waits += _waits(by_uid[uid], admission_times, last)
    jobs.sort(key=lambda job: (job.arrival.time, job.arrival.key))
    counted_events, stock_outs = (
        tuple(event for event in events if event.kind is kind) for kind in (Kind.COUNTED, Kind.STOCK_OUT)
    )
    return Past(tuple(jobs), tuple(waits), unknown, first, last, counted_events, stock_outs)


def _only_on_worker(own: Sequence[Event], of_copies: Sequence[Event]) -> list[Event]:
    """The admission of a job that the manager never admitted: there it was finished as soon as its copy had ended.

    Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (reconcileGroup, step 3 before 6).
    """
    kinds = {event.kind for event in own}
    if Kind.ENDED not in kinds or Kind.ADMITTED in kinds:
        return []
    ended_copies = {copy.uid for copy in of_copies if copy.kind is Kind.ENDED}
    return [copy for copy in of_copies if copy.kind is Kind.ADMITTED and copy.uid in ended_copies][-1:]


def _job(arrival: Event, events: Iterable[Event]) -> PastJob:
    job = PastJob(arrival)
    for event in events:
        run = job.runs[-1] if job.runs and job.runs[-1].ended is None else None
        match event.kind:
            case Kind.RESERVED:
                job.reserved = event.time if job.reserved is None else job.reserved
            case Kind.ADMITTED:
                if run is not None:  # Its eviction was not seen.
                    run.ended, run.end = event.time, Kind.EVICTED
                job.runs.append(Ran(event.time, event.worker or event.cluster, event.region, event.flavors))
            case Kind.STARTED | Kind.INTERRUPTED if run is not None:
                _ready(run, event)
            case Kind.EVICTED:
                job.evictions += 1
                if run is not None and event.exact:
                    run.ended, run.end = event.time, event.kind
            case Kind.ENDED | Kind.DELETED:
                job.ended, job.is_deleted = event.time, event.kind is Kind.DELETED
                if run is not None:
                    run.ended, run.end = event.time, event.kind
                    job.run_seconds = event.time - run.began
                elif event.count is not None:  # A run of which only the length is known.
                    job.run_seconds = float(event.count)
            case _:
                pass
    return job


def _ready(run: Ran, event: Event) -> None:
    if event.kind is Kind.INTERRUPTED:
        run.interruptions.append(event.time)
    elif run.started is None:
        run.started = event.time
    elif len(run.recoveries) < len(run.interruptions):
        run.recoveries.append(event.time - run.interruptions[-1])


def _place(job: PastJob, copy: Event) -> None:
    """The worker's own flavors are those of the run there: the manager has flavors of its own."""
    for run in job.runs:
        until = run.ended if run.ended is not None else float("inf")
        if copy.cluster == run.cluster and copy.kind is Kind.ADMITTED and copy.time <= until:
            run.flavors, run.region = copy.flavors or run.flavors, copy.region
        elif copy.cluster == run.cluster and copy.kind in (Kind.STARTED, Kind.INTERRUPTED) and copy.time <= until:
            _ready(run, copy)


def _waits(events: Sequence[Event], admission_times: Sequence[float], last: float) -> Iterator[Waited]:
    """Of one Workload. The job's admissions end the wait of a copy that was not the first, whenever it is deleted."""
    waiting: dict[str, Event] = {}
    reservation: Event | None = None
    over = [event.time for event in events if event.kind in (Kind.EVICTED, Kind.ENDED, Kind.DELETED)]
    for event in events:
        if event.kind is Kind.RESERVED:
            reservation = event
        elif event.kind is Kind.CHECK and reservation is not None:
            if event.reason == "Ready":
                waiting.pop(event.check, None)
                yield Waited(event.region, event.check, reservation.flavors, event.time - reservation.time, True)
            elif event.reason == "Pending":
                waiting[event.check] = reservation
    for check, since in waiting.items():
        until = min(at for at in (*admission_times, *over, last) if at >= since.time)
        yield Waited(since.region, check, since.flavors, until - since.time, False)
