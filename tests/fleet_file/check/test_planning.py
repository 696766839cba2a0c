"""`plan.mayChange`: what is refused of it, and that it changes nothing that is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_fleet.fleet_file import ClusterEntry, FleetSpec, check_fleet
from kueue_fleet.fleet_file.model.planning import MayChange, PlanLimits
from kueue_fleet.fleet_file.parse import parse_fleet, read_fleet
from kueue_fleet.objects import objects_on

EXAMPLE = Path(__file__).parents[3] / "examples" / "plan" / "fleet.yaml"
COUNT = "reservations[l4].count"
NODES = "nodePools[l4-reserved].nodeCount"
MACHINE = "nodePools[l4-ondemand].machineType"


def fleet(*may_change: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = load_yaml(EXAMPLE.read_text(), "fleet.yaml")
    return {**data, "plan": {"mayChange": list(may_change)}}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"paths": ["reservations[l5].count"], "least": 1, "most": 8}, "there is no l5; write one of l4 in brackets"),
        ({"paths": ["reservations.count"], "least": 1, "most": 8}, "there is no count; write one of l4 in brackets"),
        ({"paths": ["reservations[l4].count.x"], "least": 1, "most": 8}, "there is no x; end the path before it"),
        ({"paths": ["=6"], "least": 1, "most": 8}, '"=6" is not a path'),
        ({"paths": ["name"], "least": 0, "most": 8}, "name is not a whole number in the file"),
        ({"paths": ["deletionProtection"], "least": 0, "most": 1}, "is not a whole number in the file"),
        ({"paths": [COUNT], "least": 7, "most": 8}, "reservations[l4].count is 6 in the file, which is none of the"),
        ({"paths": [f"{COUNT}*4"], "least": 1, "most": 8}, "is 6 in the file, which is none of the levels"),
        ({"paths": [f"{COUNT}*0"], "least": 1, "most": 8}, "*0 is not a factor"),
        ({"paths": [COUNT, f"{NODES}*2"], "least": 1, "most": 8}, "are of different levels in the file"),
        ({"paths": [COUNT], "least": 8, "most": 1}, "8 is more than most, 1"),
        ({"paths": [COUNT], "least": 0, "most": 10_000}, "gives more than 10,000 levels"),
        ({"paths": [COUNT]}, "has no limits"),
        ({"paths": [], "least": 1, "most": 8}, "is empty"),
        ({"paths": [COUNT, COUNT], "least": 1, "most": 8}, "is listed twice"),
        ({"paths": [MACHINE], "values": ["g2-standard-24"], "most": 8}, "is set, and values are"),
        ({"paths": [MACHINE], "values": ["g2-standard-48"]}, "g2-standard-24 in the file, which is none of the levels"),
        ({"paths": [MACHINE], "values": ["g2-standard-24", "a: b"]}, "'a: b' is not a name"),
        ({"paths": [COUNT], "values": ["six"]}, "is not a text of the file"),
    ],
)
def test_refused(entry: dict[str, Any], told: str) -> None:
    problems = [str(problem) for problem in read_fleet(fleet(entry)).problems]
    assert len(problems) == 1
    assert "plan.mayChange[0]" in problems[0]
    assert told in problems[0]


def test_a_value_is_in_one_entry() -> None:
    entry = {"paths": [COUNT], "least": 1, "most": 8}
    problems = read_fleet(fleet(entry, entry)).problems
    assert [problem.path for problem in problems] == ["plan.mayChange[1]"]


def test_nothing_is_made_of_it() -> None:
    with_limits = parse_fleet(
        fleet({"paths": [COUNT], "least": 1, "most": 8}, {"paths": [MACHINE], "values": ["g2-standard-24"]})
    )
    without = parse_fleet(fleet())
    for cluster in without.cluster_names:
        assert objects_on(with_limits, cluster) == objects_on(without, cluster)


def test_a_fleet_in_python_is_checked_too() -> None:
    limits = PlanLimits(may_change=[MayChange(paths=["clusters[one].region"], least=0, most=4)])
    result = FleetSpec(
        "a", "a-project", clusters=[ClusterEntry(name="one", role="standalone", region="us-central1")], plan=limits
    )
    assert "plan.mayChange[0]" in {problem.path for problem in check_fleet(result)}


def test_limits_that_contradict_each_other_are_refused_in_python() -> None:
    with pytest.raises(SpecError, match="8 is more than most, 1"):
        MayChange(paths=[COUNT], least=8, most=1)
