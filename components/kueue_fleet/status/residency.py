"""Where jobs of teams ran, by the history, against where their data may be; and what the history cannot say.

A job runs on the cluster that admitted it and did not hand it on: MultiKueue's manager names the worker, and the copy
on the worker has an admission of its own. What the manager alone says counts too, and is named as such.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.names import REGIONS_LABEL
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.residency import read_residency
from kueue_fleet.fleet_file import FleetSpec

KINDS: Final = (Kind.ARRIVED, Kind.ADMITTED, Kind.EVICTED, Kind.ENDED, Kind.DELETED)
"""The events that it is made of."""
_NAMED: Final = 8
"""At most so many times without a record are named."""
_LEFT: Final = (Kind.EVICTED, Kind.ENDED, Kind.DELETED)


@dataclass(frozen=True, slots=True)
class Stay:
    """A time in which a job's pods may have run on a cluster, by what that cluster, or the manager, wrote."""

    team: str
    namespace: str
    workload: str
    uid: str
    cluster: str
    region: str
    """Empty: not known."""
    begin: str
    end: str
    """Empty: it had not left by the end of the history."""
    by_manager: bool
    """Whether only the manager says so."""
    forbidden: str
    """The rule that forbids the region; empty: none does."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Every stay of the teams within a time, and the gaps in what is known of it."""

    stays: Sequence[Stay]
    gaps: Sequence[str]

    @property
    def outside(self) -> Sequence[Stay]:
        """Stays in a region that the job must not be in."""
        return [stay for stay in self.stays if stay.forbidden]

    @property
    def digest(self) -> str:
        """SHA-256 of the stays as JSON with sorted keys and without blanks, one on each line."""
        lines = (json.dumps(asdict(stay), sort_keys=True, separators=(",", ":")) + "\n" for stay in self.stays)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a history says of itself.

    `followed`: for each cluster the times without a gap in what was recorded, in seconds. `pruned`: what was deleted of
    it, as time before which and team, where that is empty all.
    """

    events: Sequence[Event]
    followed: Mapping[str, Sequence[tuple[float, float]]]
    pruned: Sequence[tuple[float, str]] = ()


def residency_evidence(
    fleet: FleetSpec, recorded_past: Recorded, teams: Sequence[str], begin: float, end: float
) -> Evidence:
    """Where jobs of these teams ran from `begin` to `end`, in seconds, judged by the file as it is now."""
    stays = sorted(_stays(fleet, recorded_past.events, set(teams), begin, end), key=lambda stay: (stay.begin, stay.uid))
    return Evidence(stays, [*_gaps(fleet, recorded_past, teams, begin, end), *_gaps_of(stays)])


def _stays(fleet: FleetSpec, events: Sequence[Event], teams: set[str], begin: float, end: float) -> Iterator[Stay]:
    groups = fleet.controller.region_groups if fleet.controller is not None else {}
    regions = {team.name: fleet.allowed_regions(team) or None for team in fleet.teams}
    labels = {(e.namespace, e.workload): e.labels or {} for e in events if e.kind is Kind.ARRIVED}
    copies = {(e.namespace, e.workload, e.cluster) for e in events if e.kind is Kind.ADMITTED and e.copy}
    stays_by_job: dict[tuple[str, str], list[float]] = {}
    for event in events:
        if event.kind in _LEFT:
            stays_by_job.setdefault((event.uid, event.cluster), []).append(event.time)
    for event in events:
        team = fleet.team_of.get(event.namespace, event.team)  # As the file of that time says, whoever recorded it.
        if event.kind is not Kind.ADMITTED or team not in teams:
            continue
        cluster = event.worker or event.cluster
        if event.worker and (event.namespace, event.workload, cluster) in copies:
            continue
        ends = [time for time in stays_by_job.get((event.uid, event.cluster), ()) if time >= event.time]
        if event.time >= end or (ends and min(ends) <= begin):
            continue
        nowhere = cluster == fleet.manager_name
        region = "" if nowhere else event.region if cluster == event.cluster else _region(fleet, cluster)
        regions_label = labels.get((event.namespace, event.workload), {}).get(REGIONS_LABEL)
        bound = read_residency(regions_label, None, regions.get(team), groups).forbids(region) if region else None
        yield Stay(
            team,
            event.namespace,
            event.workload,
            event.uid,
            "" if nowhere else cluster,
            region,
            format_time(event.time),
            format_time(min(ends)) if ends else "",
            nowhere or cluster != event.cluster,
            bound.text if bound is not None else "",
        )


def _region(fleet: FleetSpec, cluster: str) -> str:
    return fleet.cluster(cluster).place if cluster in fleet.cluster_names else ""


def _gaps(fleet: FleetSpec, recorded_past: Recorded, teams: Sequence[str], begin: float, end: float) -> Iterator[str]:
    """The parts of the time that the history lacks."""
    alike: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for cluster in fleet.cluster_names:
        alike.setdefault(tuple(_missed(recorded_past.followed.get(cluster, ()), begin, end)), []).append(cluster)
    for missed_stay, clusters in alike.items():
        if missed_stay:
            times = ", ".join(f"{format_time(start)} to {format_time(stop)}" for start, stop in missed_stay[:_NAMED])
            more = f" and {len(missed_stay) - _NAMED} times more" if len(missed_stay) > _NAMED else ""
            where = ", ".join(clusters)
            yield f"{where}: not followed {times}{more}; a job that came and went in that time left nothing"
    for before, team in recorded_past.pruned:
        if before > begin and team in ("", *teams):
            yield f"events {f'of {team} ' if team else ''}before {format_time(before)} were deleted from the history"


def _missed(followed_spans: Iterable[tuple[float, float]], begin: float, end: float) -> Iterator[tuple[float, float]]:
    at = begin
    for start, stop in sorted(followed_spans):
        if start > at and at < end:
            yield at, min(start, end)
        at = max(at, stop)
    if at < end:
        yield at, end


def _gaps_of(stays: Sequence[Stay]) -> Iterator[str]:
    """What is not known of jobs that the history has."""
    unknown = Counter(stay.team for stay in stays if not stay.region)
    for team, count in sorted(unknown.items()):
        yield f"{team}: of {count} admitted {'job' if count == 1 else 'jobs'} the region is not known"
    alone = Counter(stay.cluster for stay in stays if stay.by_manager and stay.region)
    for cluster, count in sorted(alone.items()):
        yield f"{cluster}: {count} {'job' if count == 1 else 'jobs'} by the word of the manager alone"
