"""What others have made in the namespaces of a team is in its entry, where the entry has a field that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from kueue_fleet.adopt import AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.fleet import Adopted

TEAM_LABEL = "kueue-fleet.dev/team"
TEAM = {TEAM_LABEL: "vision"}
EDIT = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "q"},
    "spec": {"namespaceSelector": {}},
}


def there(kind: str, name: str = "theirs", namespace: str = "vision", **fields: Any) -> dict[str, Any]:
    """An object that no fleet has made."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **fields}


def quota(name: str = "theirs", namespace: str = "vision", **spec: Any) -> dict[str, Any]:
    return there("ResourceQuota", name, namespace, spec=spec)


def limit_range(*items: Mapping[str, Any]) -> dict[str, Any]:
    return there("LimitRange", spec={"limits": list(items)})


def binding(*subjects: tuple[str, str], **role: str) -> dict[str, Any]:
    people = [{"kind": kind, "name": name} for kind, name in subjects]
    return there("RoleBinding", roleRef={**EDIT, **role}, subjects=people)


def adopted(*objects: Mapping[str, Any], labels: Mapping[str, str] = TEAM, namespaces: int = 1) -> Adopted:
    """A platform of one cluster, whose team has the namespace `vision`, and `vision-2`."""
    given = [QUEUE, *objects]
    for name in ("vision", "vision-2")[:namespaces]:
        given.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels}}})
        queue = there("LocalQueue", "gpu", name, spec={"clusterQueue": "q"})
        given.append({**queue, "apiVersion": "kueue.x-k8s.io/v1beta2"})
    identity = Identity("lab", "my-project", date(2027, 2, 1), date(2026, 11, 21), default_kueue=True)
    return adopt_fleet([AdoptedCluster("one", "us-east4", given, (), "Autopilot")], identity)


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        (
            [quota(hard={"pods": "100", "count/jobs.batch": "50"})],
            "resourceQuota",
            {"pods": 100, "count/jobs.batch": 50},
        ),
        ([quota("a", hard={"pods": "100"}), quota("b", hard={"pods": "20"})], "resourceQuota", {"pods": 20}),
        (
            [limit_range({"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}})],
            "limitRange",
            {"default": {"cpu": 1}, "defaultRequest": {"cpu": "500m"}},
        ),
        ([binding(("Group", "vision@example.com"))], "members", ["group:vision@example.com"]),
        ([binding(("User", "me@example.com"), name="admin")], "members", ["user:me@example.com"]),
    ],
)
def test_what_an_entry_can_say_is_in_it(given: list[dict[str, Any]], field: str, value: Any) -> None:
    [team] = adopted(*given).data["teams"]
    result = team[field]
    if field == "resourceQuota":
        result = {name: int(amount) for name, amount in result.items()}
    if field == "limitRange":
        value = {name: {item: str(amount) for item, amount in amounts.items()} for name, amounts in value.items()}
    assert result == value


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (quota(hard={"pods": "1"}, scopes=["BestEffort"]), "ResourceQuota"),
        (quota(hard={"podz": "1"}), "ResourceQuota"),
        (limit_range({"type": "Pod", "max": {"cpu": "4"}}), "LimitRange"),
        (limit_range({"type": "Container", "maxLimitRequestRatio": {"cpu": "4"}}), "LimitRange"),
        (limit_range({"type": "Container", "max": {"cpu": "4"}}, {"type": "Pod", "max": {"cpu": "4"}}), "LimitRange"),
        (binding(("Group", "vision@example.com"), name="view"), "RoleBinding"),
        (binding(("Group", "vision@example.com"), kind="Role"), "RoleBinding"),
        (binding(("ServiceAccount", "robot")), "RoleBinding"),
        (binding(("Group", "system:authenticated")), "RoleBinding"),
    ],
)
def test_what_it_cannot_say_is_named(given: dict[str, Any], name: str) -> None:
    result = adopted(given)
    assert result.data["teams"] == [
        {"name": "vision", "podSecurity": "privileged", "localQueues": [{"name": "gpu", "clusterQueue": "q"}]}
    ]
    left = f"{name} vision/theirs on one is left out: a fleet file has no place for it"
    assert [note for note in result.notes if note.startswith(left)]


@pytest.mark.parametrize("second", [{}, {"pods": "3"}])
def test_what_one_namespace_of_a_team_has_is_not_for_all(second: dict[str, str]) -> None:
    result = adopted(quota(hard={"pods": "1"}), quota(namespace="vision-2", hard=second), namespaces=2)
    assert "resourceQuota" not in result.data["teams"][0]


def test_who_may_submit_in_one_namespace_is_no_member_of_all() -> None:
    result = adopted(binding(("Group", "vision@example.com")), namespaces=2)
    assert "members" not in result.data["teams"][0]


def test_limits_that_the_fleet_has_too_are_there_twice() -> None:
    notes = adopted(quota(hard={"pods": "100"})).notes
    assert (
        "ResourceQuota vision/theirs on one is there beside the fleet's own, which says what it says: delete it once "
        "that is made" in notes
    )


def test_of_two_quotas_the_larger_limit_is_there_beside_too() -> None:
    notes = adopted(quota("a", hard={"pods": "100"}), quota("b", hard={"pods": "20"})).notes
    assert [note for note in notes if "vision/b on one is there beside" in note]


def test_a_namespace_without_a_team_says_how_it_gets_one() -> None:
    result = adopted(quota(hard={"pods": "1"}), labels={})
    assert "teams" not in result.data
    assert [note for note in result.notes if "of vision are in the file once the label kueue-fleet.dev/team" in note]
    left_out = [note for note in result.notes if " left out" in note and " vision/" in note]
    assert left_out
    assert all("left out, as its namespace names no team" in note for note in left_out)


def test_a_queue_of_its_own_in_a_teams_namespace_asks_for_no_team() -> None:
    own = {**there("LocalQueue", "own", spec={"clusterQueue": "q"}), "apiVersion": "kueue.x-k8s.io/v1beta2"}
    result = adopted(quota(hard={"pods": "1"}), own, namespaces=2)
    assert result.data["localQueues"] == [{"namespace": "vision", "name": "own", "clusterQueue": "q"}]
    assert not [note for note in result.notes if TEAM_LABEL in note]
