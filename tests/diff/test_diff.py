"""Differences between fleets, in the fleet's own words."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet_file.builders import FIRST_QUOTA, REMOVED, changed, fleet, fleet_data, manager_quotas
from tests.fleet_files import fleet_files

from drawn import examples
from kueue_admission.kernel import SpecError
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.objects import render_fleet

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "a quota, on every cluster it reaches": (
        {f"{FIRST_QUOTA}/nominalQuota": 6},
        [
            "quota clusterQueues[vision]: team-vision gains 2 nvidia.com/gpu (4 -> 6) of l4 on worker-a and worker-b",
        ],
    ),
    "a quota of one cluster": (
        {f"{FIRST_QUOTA}/perCluster": {"worker-b": {"nominalQuota": 1}}},
        ["quota clusterQueues[vision]: team-vision loses 3 nvidia.com/gpu (4 -> 1) of l4 on worker-b"],
    ),
    "a limit": (
        {"clusterQueues/0/resourceGroups/0/flavors/1/resources/0/borrowingLimit": 2},
        [
            "quota clusterQueues[vision]: team-vision gets a limit on borrowing nvidia.com/gpu (no limit -> 2) of t4 "
            "on worker-b"
        ],
    ),
    "a queue that nobody uses": (
        {
            "teams/0/localQueues": REMOVED,
            f"{FIRST_QUOTA}/perCluster": {"worker-b": {"nominalQuota": 5}},
        },
        [
            "consequences teams[team-vision].localQueues[main]: waiting jobs are not admitted until",
            "quota clusterQueues[vision]: team-vision gains 1 nvidia.com/gpu (4 -> 5) of l4 on worker-b",
            "settings teams[team-vision].localQueues[main]: removed: clusterQueue vision",
        ],
    ),
    "the manager's own quotas": (
        {"clusterQueues/0/manager": manager_quotas(gpu=10)},
        ["settings clusterQueues[vision].manager: new: quotas on multikueue"],
    ),
    "settings": (
        {"clusterQueues/1/queueingStrategy": "StrictFIFO", "clusters/1/releaseChannel": "RAPID"},
        [
            "settings clusters[worker-a].releaseChannel: REGULAR -> RAPID",
            "settings clusterQueues[language].queueingStrategy: BestEffortFIFO -> StrictFIFO",
        ],
    ),
    "lists of names": (
        {"teams/0/members": ["user:a@example.com"], "multiKueue/workers": ["worker-b", "worker-a"]},
        [
            "settings teams[team-vision].members: adds user:a@example.com",
            "settings multiKueue.workers: every worker -> worker-b and worker-a only",
        ],
    ),
    "sections, in words": (
        {
            "multiKueue/dispatcher": "External",
            "multiKueue/external": {"name": "example.com/dispatcher"},
            "workloadPriorityClasses": REMOVED,
            "teams/+": {"name": "speech", "localQueues": [{"name": "main", "clusterQueue": "vision"}]},
        },
        [
            "consequences multiKueue.dispatcher: Kueue on the manager restarts",
            "settings workloadPriorityClasses[urgent]: removed: value 100",
            "settings teams[speech]: new: localQueues main (clusterQueue vision)",
            "settings multiKueue.dispatcher: AllAtOnce -> External",
            "settings multiKueue.external: new: name example.com/dispatcher",
        ],
    ),
    "the order of flavors": (
        {
            "clusterQueues/0/resourceGroups/0/flavors": list(
                reversed(fleet_data()["clusterQueues"][0]["resourceGroups"][0]["flavors"])
            )
        },
        ["settings clusterQueues[vision].resourceGroups[0].flavors: order: l4, t4 -> t4, l4"],
    ),
}


REGIONS = ["us-east4", "europe-west4"]


def test_regions_give_a_team_clusters_and_take_them() -> None:
    both, one = (
        parse_fleet(changed(fleet_data(), {"teams/0/allowedRegions": given})) for given in (REGIONS, REGIONS[:1])
    )
    for old, new, when in ((one, both, "now"), (both, one, "no longer")):
        output = [(item.path, item.text) for item in compare_fleets(old, new) if item.area == "quota"]
        assert output == [("clusterQueues[vision]", f"jobs of team-vision may run on worker-b {when}")]


@pytest.mark.parametrize(
    ("path", "value", "change"),
    [
        ("teams/0/allowedRegions", ["us-east4"], "allowedRegions: any region -> us-east4 only"),
        (
            "teams/0/allowedPriorityClasses",
            ["urgent"],
            "allowedPriorityClasses: all but the highest of each kind -> urgent only",
        ),
        ("teams/0/allowedPriorityClasses", [], "allowedPriorityClasses: all but the highest of each kind -> nothing"),
        ("multiKueue/queues", ["vision"], "queues: every queue on a worker -> vision only"),
        ("clusterQueues/0/clusters", ["worker-a"], "clusters: every cluster that runs jobs -> worker-a only"),
    ],
)
def test_a_list_that_stands_for_everything_where_it_is_not_there(path: str, value: Any, change: str) -> None:
    classes = [{"name": "urgent", "value": 9}, {"name": "normal", "value": 1}]
    data = changed(fleet_data(), {"workloadPriorityClasses": classes})
    old, new = parse_fleet(data), parse_fleet(changed(data, {path: value}))
    assert [item.text for item in compare_fleets(old, new) if str(item).endswith(change)], compare_fleets(old, new)
    field, _, words = change.partition(": ")
    back = f"{field}: {' -> '.join(reversed(words.split(' -> ')))}"
    assert [entry.text for entry in compare_fleets(new, old) if str(entry).endswith(back)], compare_fleets(new, old)


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES)
def test_differences(change: dict[str, Any], expected: list[str]) -> None:
    old, new = parse_fleet(fleet_data()), parse_fleet(changed(fleet_data(), change))
    result = [f"{item.area} {item}" for item in compare_fleets(old, new)]
    assert len(result) == len(expected), result
    assert all(text.startswith(begin) for text, begin in zip(result, expected, strict=True)), result


def test_gains_one_way_are_losses_the_other() -> None:
    old = parse_fleet(fleet_data())
    new = parse_fleet(changed(fleet_data(), {f"{FIRST_QUOTA}/borrowingLimit": 3, f"{FIRST_QUOTA}/nominalQuota": 9}))
    there = [str(entry) for entry in compare_fleets(old, new)]
    back = [str(item) for item in compare_fleets(new, old)]
    assert [text.replace("gains", "loses").split(" (")[0] for text in there if "gains" in text] == [
        text.split(" (")[0] for text in back if "loses" in text
    ]
    assert any("has no limit any more on borrowing nvidia.com/gpu (3 -> no limit) of l4 on" in text for text in back)


def test_a_team_gains_only_where_its_jobs_may_run() -> None:
    change = {"controller": {}, "teams/0/allowedRegions": ["europe-west4"]}
    old, new = (
        parse_fleet(changed(fleet_data(), {**change, **more})) for more in ({}, {f"{FIRST_QUOTA}/nominalQuota": 6})
    )
    result = [str(item) for item in compare_fleets(old, new) if item.area == "quota"]
    assert result == [
        "clusterQueues[vision]: queue vision gains 2 nvidia.com/gpu (4 -> 6) of l4 on worker-a",
        "clusterQueues[vision]: team-vision gains 2 nvidia.com/gpu (4 -> 6) of l4 on worker-b",
    ]


def test_lists_of_names_say_what_comes_and_goes() -> None:
    sides = [
        parse_fleet(changed(fleet_data(), {"teams/0/namespaces": names}))
        for names in (["a", "b"], ["b", "c"], ["c", "b"])
    ]
    assert [entry.text for entry in compare_fleets(*sides[:2])][1:] == ["adds c and removes a"]
    assert [item.text for item in compare_fleets(*sides[1:])] == ["order: b, c -> c, b"]


def test_limits_that_both_have_are_compared() -> None:
    sides = [parse_fleet(changed(fleet_data(), {f"{FIRST_QUOTA}/borrowingLimit": limit})) for limit in (4, 2)]
    [difference] = compare_fleets(*sides)
    assert difference.text == "team-vision loses borrowing of 2 nvidia.com/gpu (4 -> 2) of l4 on worker-a and worker-b"


def test_teams_that_share_a_queue_lose_together() -> None:
    shared = {"teams/1/localQueues/0/clusterQueue": "vision"}
    sides = [parse_fleet(changed(fleet_data(), {**shared, f"{FIRST_QUOTA}/nominalQuota": n})) for n in (4, 2)]
    [difference] = compare_fleets(*sides)
    assert difference.text.startswith("team-vision and team-language lose 2 nvidia.com/gpu (4 -> 2) of l4")


def test_a_new_worker_and_its_quota() -> None:
    def fourth(data: dict[str, Any]) -> dict[str, Any]:
        data["clusters"].append({"name": "worker-c", "role": "worker", "region": "us-central1"})
        return data

    old, new = parse_fleet(fleet_data()), parse_fleet(fourth(fleet_data()))
    result = [str(item) for item in compare_fleets(old, new)]
    assert result[0] == "clusters[worker-c]: new worker in us-central1"
    assert any("team-vision gains 4 nvidia.com/gpu (0 -> 4), 64 cpu (0 -> 64), 256Gi memory" in text for text in result)
    drain = "drain it first: docs/tasks/drain-a-worker.md"
    gone = f"clusters[worker-c]: worker in us-central1 is deleted, with Kueue and every job on it; {drain}"
    assert (
        str(compare_fleets(new, old)[0])
        == f"{gone}; it is protected: set its deletionProtection to false and apply that first"
    )
    new = parse_fleet({**fourth(fleet_data()), "deletionProtection": False})
    old = parse_fleet({**fleet_data(), "deletionProtection": False})
    assert str(compare_fleets(new, old)[0]) == gone


@pytest.mark.parametrize(
    ("changes", "queues"),
    [
        ({"clusterQueues/0/clusters": ["worker-b"]}, 1),
        ({"multiKueue/workers": ["worker-b"]}, 2),
    ],
    ids=["out of a queue", "out of multiKueue.workers"],
)
def test_a_worker_that_leaves_queues_has_to_be_drained_before(changes: dict[str, Any], queues: int) -> None:
    result = [str(item) for item in compare_fleets(fleet(), fleet(changes)) if item.path == "clusters[worker-a]"]
    names = [queue.name for queue in fleet().cluster_queues][:queues]
    text = f"gets no more jobs of {' and '.join(names)}; drain it first: docs/tasks/drain-a-worker.md"
    assert result == [f"clusters[worker-a]: {text}"]
    back = compare_fleets(fleet(changes), fleet())
    assert not [entry for entry in back if "drain" in entry.text]


def test_the_same_effect_in_other_words_is_said() -> None:
    other = changed(fleet_data(), {f"{FIRST_QUOTA}/perCluster": {"worker-b": {"nominalQuota": 4}}})
    [difference] = compare_fleets(parse_fleet(fleet_data()), parse_fleet(other))
    assert str(difference) == "written in another way, with the same effect"


@settings(max_examples=examples(25), deadline=None)
@given(fleet_files(), fleet_files())
def test_whatever_differs_is_said_in_words(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Nothing is said of equal fleets; of others, no JSON, nothing twice, and each side of an arrow is another."""
    fleet = parse_fleet(one)
    assert compare_fleets(fleet, parse_fleet(one)) == []
    # One stack, so that consequences are compared too.
    result = compare_fleets(fleet, parse_fleet({**other, "name": one["name"], "project": one["project"]}))
    for difference in result:
        words = re.sub("`[^`]*`", "", difference.text)
        assert not re.search(r"[{}\"]|(?<!\w)\[|True|False", words), difference
        before, arrow, after = difference.text.rpartition(": ")[2].partition(" -> ")
        assert not arrow or before != after
    assert len({str(difference) for difference in result}) == len(result)


