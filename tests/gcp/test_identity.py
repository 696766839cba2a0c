from __future__ import annotations

from typing import Any

import pulumi_gcp as gcp
import pytest

import pulumi_mocks
from kueue_fleet import NodeIdentity, TeamIdentity
from kueue_fleet.google.identities import node_account_id
from pulumi_mocks import Recording


def test_nodes_get_the_two_roles_they_need_and_no_more() -> None:
    recording = pulumi_mocks.run(lambda: NodeIdentity("nodes", project="lab-project", cluster_name="worker"))
    account = recording.one("Account")
    grants = recording.of_type("IAMMember")
    assert {g.inputs["role"] for g in grants} == {
        "roles/container.defaultNodeServiceAccount",
        "roles/artifactregistry.reader",
    }
    assert {g.inputs["member"] for g in grants} == {"serviceAccount:gke-worker@lab-project.iam.gserviceaccount.com"}
    assert all(recording.is_before(account, grant) for grant in grants)


@pytest.mark.parametrize("name", ["a", "ab", "worker-asia-southeast1", "a" * 40, "worker-northamerica-northeast1-one"])
def test_account_ids_fit_and_differ(name: str) -> None:
    assert 6 <= len(node_account_id(name)) <= 30
    assert node_account_id(name) != node_account_id(f"{name}-two")


def test_long_names_that_begin_alike_get_different_accounts() -> None:
    assert node_account_id("worker-northamerica-northeast1") != node_account_id("worker-northamerica-northeast2")


def team(*accounts: tuple[str, str], **arguments: Any) -> Recording:
    given: dict[str, Any] = {"roles": ["roles/logging.logWriter", "roles/storage.objectViewer"], **arguments}
    return pulumi_mocks.run(
        lambda: TeamIdentity(
            "team", project="lab-project", fleet="lab", team="vision", kubernetes_accounts=list(accounts), **given
        )
    )


def test_a_team_gets_its_roles_and_only_its_own_pods_act_as_it() -> None:
    recording = team(("vision", "jobs"), ("vision-dev", "jobs"))
    account = recording.one("Account")
    assert account.inputs["accountId"] == "lab-vision"
    grants = recording.of_type("gcp:projects/iAMMember:IAMMember")
    assert {g.inputs["role"] for g in grants} == {"roles/logging.logWriter", "roles/storage.objectViewer"}
    assert {g.inputs["member"] for g in grants} == {"serviceAccount:lab-vision@lab-project.iam.gserviceaccount.com"}
    bindings = recording.of_type("gcp:serviceaccount/iAMMember:IAMMember")
    assert {b.inputs["role"] for b in bindings} == {"roles/iam.workloadIdentityUser"}
    assert {b.inputs["serviceAccountId"] for b in bindings} == {
        "projects/lab-project/serviceAccounts/lab-vision@lab-project.iam.gserviceaccount.com"
    }
    assert {b.inputs["member"] for b in bindings} == {
        "serviceAccount:lab-project.svc.id.goog[vision/jobs]",
        "serviceAccount:lab-project.svc.id.goog[vision-dev/jobs]",
    }
    assert all(recording.is_before(account, grant) for grant in (*grants, *bindings))


def test_pods_are_let_in_once_the_project_has_a_workload_identity_pool() -> None:
    def program() -> None:
        first = gcp.projects.IAMMember("first", project="lab-project", role="r", member="m")
        accounts = [("vision", "jobs")]
        TeamIdentity(
            "t", project="lab-project", fleet="lab", team="v", roles=[], kubernetes_accounts=accounts, after=[first]
        )

    recording = pulumi_mocks.run(program)
    binding = recording.one("gcp:serviceaccount/iAMMember:IAMMember")
    assert recording.is_before(recording.one("IAMMember", "first"), binding)
