"""The page for teams as objects: what it may do, who reaches it, and how it runs."""

from __future__ import annotations

from typing import Any

import yaml
from tests.fleet_file.check.test_fleet_page import GROUP, IAP, data

from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.fleet_page import VIEWER, PageConfiguration, render_fleet_page
from kueue_fleet.objects.grants import RBAC_GROUP
from small_fleets import MANAGER


def rendered(page: Any, cluster: str = MANAGER) -> dict[str, Any]:
    return {item["kind"]: item for item in render_fleet_page(parse_fleet(data(page)), cluster)}


def pod(page: Any) -> dict[str, Any]:
    result: dict[str, Any] = rendered(page)["Deployment"]["spec"]["template"]["spec"]
    return result


def test_it_is_on_the_manager_alone_beside_the_controller() -> None:
    access = "Namespace ServiceAccount Role RoleBinding NetworkPolicy"
    assert " ".join(rendered({})) == f"{access} ConfigMap Deployment Service"
    assert rendered({}, "worker-us-east4") == {}
    fleet = parse_fleet(data({}))
    result = [item for item in render_cluster(fleet, MANAGER) if item["kind"] == "Deployment"]
    images = {entry["spec"]["template"]["spec"]["containers"][0]["image"] for entry in result}
    assert [each["metadata"]["name"] for each in result] == ["kueue-fleet-controller", PAGE_NAME]
    assert images == {"example.com/controller:1"}


def test_by_tokens_its_account_has_no_rights_and_nothing_connects_to_it() -> None:
    result = rendered({})
    assert not {"ClusterRole", "ClusterRoleBinding", "Ingress"} & result.keys()
    assert [(item["kind"], item["name"]) for item in result["RoleBinding"]["subjects"]] == [
        ("Group", GROUP),
        ("User", "bob@example.com"),
    ]
    assert result["NetworkPolicy"]["spec"]["ingress"] == []
    assert "Role" not in rendered({"iap": IAP})


def test_behind_iap_it_may_impersonate_members_of_teams_and_nobody_else() -> None:
    assert rendered({"iap": IAP})["ClusterRole"]["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["users"],
            "verbs": ["impersonate"],
            "resourceNames": [VIEWER, "bob@example.com"],
        },
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": [GROUP]},
    ]
    subjects = [
        subject
        for item in render_cluster(parse_fleet(data({"iap": IAP})), MANAGER)
        if item["kind"].endswith("RoleBinding") or item["kind"] == "RoleBinding"
        for subject in item["subjects"]
    ]
    assert {"apiGroup": RBAC_GROUP, "kind": "User", "name": VIEWER} not in subjects


def test_behind_iap_only_googles_front_ends_reach_it_and_only_by_https() -> None:
    result = rendered({"iap": IAP})
    [rule] = result["NetworkPolicy"]["spec"]["ingress"]
    assert [item["ipBlock"]["cidr"] for item in rule["from"]] == ["35.191.0.0/16", "130.211.0.0/22"]
    assert result["BackendConfig"]["spec"]["iap"] == {"enabled": True}
    assert result["Ingress"]["metadata"]["annotations"]["kubernetes.io/ingress.allow-http"] == "false"
    assert result["Ingress"]["spec"]["rules"][0]["host"] == result["ManagedCertificate"]["spec"]["domains"][0]
    assert PAGE_NAME in result["Service"]["metadata"]["annotations"]["cloud.google.com/backend-config"]


def test_its_pod_is_restricted_and_has_no_secret() -> None:
    for page in ({}, {"iap": IAP}):
        result = pod(page)
        [container] = result["containers"]
        assert container["command"] == ["python3", "-m", "kueue_fleet.page"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert result["securityContext"]["runAsNonRoot"]
        assert result["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert [list(item) for item in result["volumes"]] == [["name", "configMap"]]
        assert "Secret" not in rendered(page)
        labels = rendered(page)["Namespace"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_its_configuration_is_what_the_file_says() -> None:
    text = rendered({"iap": IAP})["ConfigMap"]["data"]["config.yaml"]
    result = PageConfiguration.model_validate(yaml.safe_load(text))
    assert (result.fleet, result.cluster, result.namespaces) == ("lab", MANAGER, ("shared", "team-a"))
    assert result.users == ("bob@example.com",)
    assert result.page == parse_fleet(data({"iap": IAP})).fleet_page


def test_another_configuration_is_another_pod() -> None:
    marks = [rendered(page)["Deployment"]["spec"]["template"]["metadata"]["annotations"] for page in ({}, {"iap": IAP})]
    assert marks[0] != marks[1]


def test_a_change_of_who_sees_it_is_said() -> None:
    without, by_token, behind_iap = (parse_fleet(data(page)) for page in (None, {}, {"iap": IAP}))
    assert [str(item)[:14] for item in compare_fleets(without, by_token)] == ["fleetPage: new"]
    assert {entry.path.partition("[")[0] for entry in compare_fleets(by_token, behind_iap)} == {"fleetPage.iap"}
