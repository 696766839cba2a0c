"""What the manager may do on a worker."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.spec import render_worker_access, token_secret_name
from kueue_fleet.spec.access import plural_of, supported_frameworks, worker_rules
from kueue_fleet.spec.configuration_rules import BUILT_IN_KINDS, FRAMEWORKS
from spec.builders import fleet

SYNC = ["create", "delete", "get", "list", "watch"]


def test_account_role_binding_and_token() -> None:
    account, role, binding, token = render_worker_access(fleet(), "worker-a")
    assert account["metadata"] == {"name": "multikueue-manager", "namespace": "kueue-system"}
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": role["metadata"]["name"],
    }
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "multikueue-manager", "namespace": "kueue-system"}
    ]
    assert token == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "multikueue-manager-2026-11",
            "namespace": "kueue-system",
            "annotations": {
                "kubernetes.io/service-account.name": "multikueue-manager",
                "kueue-fleet.dev/rotate-by": "2027-02-01",
            },
        },
        "type": "kubernetes.io/service-account-token",
    }


def test_role_covers_the_managers_kinds_of_job_and_no_others() -> None:
    role = render_worker_access(fleet(), "worker-a")[1]
    assert role["rules"] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": [*SYNC, "patch", "update"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["get", "patch", "update"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": [*SYNC, "patch"]},
        {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get"]},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": SYNC},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets/status"], "verbs": ["get"]},
    ]


def test_nothing_is_granted_beyond_single_resources() -> None:
    for rule in worker_rules(FRAMEWORKS, ["Foo.v1.example.com"]):
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"secrets", "pods/exec", "nodes"} & set(rule["resources"])


def test_frameworks_of_one_kind_are_granted_once() -> None:
    rules = worker_rules(["pod", "deployment", "sparkoperator.k8s.io/sparkapplication"])
    assert [rule["resources"] for rule in rules[4:]] == [["pods"], ["pods/status"]]


def test_external_frameworks() -> None:
    rules = worker_rules([], ["Policy.v1.a.example.com", "Class.v1.example.com"])
    assert [(rule["apiGroups"], rule["resources"]) for rule in rules[4:]] == [
        (["a.example.com"], ["policies"]),
        (["a.example.com"], ["policies/status"]),
        (["example.com"], ["classes"]),
        (["example.com"], ["classes/status"]),
    ]
    assert plural_of("Job") == "jobs"


def test_external_frameworks_of_the_configuration_are_granted() -> None:
    of = fleet({"kueue/configuration": {"multiKueue": {"externalFrameworks": [{"name": "Foo.v1.example.com"}]}}})
    assert {"apiGroups": ["example.com"], "resources": ["foos"], "verbs": SYNC} in render_worker_access(of, "worker-a")[
        1
    ]["rules"]


PROFILES: dict[str, Any] = {
    "multiKueue/credentials": {"type": "ClusterProfile"},
    "kueue/configuration": {"featureGates": {"MultiKueueClusterProfile": True}},
}


def test_other_credentials_need_no_account() -> None:
    assert render_worker_access(fleet(PROFILES), "worker-a") == []
    assert token_secret_name(fleet(PROFILES)) is None


def test_a_new_serial_is_a_new_token() -> None:
    assert token_secret_name(fleet({"multiKueue/credentials/rotation": "2027-02"})) == "multikueue-manager-2027-02"


@pytest.mark.parametrize("name", sorted(supported_frameworks()))
def test_supported_frameworks_are_kueues(name: str) -> None:
    assert name in FRAMEWORKS


def test_all_of_kueues_frameworks_but_one_can_be_dispatched() -> None:
    assert set(FRAMEWORKS) - supported_frameworks() == {"sparkoperator.k8s.io/sparkapplication"}
    assert set(BUILT_IN_KINDS) <= supported_frameworks()
