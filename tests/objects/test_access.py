"""What the manager may do on a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fleet_file.builders import fleet

from kueue_admission.api.job_kinds import DISPATCHED_FRAMEWORKS, KINDS, built_in_adapters, plural_of
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.worker_tokens import manager_accounts, worker_token, worker_tokens
from kueue_fleet.objects import render_worker_access
from kueue_fleet.objects.access import worker_job_rules, worker_rules
from kueue_fleet.objects.cluster_profiles import kueue_patches, profile_status
from kueue_fleet.objects.controller import render_controller, render_controller_worker_access
from kueue_fleet.objects.render import render_cluster

READ = ["get", "list", "watch"]
PLACES = ("team-vision", "team-language", "default")


def granted(objects: Sequence[Manifest], name: str) -> list[dict[str, Any]]:
    [role] = [one for one in objects if one["kind"] == "ClusterRole" and one["metadata"]["name"] == name]
    rules: list[dict[str, Any]] = role["rules"]
    return rules


def test_account_roles_bindings_and_token() -> None:
    account, jobs_role, *bindings, role, binding, token = render_worker_access(fleet(), "worker-a")
    assert account["metadata"] == {"name": "multikueue-manager", "namespace": "kueue-system"}
    assert [one["kind"] for one in bindings] == ["RoleBinding"] * 3
    assert tuple(one["metadata"]["namespace"] for one in bindings) == PLACES
    for one, of in ((binding, role), *((one, jobs_role) for one in bindings)):
        assert one["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": of["metadata"]["name"],
        }
        assert one["subjects"] == [
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


def test_in_the_whole_worker_it_only_reads_what_kueue_watches() -> None:
    assert granted(render_worker_access(fleet(), "worker-a"), "multikueue-manager") == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": READ},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["get"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"], "verbs": READ},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues"], "verbs": READ},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": READ},
        {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get"]},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": READ},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets/status"], "verbs": ["get"]},
    ]


def test_in_the_namespaces_that_have_jobs_it_writes_workloads_and_the_managers_kinds_of_job() -> None:
    assert granted(render_worker_access(fleet(), "worker-a"), "multikueue-manager-jobs") == [
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["workloads"],
            "verbs": ["create", "delete", "patch", "update"],
        },
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads/status"], "verbs": ["patch", "update"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "patch"]},
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["create", "delete"]},
    ]


def test_with_every_framework_nothing_is_written_in_the_whole_worker() -> None:
    verbs = {verb for rule in worker_rules(list(KINDS), ["Foo.v1.example.com"]) for verb in rule["verbs"]}
    assert verbs == set(READ)


def test_nothing_is_granted_beyond_single_resources() -> None:
    external = ["Foo.v1.example.com"]
    for rule in (*worker_rules(list(KINDS), external), *worker_job_rules(list(KINDS), external)):
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
    assert [rule["resources"] for rule in worker_job_rules([], ["Class.v1.example.com"])[2:]] == [["classes"]]
    assert plural_of("Job") == "jobs"


def test_external_frameworks_of_the_configuration_are_granted() -> None:
    of = fleet({"kueue/configuration": {"multiKueue": {"externalFrameworks": [{"name": "Foo.v1.example.com"}]}}})
    objects = render_worker_access(of, "worker-a")
    assert {"apiGroups": ["example.com"], "resources": ["foos"], "verbs": READ} in granted(
        objects, "multikueue-manager"
    )
    assert {"apiGroups": ["example.com"], "resources": ["foos"], "verbs": ["create", "delete"]} in granted(
        objects, "multikueue-manager-jobs"
    )


PROFILES: dict[str, Any] = {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}}


def test_a_google_account_gets_the_same_rights_as_one_of_the_worker() -> None:
    of_worker = {"ServiceAccount", "Secret"}
    tokens, accounts = (render_worker_access(fleet(changes), "worker-a") for changes in ({}, PROFILES))
    assert worker_tokens(fleet(PROFILES)) == ()
    assert of_worker < {each["kind"] for each in tokens}
    kept = [item for item in tokens if item["kind"] not in of_worker]
    assert [each["metadata"] for each in accounts] == [entry["metadata"] for entry in kept]
    assert [each.get("rules") for each in accounts] == [each.get("rules") for each in kept]
    address = manager_accounts(fleet(PROFILES))[0].address
    assert address == "multikueue-test-fleet@my-project.iam.gserviceaccount.com"
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": address}
    assert {str(each["subjects"]) for each in accounts if "subjects" in each} == {str([user])}


def test_the_controller_needs_no_tokens_to_renew_either() -> None:
    of = fleet({**PROFILES, "controller": {"image": "example.com/controller:1"}})
    objects = render_controller_worker_access(of, "worker-a")
    assert not [item for item in objects if item["kind"] in ("ServiceAccount", "Secret", "Role")]
    [account] = [each for each in manager_accounts(of) if each.name == "kueue-fleet-controller"]
    assert {each["subjects"][0]["name"] for each in objects if "subjects" in each} == {account.address}
    manager = {(each["kind"], each["metadata"]["name"]): each for each in render_controller(of, "manager")}
    assert ("Role", "kueue-fleet-controller-tokens") not in manager
    served = manager["ServiceAccount", "kueue-fleet-controller"]["metadata"]["annotations"]
    assert served == {"iam.gke.io/gcp-service-account": account.address}
    pod = manager["Deployment", "kueue-fleet-controller"]["spec"]["template"]["spec"]
    assert [entry["image"] for entry in pod["initContainers"]] == ["example.com/plugin:1"]
    assert {"name": "workers", "configMap": {"name": "kueue-fleet-controller-workers"}} in pod["volumes"]
    rules = manager["NetworkPolicy", "kueue-fleet-controller"]["spec"]["egress"]
    assert {"ipBlock": {"cidr": "169.254.169.252/32"}} in [to for rule in rules for to in rule.get("to", ())]


def test_only_a_manager_without_tokens_has_cluster_profiles() -> None:
    def kinds(changes: dict[str, Any], cluster: str) -> list[str]:
        result = [item["kind"] for item in render_cluster(fleet(changes), cluster)]
        return [kind for kind in result if kind in ("CustomResourceDefinition", "ClusterProfile")]

    assert kinds(PROFILES, "manager") == ["CustomResourceDefinition", "ClusterProfile", "ClusterProfile"]
    assert kinds(PROFILES, "worker-a") == kinds({}, "manager") == []
    assert kueue_patches(fleet()) == []
    served, deployment = kueue_patches(fleet(PROFILES))
    assert served["metadata"]["name"] == deployment["metadata"]["name"] == "kueue-controller-manager"
    [container] = deployment["spec"]["template"]["spec"]["initContainers"]
    command = f"{container['volumeMounts'][0]['mountPath']}/gcp-auth-plugin"
    assert container["args"] == [command]
    [provider] = kueue_configuration(fleet(PROFILES), "manager")["multiKueue"]["clusterProfile"]["accessProviders"]
    assert provider["execConfig"]["command"] == command
    assert profile_status({"server": "https://a"})["accessProviders"][0]["name"] == provider["name"]
    assert "clusterProfile" not in kueue_configuration(fleet(), "manager")["multiKueue"]


def test_the_patch_of_kueues_pods_names_what_the_chart_has_before_the_plugin() -> None:
    """In its order, by keys alone: Pulumi's provider compares lists by place (`tests/engines/test_prod.py`)."""
    pod = kueue_patches(fleet(PROFILES))[1]["spec"]["template"]["spec"]
    assert [set(each) for each in pod["volumes"]] == [{"name"}] * 3 + [{"name", "emptyDir"}]
    mounts = pod["containers"][0]["volumeMounts"]
    assert [set(each) for each in mounts] == [{"mountPath", "name"}] * 3 + [{"mountPath", "name", "readOnly"}]
    assert {entry["name"] for entry in mounts} == {item["name"] for item in pod["volumes"]}


def test_a_new_serial_is_a_new_first_token_and_a_new_secret_on_the_manager() -> None:
    token = worker_token(fleet({"multiKueue/credentials/rotation": "2027-02"}), "worker-a", "multikueue-manager")
    assert token is not None
    assert (token.first_secret, token.secret) == ("multikueue-manager-2027-02", "worker-a-2027-02")


def test_all_of_kueues_frameworks_but_one_can_be_dispatched() -> None:
    assert set(KINDS) - DISPATCHED_FRAMEWORKS == {"sparkoperator.k8s.io/sparkapplication"}
    assert {"MPIJob.v2beta1.kubeflow.org", "TrainJob.v1alpha1.trainer.kubeflow.org"} <= built_in_adapters(list(KINDS))
