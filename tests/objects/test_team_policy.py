"""What the policy on the jobs of a team says; that a real API server refuses so is in tests/engines/test_teams.py."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems, standalone_data

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.objects.team_policy import render_team_policy

CLASSES = {
    "priorityClasses": [
        {"name": "pods-low", "value": 1, "globalDefault": True},
        {"name": "pods-high", "value": 2},
    ],
    "workloadPriorityClasses": [
        {"name": "low", "value": 1},
        {"name": "middle", "value": 5},
        {"name": "high", "value": 9},
        {"name": "top", "value": 9},
    ],
}


def fleet(changes: dict[str, Any] | None = None) -> FleetSpec:
    return parse_fleet(changed(fleet_data(), changes or {}))


def policy(spec: FleetSpec, cluster: str = "manager", team: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = render_team_policy(spec, spec.teams[team], cluster)[0]["spec"]
    return result


def variable(spec: dict[str, Any], name: str) -> str:
    return next(str(item["expression"]) for item in spec["variables"] if item["name"] == name)


def test_it_is_where_members_submit() -> None:
    spec = fleet()
    assert render_team_policy(spec, spec.teams[0], "worker-a") == []
    result, binding = render_team_policy(spec, spec.teams[0], "manager")
    name = "kueue-fleet-team-team-vision"
    assert result["metadata"]["name"] == binding["metadata"]["name"] == name
    assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"]}
    assert result["spec"]["failurePolicy"] == "Fail"
    selector = result["spec"]["matchConstraints"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kueue-fleet.dev/team": "team-vision"}}
    alone = parse_fleet(changed(standalone_data(), {"teams": [{"name": "one"}]}))
    assert render_team_policy(alone, alone.teams[0], "only")


def test_it_is_for_every_kind_that_kueue_manages() -> None:
    frameworks = ["jobset.x-k8s.io/jobset", "ray.io/rayjob", "ray.io/raycluster", "pod"]
    spec = policy(fleet({"kueue/configuration/integrations": {"frameworks": frameworks}}))
    rules = [item for item in spec["matchConstraints"]["resourceRules"] if item["operations"] == ["CREATE", "UPDATE"]]
    assert [(rule["apiGroups"], rule["resources"]) for rule in rules] == [
        (["jobset.x-k8s.io"], ["jobsets"]),
        (["ray.io"], ["rayjobs", "rayclusters"]),
        ([""], ["pods"]),
        ([""], ["services"]),
    ]


def test_deletions_are_of_jobs_whose_pods_have_no_workloads_of_their_own() -> None:
    frameworks = ["batch/job", "pod", "statefulset", "ray.io/rayjob"]
    rules = policy(fleet({"kueue/configuration/integrations": {"frameworks": frameworks}}))["matchConstraints"]
    deleted = [item["resources"] for item in rules["resourceRules"] if item["operations"] == ["DELETE"]]
    assert deleted == [["jobs"], ["rayjobs"]]


def test_without_a_standard_pods_may_be_as_they_like() -> None:
    names = {entry["name"] for entry in policy(fleet({"teams/0/podSecurity": "privileged"}))["variables"]}
    assert "broken" not in names
    assert "broken" in {item["name"] for item in policy(fleet())["variables"]}


def test_queues_are_those_of_the_teams_namespaces() -> None:
    assert variable(policy(fleet()), "queues") == "['main']"
    spec = fleet(
        {
            "teams/0/namespaces": ["one", "two"],
            "localQueues/+": {"namespace": "two", "name": "guest", "clusterQueue": "language"},
        }
    )
    assert variable(policy(spec), "queues") == "{'one': ['main'], 'two': ['guest', 'main']}[request.namespace]"


def test_regions_only_of_teams_that_are_kept_to_some() -> None:
    paths = [item["message"].partition(":")[0] for item in policy(fleet())["validations"]]
    label = "metadata.labels[kueue-fleet.dev/regions]"
    assert label not in paths
    kept = policy(fleet({"teams/0/allowedRegions": ["us-east4", "europe-west4"]}))
    assert label in [item["message"].partition(":")[0] for item in kept["validations"]]
    assert variable(kept, "regions") == "['europe-west4', 'us-east4']"


def test_groups_of_regions_count_where_every_one_is_allowed() -> None:
    controller = {"image": "example.com/c:1", "regionGroups": {"here": ["us-east4"], "wide": ["us-east4", "us-west1"]}}
    spec = fleet(
        {
            "controller": controller,
            "multiKueue/dispatcher": "External",
            "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
            "teams/0/allowedRegions": ["us-east4"],
        }
    )
    assert variable(policy(spec), "regions") == "['here', 'us-east4']"


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        (None, {"low", "middle", "pods-low"}),
        (["top", "pods-high"], {"top", "pods-high", "pods-low"}),
        ([], {"pods-low"}),
    ],
)
def test_priority_classes_of_a_team(given: list[str] | None, allowed: set[str]) -> None:
    spec = fleet({**CLASSES, **({} if given is None else {"teams/0/allowedPriorityClasses": given})})
    assert set(allowed_priority_classes(spec, spec.teams[0])) == allowed


def test_classes_of_one_value_have_no_highest() -> None:
    spec = fleet()
    assert allowed_priority_classes(spec, spec.teams[0]) == ("urgent", "batch")


def test_classes_that_are_not_there_are_refused() -> None:
    result = problems(changed(fleet_data(), {"teams/0/allowedPriorityClasses": ["urgent", "batch", "urgnet"]}))
    assert result == [
        "teams[team-vision].allowedPriorityClasses[2]: there is no priority class urgnet; did you mean urgent?"
    ]
    result = problems(changed(fleet_data(), {"teams/0/allowedPriorityClasses": ["batch", "batch"]}))
    assert result == [
        "teams[team-vision].allowedPriorityClasses[1]: batch is listed twice; list each priority class once"
    ]


GPUS_ALONE = {
    "kueue/configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}},
    "clusterQueues/1/resourceGroups": [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{"name": "l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}],
        }
    ],
}
COUNTED = "object.kind in ['Job', 'JobSet'] ? {}"


def counted(changes: dict[str, Any], team: int = 1) -> str:
    spec = policy(fleet(changes), team=team)
    result = [str(item["expression"]) for item in spec["variables"] if item["name"] == "counted"]
    rules = [item for item in spec["validations"] if item["message"].startswith("resources of its pods")]
    assert len(result) == len(rules)
    return "".join(result)


def test_a_job_on_the_manager_requests_something_that_its_queue_counts() -> None:
    assert counted(GPUS_ALONE) == COUNTED.format("{'main': ['nvidia.com/gpu']} : {}")


@pytest.mark.parametrize(
    "change",
    [
        {"kueue/version": "0.17.1", "kueue/configuration": {}},
        {"teams/1/limitRange": {"defaultRequest": {"nvidia.com/gpu": 0}}},
        {
            "clusterQueues/1/resourceGroups": [
                {
                    "coveredResources": ["pods"],
                    "flavors": [{"name": "l4", "resources": [{"name": "pods", "nominalQuota": 8}]}],
                }
            ]
        },
    ],
    ids=["an older Kueue", "a LimitRange", "a queue that counts pods"],
)
def test_any_job_where_something_of_it_counts_always(change: dict[str, Any]) -> None:
    assert counted(GPUS_ALONE | change) == ""


def test_inputs_of_transformations_count() -> None:
    result = [{"input": "example.com/mig", "strategy": "Replace", "outputs": {"nvidia.com/gpu": "250m"}}]
    resources = {"quotaCheckStrategy": "IgnoreUndeclared", "transformations": result}
    results = counted(GPUS_ALONE | {"kueue/configuration": {"resources": resources}})
    assert results == COUNTED.format("{'main': ['example.com/mig', 'nvidia.com/gpu']} : {}")
