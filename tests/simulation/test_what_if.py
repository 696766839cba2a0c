from __future__ import annotations

import pytest
from tests.simulation.objects import cluster, documents, job

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_admission.simulate.what_if import apply_changes, apply_to_documents, differences, parse_change

FLEET = {"clusterQueues": [{"name": "a.b", "groups": [{"quota": {"nvidia.com/gpu": 4}}]}], "kueue": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clusterQueues[a.b].groups[0].quota[nvidia.com/gpu]=6", {"nvidia.com/gpu": 6}),
        ("clusterQueues[0].groups[0].quota.new=2", {"nvidia.com/gpu": 4, "new": 2}),
        ("clusterQueues[a.b].groups[0].quota={x: 1}", {"x": 1}),
    ],
)
def test_value_is_put_at_the_path(text: str, expected: object) -> None:
    changed = apply_changes(FLEET, [parse_change(text)])
    assert changed["clusterQueues"][0]["groups"][0]["quota"] == expected
    assert FLEET["clusterQueues"] == [{"name": "a.b", "groups": [{"quota": {"nvidia.com/gpu": 4}}]}]


def test_sections_that_are_empty_are_opened() -> None:
    assert apply_changes(FLEET, [parse_change("kueue.configuration.x=1")])["kueue"] == {"configuration": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusterQueues[c].x=1", "there is no c; write one of a.b"),
        ("clusterQueues[a.b].gone.x=1", "there is no gone; there are name, groups"),
        ("clusterQueues", "is not path=value"),
        ("[0]=1", "is not path=value"),
        ("a=[", "bracket"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(SimulationError) as refused:
        apply_changes(FLEET, [parse_change(text)])
    assert said in str(refused.value)


def test_difference_of_more_quota() -> None:
    given = documents(*cluster(), job("a", 0, "100"), job("b", 10, "5"))
    quota = "resourceGroups[0].flavors[rf].resources[cpu].nominalQuota"
    changes = [parse_change(f"ClusterQueue[cq].spec.{quota}=4")]
    before = prepare_objects(read_raw(given), Delays()).run()
    after = prepare_objects(read_raw(apply_to_documents(given, changes)), Delays()).run()
    result = differences(before, after)
    assert [(d["name"], d["before"]["admittedAt"], d["after"]["admittedAt"]) for d in result] == [("b", 101, 10)]


def test_object_that_is_not_there() -> None:
    with pytest.raises(SimulationError, match="there is no such object"):
        apply_to_documents(documents(*cluster()), [parse_change("ClusterQueue[gone].spec.stopPolicy=Hold")])
