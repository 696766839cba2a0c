"""The most that queues can have, against what the admission core makes of the same fleet's objects."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.fleet_file.builders import changed, fleet_data, quota

from kueue_admission.decide.scheduler.cache import Cache, NoPlaces
from kueue_admission.read.kueue_objects import parse_objects
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.check.quota_amounts import most_quota
from kueue_fleet.objects.render import render_cluster

GPU = "nvidia.com/gpu"
TREE = ["root", "left", "right", "leaf"]
PARENTS = {"left": "root", "right": "root", "leaf": "left"}
AMOUNTS = st.integers(0, 20)
LIMITS = st.fixed_dictionaries({}, optional={"borrowingLimit": AMOUNTS, "lendingLimit": AMOUNTS})


def groups_of(flavors: dict[str, tuple[int, dict[str, int]]]) -> list[dict[str, Any]]:
    return [
        {
            "coveredResources": [GPU],
            "flavors": [
                {"name": name, "resources": [{**quota(GPU, nominal), **limits}]}
                for name, (nominal, limits) in flavors.items()
            ],
        }
    ]


QUOTAS = st.fixed_dictionaries({name: st.tuples(AMOUNTS, LIMITS) for name in ("l4", "t4")})


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    """A manager, two workers, and queues anywhere in a tree of cohorts, one of them without any."""
    cohorts = []
    for name in TREE:
        cohort: dict[str, Any] = {"name": name, **({"parentName": PARENTS[name]} if name in PARENTS else {})}
        if draw(st.booleans()):
            cohort["resourceGroups"] = groups_of(draw(QUOTAS))
            if name == "root":
                cohort["resourceGroups"] = _without_limits(cohort["resourceGroups"])
        cohorts.append(cohort)
    queues = []
    for index in range(draw(st.integers(1, 5))):
        above = draw(st.sampled_from([*TREE, "undeclared", None]))
        given_groups = groups_of(draw(QUOTAS))
        queue = {"name": f"queue-{index}", "namespaceSelector": {}, "resourceGroups": given_groups}
        if above is None:
            queue["resourceGroups"] = _without_limits(given_groups)
        else:
            queue["cohortName"] = above
            _lend_at_most_nominal(given_groups)
        queues.append(queue)
    return changed(
        fleet_data(),
        {
            "cohorts": cohorts,
            "clusterQueues": queues,
            "admissionChecks": [],
            "teams": [],
            "localQueues": [],
        },
    )


def _without_limits(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for flavor in groups[0]["flavors"]:
        flavor["resources"] = [quota(GPU, flavor["resources"][0]["nominalQuota"])]
    return groups


def _lend_at_most_nominal(groups: list[dict[str, Any]]) -> None:
    for flavor in groups[0]["flavors"]:
        amounts = flavor["resources"][0]
        if "lendingLimit" in amounts:
            amounts["lendingLimit"] = min(amounts["lendingLimit"], amounts["nominalQuota"])


@given(fleets())
def test_as_the_admission_core_has_it(data: dict[str, Any]) -> None:
    fleet = parse_fleet(data)
    for cluster in fleet.cluster_names:
        objects = parse_objects(render_cluster(fleet, cluster)).objects
        cache = Cache(objects, NoPlaces())
        expected: dict[str, int] = {}
        for name, node in cache.queues.items():
            ids = [fr for fr in node.nominal if cache.ids.names[fr][1] == GPU]
            expected[name] = max(node.potential[fr] for fr in ids)
        result = {name: amounts[GPU].value for name, amounts in most_quota(fleet, cluster).items()}
        assert result == expected


def test_cohorts_that_go_round_in_a_circle_end() -> None:
    data = changed(
        fleet_data(),
        {"cohorts": [{"name": "research", "parentName": "other"}, {"name": "other", "parentName": "research"}]},
    )
    assert most_quota(FleetSpec.model_validate(data, by_alias=True, by_name=False), "worker-a")["vision"][GPU].value > 0