@settings(max_examples=examples(25), deadline=None)
@given(fleet_files(everything=True), st.data())
def test_no_field_changes_unsaid(data: dict[str, Any], choice: st.DataObject) -> None:
    """A field that is left out, of any entry, shows; unless its default is the same, or what it does."""
    paths = [path for path in leaves(data) if path[0] not in ("name", "project")]
    path = choice.draw(st.sampled_from(paths))
    without = copy.deepcopy(data)
    here: Any = without
    for step in path[:-1]:
        here = here[step]
    del here[path[-1]]
    try:
        sides = parse_fleet(data), parse_fleet(without)
    except SpecError:
        return
    result = compare_fleets(*sides)
    assert bool(result) == (sides[0] != sides[1])
    same_effect = [item for item in result if not item.path]
    if same_effect:
        assert render_fleet(sides[0]) == render_fleet(sides[1])
        assert [sides[0].node_pools_on(name) for name in sides[0].cluster_names] == [
            sides[1].node_pools_on(name) for name in sides[1].cluster_names
        ]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in the data, but items of lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(value, dict):
            yield (*path, key)
        yield from leaves(item, (*path, key))


def test_quotas_of_windows_are_told_of_the_time_in_which_they_hold() -> None:
    window = {"name": "night", "start": "2026-12-01T20:00:00Z", "duration": "10h", "days": ["Monday"]}

    def at_night(amount: int | None) -> Any:
        during = {} if amount is None else {f"{FIRST_QUOTA}/during": {"night": {"nominalQuota": amount}}}
        section = {"image": "example.com/controller:1", "quotaWindows": [window]}
        return parse_fleet(changed(fleet_data(), {"controller": section, **during}))

    def told(old: Any, new: Any) -> list[str]:
        return [str(item) for item in compare_fleets(old, new) if item.area == "quota"]

    where = "nvidia.com/gpu (2 -> 6) of l4 on worker-a and worker-b while night is open"
    assert told(at_night(2), at_night(6)) == [f"clusterQueues[vision]: team-vision gains 4 {where}"]
    assert told(at_night(None), at_night(4)) == [
        "clusterQueues[vision]: windows of its quotas: none -> night, with the same amounts"
    ]
