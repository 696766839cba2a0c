from __future__ import annotations

import pytest

import pulumi_mocks
from kueue_fleet import NodeIdentity
from kueue_fleet.gcp.identity import account_id


def test_nodes_get_the_two_roles_they_need_and_no_more() -> None:
    recording = pulumi_mocks.run(lambda: NodeIdentity("nodes", project="p", cluster_name="worker"))
    account = recording.one("Account")
    grants = recording.of_type("IAMMember")
    assert {g.inputs["role"] for g in grants} == {
        "roles/container.defaultNodeServiceAccount",
        "roles/artifactregistry.reader",
    }
    assert {g.inputs["member"] for g in grants} == {"serviceAccount:gke-worker@p.iam.gserviceaccount.com"}
    assert all(recording.is_before(account, grant) for grant in grants)


@pytest.mark.parametrize("name", ["ab", "worker-asia-southeast1", "a" * 40, "worker-northamerica-northeast1-one"])
def test_account_ids_fit_and_differ(name: str) -> None:
    assert 6 <= len(account_id(name)) <= 30
    assert account_id(name) != account_id(f"{name}-two")


def test_long_names_that_begin_alike_get_different_accounts() -> None:
    assert account_id("worker-northamerica-northeast1") != account_id("worker-northamerica-northeast2")
