"""Accounts, access and guards of teams."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data

from kueue_fleet.fleet_file import FleetSpec, parse_fleet, team_account_address
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects import render_namespaces, render_team_objects


def fleet(team: dict[str, Any]) -> FleetSpec:
    return parse_fleet(changed(fleet_data(), {f"teams/0/{key}": value for key, value in team.items()}))


def objects(team: dict[str, Any], cluster: str = "manager") -> dict[str, Any]:
    """By kind."""
    spec = fleet(team)
    return {item["kind"]: item for item in render_team_objects(spec, spec.teams[0], cluster)}


def test_accounts_and_rights_only_where_they_are_asked_for() -> None:
    isolation = {"ResourceQuota", "NetworkPolicy"}
    assert objects({}).keys() == {*isolation, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert objects({}, "worker-a").keys() == isolation


@pytest.mark.parametrize(
    ("team", "name", "address"),
    [
        ({"serviceAccount": "jobs"}, "jobs", None),
        ({"googleServiceAccount": {}}, "team-vision", "test-fleet-team-vision@my-project.iam.gserviceaccount.com"),
        (
            {"serviceAccount": "jobs", "existingGoogleServiceAccount": "vision@other-1.iam.gserviceaccount.com"},
            "jobs",
            "vision@other-1.iam.gserviceaccount.com",
        ),
    ],
)
def test_service_account(team: dict[str, Any], name: str, address: str | None) -> None:
    result = objects(team)["ServiceAccount"]["metadata"]
    assert (result["name"], result["namespace"]) == (name, "team-vision")
    assert result.get("annotations") == ({WORKLOAD_IDENTITY_ANNOTATION: address} if address else None)


def test_the_address_is_shortened_and_knows_projects_of_domains() -> None:
    spec = fleet({"googleServiceAccount": {}}).model_copy(update={"name": "a-very-long-name-of-a-fleet"})
    address = team_account_address(spec, spec.teams[0])
    assert address is not None
    assert len(address.partition("@")[0]) <= 30
    assert address.startswith("a-very-long-name-of-a-f")
    of_domain = spec.model_copy(update={"project": "example.com:batch-1", "name": "x"})
    assert team_account_address(of_domain, spec.teams[0]) == "x-team-vision@batch-1.example.com.iam.gserviceaccount.com"


def test_members_submit_to_the_manager_and_look_at_workers() -> None:
    members = {"members": ["group:vision@example.com", "user:ann@example.com", "serviceAccount:ci@p.example.com"]}
    manager, worker = objects(members), objects(members, "worker-a")
    assert [(subject["kind"], subject["name"]) for subject in manager["RoleBinding"]["subjects"]] == [
        ("Group", "vision@example.com"),
        ("User", "ann@example.com"),
        ("User", "ci@p.example.com"),
    ]
    assert manager["RoleBinding"]["roleRef"]["name"] == manager["Role"]["metadata"]["name"]

    def verbs(role: dict[str, Any], resource: str) -> set[str]:
        return {verb for rule in role["rules"] if resource in rule["resources"] for verb in rule["verbs"]}

    assert "create" in verbs(manager["Role"], "jobs")
    assert "create" in verbs(manager["Role"], "jobsets")
    assert verbs(worker["Role"], "jobs") == {"get", "list", "watch"}
    for role in (manager["Role"], worker["Role"]):
        assert verbs(role, "workloads") == {"get", "list", "watch"}
        assert verbs(role, "secrets") == verbs(role, "pods/exec") == set()


def rights(changes: dict[str, Any], resource: str, cluster: str = "manager") -> set[str]:
    """What a member may do with a resource: its verbs."""
    data = changed(fleet_data(), {"teams/0/members": ["user:ann@example.com"], **changes})
    spec = parse_fleet(data)
    role = next(item for item in render_team_objects(spec, spec.teams[0], cluster) if item["kind"] == "Role")
    return {verb for rule in role["rules"] if resource in rule["resources"] for verb in rule["verbs"]}


READ = {"get", "list", "watch"}
SUBMIT = READ | {"create", "delete", "patch", "update"}


def test_members_submit_the_kinds_that_kueue_manages_and_no_others() -> None:
    ray = {"kueue/configuration/integrations": {"frameworks": ["jobset.x-k8s.io/jobset", "ray.io/rayjob"]}}
    for resource, verbs in {"jobsets": SUBMIT, "rayjobs": SUBMIT, "jobs": READ, "rayclusters": set()}.items():
        assert rights(ray, resource) == verbs
        assert rights(ray, resource, "worker-a") == verbs & READ
    assert rights({"jobSet": {"enabled": False}}, "jobsets") == set()
    external = {"kueue/configuration/integrations": {"externalFrameworks": ["Flow.v1.example.com"]}}
    assert rights(external, "flows") == SUBMIT


@pytest.mark.parametrize("resource", ["workloads", "provisioningrequests", "events", "pods", "pods/log", "localqueues"])
def test_members_read_what_their_jobs_become(resource: str) -> None:
    assert rights({}, resource) == rights({}, resource, "worker-a") == READ


def test_limits_in_each_namespace() -> None:
    team = {"resourceQuota": {"pods": 500, "services.loadbalancers": 1}, "namespaces": ["one", "two"]}
    spec = fleet(team)
    result = [item for item in render_team_objects(spec, spec.teams[0], "worker-a") if item["kind"] == "ResourceQuota"]
    assert [item["metadata"]["namespace"] for item in result] == ["one", "two"]
    assert result[0]["spec"] == {"hard": {"services.loadbalancers": "1", "services.nodeports": "0", "pods": "500"}}


def test_limit_range_in_each_namespace_of_manager_and_workers() -> None:
    given = {"default": {"cpu": 2, "nvidia.com/gpu": 1}, "defaultRequest": {"cpu": "500m"}}
    spec = fleet({"limitRange": given, "namespaces": ["one", "two"]})
    for cluster in ("manager", "worker-a"):
        result = [item for item in render_team_objects(spec, spec.teams[0], cluster) if item["kind"] == "LimitRange"]
        assert [item["metadata"]["namespace"] for item in result] == ["one", "two"]
        expected = {"default": {"cpu": "2", "nvidia.com/gpu": "1"}, "defaultRequest": {"cpu": "500m"}}
        assert result[0]["spec"] == {"limits": [{"type": "Container", **expected}]}


def test_pods_are_reached_from_the_teams_own_namespaces_and_from_operators() -> None:
    spec = objects({})["NetworkPolicy"]["spec"]
    assert (spec["podSelector"], spec["policyTypes"]) == ({}, ["Ingress"])
    ((own, system),) = [rule["from"] for rule in spec["ingress"]]
    assert own == {"namespaceSelector": {"matchLabels": {"kueue-fleet.dev/team": "team-vision"}}}
    # Of the namespaces without a team, those that run jobs of others are left out.
    assert system["namespaceSelector"]["matchExpressions"] == [
        {"key": "kueue-fleet.dev/team", "operator": "DoesNotExist"},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]},
    ]


def test_a_namespace_has_the_labels_of_the_file_too() -> None:
    labels = {"team-vision": {"workload-type": "ml"}, "default": {"workload-type": "any"}}
    spec = parse_fleet(changed(fleet_data(), {"namespaceLabels": labels}))
    result = {item["metadata"]["name"]: item["metadata"]["labels"] for item in render_namespaces(spec)}
    assert result["team-vision"]["workload-type"] == "ml"
    assert result["default"] == {"workload-type": "any"}


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_namespaces_enforce_a_pod_security_standard(level: str) -> None:
    given = {} if level == "baseline" else {"podSecurity": level}
    rendered = {item["metadata"]["name"]: item["metadata"]["labels"] for item in render_namespaces(fleet(given))}
    assert rendered["team-vision"] == {
        "kueue-fleet.dev/team": "team-vision",
        "pod-security.kubernetes.io/enforce": level,
        "pod-security.kubernetes.io/warn": "restricted",
    }
    assert {labels["pod-security.kubernetes.io/enforce"] for labels in rendered.values()} <= {level, "baseline"}
