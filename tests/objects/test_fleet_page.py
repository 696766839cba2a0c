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
    return {each["kind"]: each for each in render_fleet_page(parse_fleet(data(page)), cluster)}


def pod(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = rendered(page)["Deployment"]["spec"]["template"]["spec"]
    return found


def test_it_is_on_the_manager_alone_beside_the_controller() -> None:
    access = "Namespace ServiceAccount Role RoleBinding NetworkPolicy"
    assert " ".join(rendered({})) == f"{access} ConfigMap Deployment Service"
    assert rendered({}, "worker-us-east4") == {}
    fleet = parse_fleet(data({}))
    found = [each for each in render_cluster(fleet, MANAGER) if each["kind"] == "Deployment"]
    images = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found}
    assert [each["metadata"]["name"] for each in found] == ["kueue-fleet-controller", PAGE_NAME]
    assert images == {"example.com/controller:1"}


def test_by_tokens_its_account_has_no_rights_and_nothing_connects_to_it() -> None:
    found = rendered({})
    assert not {"ClusterRole", "ClusterRoleBinding", "Ingress"} & found.keys()
    assert [(each["kind"], each["name"]) for each in found["RoleBinding"]["subjects"]] == [
        ("Group", GROUP),
        ("User", "bob@example.com"),
    ]
    assert found["NetworkPolicy"]["spec"]["ingress"] == []
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
        for each in render_cluster(parse_fleet(data({"iap": IAP})), MANAGER)
        if each["kind"].endswith("RoleBinding") or each["kind"] == "RoleBinding"
        for subject in each["subjects"]
    ]
    assert {"apiGroup": RBAC_GROUP, "kind": "User", "name": VIEWER} not in subjects


def test_behind_iap_only_googles_front_ends_reach_it_and_only_by_https() -> None:
    found = rendered({"iap": IAP})
    [rule] = found["NetworkPolicy"]["spec"]["ingress"]
    assert [each["ipBlock"]["cidr"] for each in rule["from"]] == ["35.191.0.0/16", "130.211.0.0/22"]
    assert found["BackendConfig"]["spec"]["iap"] == {"enabled": True}
    assert found["Ingress"]["metadata"]["annotations"]["kubernetes.io/ingress.allow-http"] == "false"
    assert found["Ingress"]["spec"]["rules"][0]["host"] == found["ManagedCertificate"]["spec"]["domains"][0]
    assert PAGE_NAME in found["Service"]["metadata"]["annotations"]["cloud.google.com/backend-config"]


def test_its_pod_is_restricted_and_has_no_secret() -> None:
    for page in ({}, {"iap": IAP}):
        found = pod(page)
        [container] = found["containers"]
        assert container["command"] == ["python3", "-m", "kueue_fleet.page"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert found["securityContext"]["runAsNonRoot"]
        assert found["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert [list(each) for each in found["volumes"]] == [["name", "configMap"]]
        assert "Secret" not in rendered(page)
        labels = rendered(page)["Namespace"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_its_configuration_is_what_the_file_says() -> None:
    text = rendered({"iap": IAP})["ConfigMap"]["data"]["config.yaml"]
    found = PageConfiguration.model_validate(yaml.safe_load(text))
    assert (found.fleet, found.cluster, found.namespaces) == ("lab", MANAGER, ("shared", "team-a"))
    assert found.users == ("bob@example.com",)
    assert found.page == parse_fleet(data({"iap": IAP})).fleet_page


def test_another_configuration_is_another_pod() -> None:
    marks = [rendered(page)["Deployment"]["spec"]["template"]["metadata"]["annotations"] for page in ({}, {"iap": IAP})]
    assert marks[0] != marks[1]


def test_a_change_of_who_sees_it_is_said() -> None:
    without, by_token, behind_iap = (parse_fleet(data(page)) for page in (None, {}, {"iap": IAP}))
    assert [str(each)[:14] for each in compare_fleets(without, by_token)] == ["fleetPage: new"]
    assert {each.path.partition("[")[0] for each in compare_fleets(by_token, behind_iap)} == {"fleetPage.iap"}
