"""Where jobs ran by the history, what was outside of the regions of their team, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.history.schema import Event, Kind
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.status.residency import Evidence, Recorded, residency_evidence

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.prod.yaml"
FLEET = parse_fleet(yaml.safe_load(STACK.read_text())["config"]["kueue-fleet:fleet"])
MANAGER, EUROPE, AMERICA, ASIA = FLEET.cluster_names
FOLLOWED = {name: [(0.0, 1000.0)] for name in FLEET.cluster_names}


def event(kind: Kind, time: float, cluster: str = MANAGER, **more: Any) -> Event:
    team = more.pop("team", "language")
    about = {"uid": f"{cluster}-{more.get('workload', 'w')}", "namespace": team, "workload": "w", "team": team}
    return Event(
        kind=kind,
        time=time,
        key=f"{kind}{time}{cluster}",
        cluster=cluster,
        region=FLEET.cluster(cluster).region,
        **about | more,
    )


def admitted(time: float, worker: str, *, copy: bool = True, **more: Any) -> list[Event]:
    """What the manager writes of a job that a worker admitted, and what the worker writes."""
    by_worker = [event(Kind.ADMITTED, time, worker, copy=True, **more)] if copy else []
    return [event(Kind.ADMITTED, time, worker=worker, **more), *by_worker]


def found(
    events: Sequence[Event],
    *teams: str,
    followed: Mapping[str, Sequence[tuple[float, float]]] = FOLLOWED,
    pruned: Sequence[tuple[float, str]] = (),
) -> Evidence:
    return residency_evidence(FLEET, Recorded(events, followed, pruned), teams or ("language",), 100.0, 900.0)


def test_a_job_ran_where_its_copy_was_admitted() -> None:
    [stay] = found(admitted(200, EUROPE)).stays
    assert (stay.cluster, stay.region, stay.by_manager, stay.forbidden) == (EUROPE, "europe-west4", False, "")


def test_outside_of_the_regions_of_its_team() -> None:
    [stay] = found(admitted(200, AMERICA)).outside
    assert (stay.region, stay.forbidden) == ("us-central1", "the team's allowedRegions allows only europe-west4")


def test_outside_of_what_its_own_label_says() -> None:
    label = event(Kind.ARRIVED, 150, team="vision", labels={"kueue-fleet.dev/regions": "europe-west4"})
    [stay] = found([label, *admitted(200, AMERICA, team="vision")], "vision").outside
    assert stay.forbidden == "label kueue-fleet.dev/regions of the workload allows only europe-west4"


def test_a_label_may_name_groups() -> None:
    label = event(Kind.ARRIVED, 150, team="vision", labels={"kueue-fleet.dev/regions": "eu_us-central1"})
    assert found([label, *admitted(200, AMERICA, team="vision")], "vision").outside == []


def test_the_manager_alone_is_named() -> None:
    evidence = found(admitted(200, AMERICA, copy=False))
    assert [stay.region for stay in evidence.outside] == ["us-central1"]
    assert evidence.gaps == [f"{AMERICA}: 1 job by the word of the manager alone"]


def test_a_job_without_a_worker_is_not_known() -> None:
    evidence = found([event(Kind.ADMITTED, 200)])
    assert [(stay.cluster, stay.region, stay.forbidden) for stay in evidence.stays] == [("", "", "")]
    assert evidence.gaps == ["language: of 1 admitted job the region is not known"]


@pytest.mark.parametrize(
    ("events", "times"),
    [
        ([*admitted(50, EUROPE)], [50]),
        ([*admitted(50, EUROPE), event(Kind.ENDED, 90, EUROPE)], []),
        ([*admitted(50, EUROPE), event(Kind.ENDED, 100, EUROPE)], []),
        ([*admitted(50, EUROPE), event(Kind.ENDED, 101, EUROPE)], [50]),
        ([*admitted(900, EUROPE)], []),
        ([*admitted(899, EUROPE)], [899]),
    ],
)
def test_what_overlaps_with_the_time_counts(events: list[Event], times: list[int]) -> None:
    stays = found(events).stays
    assert [stay.begin for stay in stays] == [f"1970-01-01T00:{at // 60:02}:{at % 60:02}Z" for at in times]


def test_each_time_on_a_cluster_is_a_stay() -> None:
    again = event(Kind.ADMITTED, 400, EUROPE, copy=True)
    stays = found([*admitted(200, EUROPE), event(Kind.EVICTED, 300, EUROPE), again]).stays
    assert [(stay.begin[-3:-1], stay.end[-3:-1]) for stay in stays] == [("20", "00"), ("40", "")]


def test_other_teams_do_not_count() -> None:
    assert found(admitted(200, AMERICA, team="vision")).stays == []


def test_clusters_that_were_not_followed_are_gaps() -> None:
    followed = {**FOLLOWED, MANAGER: [(0.0, 300.0), (400.0, 1000.0)], AMERICA: [], ASIA: []}
    end = "a job that came and went in that time left nothing"
    assert found([], followed=followed).gaps == [
        f"{MANAGER}: not followed 1970-01-01T00:05:00Z to 1970-01-01T00:06:40Z; {end}",
        f"{AMERICA}, {ASIA}: not followed 1970-01-01T00:01:40Z to 1970-01-01T00:15:00Z; {end}",
    ]


@pytest.mark.parametrize(
    ("before", "team", "gaps"), [(500, "", 1), (500, "language", 1), (500, "vision", 0), (90, "", 0)]
)
def test_what_was_deleted_is_a_gap(before: float, team: str, gaps: int) -> None:
    assert len(found([], pruned=[(before, team)]).gaps) == gaps


def test_the_digest_is_of_every_stay() -> None:
    one, other = (found(admitted(time, EUROPE)) for time in (200, 201))
    assert one.digest == found(admitted(200, EUROPE)).digest != other.digest
