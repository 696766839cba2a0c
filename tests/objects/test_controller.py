"""The controller's objects: what it may do, and how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import Data, fleet

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration, kueue_helm_values, parse_fleet, parse_fleet_text
from kueue_fleet.fleet_file.model.kueue_installation import has_mutating_policies
from kueue_fleet.fleet_file.worker_tokens import worker_tokens
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.controller import render_controller, render_controller_worker_access
from kueue_fleet.objects.controller_values import controller_configuration
from kueue_fleet.objects.fleet_page import render_fleet_page
from kueue_fleet.settings.configuration import ControllerConfiguration
from plain_fleets import mixed_data

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"}}


def with_controller(**section: Any) -> Any:
    return fleet({**OURS, "controller": {"image": "example.com/controller:1", **section}})


def watched() -> FleetSpec:
    return fleet(
        {
            **OURS,
            "controller": {"image": "example.com/controller:1"},
            "observability": {"managedPrometheus": True},
        }
    )


def by_kind(objects: Sequence[Manifest]) -> dict[str, Any]:
    return {one["kind"]: one for one in objects}


def by_name(objects: Sequence[Manifest], kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def test_the_manager_has_all_of_it_and_each_worker_an_account() -> None:
    kinds = [one["kind"] for one in render_controller(watched(), "manager")]
    assert kinds == [
        "Namespace", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole",
        "ClusterRoleBinding", "ClusterRole", *["RoleBinding"] * 3, *["Role", "RoleBinding"] * 3,
        "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Deployment",
        "PodMonitoring",
    ]  # fmt: skip
    assert render_controller(with_controller(), "worker-a") == []
    granted = [one["kind"] for one in render_controller_worker_access(with_controller(), "worker-a")]
    assert granted == [
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ClusterRole", *["RoleBinding"] * 3,
        "Role", "RoleBinding", "Secret",
    ]  # fmt: skip
    assert render_controller_worker_access(with_controller(), "manager") == []


def test_a_fleet_without_it_has_none_of_it() -> None:
    for cluster in ("manager", "worker-a"):
        names = [one["metadata"]["name"] for one in render_cluster(fleet(), cluster)]
        assert not [name for name in names if name.startswith("kueue-fleet-controller")]


def test_they_are_among_the_objects_of_the_cluster() -> None:
    for cluster, kind in (("manager", "Deployment"), ("worker-a", "ServiceAccount")):
        result = [(one["kind"], one["metadata"]["name"]) for one in render_cluster(with_controller(), cluster)]
        assert (kind, "kueue-fleet-controller") in result


def test_without_managed_prometheus_there_is_no_pod_monitoring() -> None:
    assert with_controller().observability.managed_prometheus is False
    assert "PodMonitoring" not in by_kind(render_controller(with_controller(), "manager"))


def roles(objects: Sequence[Manifest]) -> dict[str, dict[str, list[str]]]:
    """By role: the resources that it lets be written, and how."""
    read = {"get", "list", "watch"}
    return {
        one["metadata"]["name"]: {
            rule["resources"][0]: rule["verbs"] for rule in one["rules"] if not set(rule["verbs"]) <= read
        }
        for one in objects
        if one["kind"] == "ClusterRole"
    }


def test_what_it_may_write_in_a_whole_cluster_are_the_statuses_of_admission_checks() -> None:
    manager = roles(render_controller(with_controller(), "manager"))["kueue-fleet-controller"]
    assert manager == {"admissionchecks/status": ["patch"]}
    granted = render_controller_worker_access(with_controller(), "worker-a")
    assert roles(granted)["kueue-fleet-controller"] == {"admissionchecks/status": ["patch"]}
    rules = by_name(granted, "ClusterRole")["kueue-fleet-controller"]["rules"]
    assert [rule["resourceNames"] for rule in rules if "patch" in rule["verbs"]] == [["kueue-fleet-assignment"]]


def test_whatever_belongs_to_jobs_it_may_write_in_the_namespaces_of_teams_and_of_queues_only() -> None:
    here = {
        "manager": render_controller(with_controller(), "manager"),
        "worker-a": render_controller_worker_access(with_controller(), "worker-a"),
    }
    statuses = ("workloads", "jobs", "jobsets")
    expected = {"events": ["create"], **{f"{name}/status": ["patch"] for name in statuses}}
    # Jobs that have ended; a policy says so.
    expected |= {"jobs": ["patch"], "jobsets": ["patch"]}
    assert roles(here["manager"])["kueue-fleet-controller-jobs"] == expected
    assert roles(here["worker-a"])["kueue-fleet-controller-jobs"] == {"workloads/status": ["patch"]}
    for objects in here.values():
        bindings = [one for one in objects if one["kind"] == "RoleBinding" and one["roleRef"]["kind"] == "ClusterRole"]
        assert {one["metadata"]["namespace"] for one in bindings} == {"team-vision", "team-language", "default"}
        assert {one["roleRef"]["name"] for one in bindings} == {"kueue-fleet-controller-jobs"}


def test_a_policy_lets_it_change_jobs_that_have_ended_and_no_other() -> None:
    [policy] = by_name(render_controller(with_controller(), "manager"), "ValidatingAdmissionPolicy").values()
    [condition] = policy["spec"]["matchConditions"]
    user = "system:serviceaccount:kueue-fleet-system:kueue-fleet-controller"
    assert condition["expression"] == f"request.userInfo.username == '{user}'"
    [validation] = policy["spec"]["validations"]
    assert "oldObject.status.conditions.exists(" in validation["expression"]
    assert "DELETE" not in policy["spec"]["matchConstraints"]["resourceRules"][0]["operations"]


def test_where_its_own_queues_ask_for_nodes_it_may_delete_a_request_and_patch_no_job() -> None:
    solo = parse_fleet_text((EXAMPLES / "fallback/fleet.yaml").read_text(), "fleet.yaml")
    result = render_controller(solo, solo.cluster_names[0])
    jobs = roles(result)["kueue-fleet-controller-jobs"]
    assert jobs["provisioningrequests"] == ["delete"]
    assert not {"jobs", "jobsets"} & jobs.keys()
    rules = by_name(result, "ClusterRole")["kueue-fleet-controller"]["rules"]
    assert ["list", "watch"] in [rule["verbs"] for rule in rules if "provisioningrequests" in rule["resources"]]
    assert "ValidatingAdmissionPolicy" not in by_kind(result)


def test_no_rule_is_about_everything_and_of_secrets_those_with_tokens_of_workers_only() -> None:
    manager = render_controller(with_controller(), "manager")
    worker = render_controller_worker_access(with_controller(), "worker-a")
    named = []
    for one in (one for one in (*manager, *worker) if one["kind"] in ("ClusterRole", "Role")):
        for rule in one["rules"]:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            if set(rule["resources"]) & {"secrets", "serviceaccounts/token"}:
                place = one["metadata"]["namespace"]
                named.append((place, rule["resources"], rule["verbs"], rule["resourceNames"]))
    assert named == [
        ("kueue-system", ["secrets"], ["get", "patch"], ["worker-a-2026-11", "worker-b-2026-11"]),
        (
            "kueue-fleet-system",
            ["secrets"],
            ["get", "patch"],
            ["kueue-fleet-controller-worker-a-2026-11", "kueue-fleet-controller-worker-b-2026-11"],
        ),
        ("kueue-system", ["serviceaccounts/token"], ["create"], ["multikueue-manager", "kueue-fleet-controller"]),
        ("kueue-system", ["secrets"], ["delete"], ["multikueue-manager-2026-11", "kueue-fleet-controller-2026-11"]),
    ]


def test_each_worker_is_a_file_of_its_own_secret() -> None:
    pod = by_kind(render_controller(with_controller(), "manager"))["Deployment"]["spec"]["template"]["spec"]
    [volume] = [volume for volume in pod["volumes"] if volume["name"] == "workers"]
    assert volume["projected"]["sources"] == [
        {
            "secret": {
                "name": f"kueue-fleet-controller-{worker}-2026-11",
                "items": [{"key": "kubeconfig", "path": worker}],
            }
        }
        for worker in ("worker-a", "worker-b")
    ]


def test_the_controller_renews_every_token_of_the_fleet() -> None:
    result = with_controller()
    assert controller_configuration(result).tokens == worker_tokens(result)
    assert [(token.worker, token.account) for token in worker_tokens(result)] == [
        ("worker-a", "multikueue-manager"),
        ("worker-b", "multikueue-manager"),
        ("worker-a", "kueue-fleet-controller"),
        ("worker-b", "kueue-fleet-controller"),
    ]
    data = controller_configuration(
        fleet(
            {
                **OURS,
                "controller": {"image": "example.com/controller:1"},
                "multiKueue/credentials/lifetime": "48h",
            }
        )
    )
    assert data.token_lifetime.seconds == 48 * 3600


def test_every_queue_of_a_worker_waits_for_the_assignment_and_no_other() -> None:
    def checks(cluster: str, spec: FleetSpec) -> list[list[str]]:
        queues = [one["spec"] for one in render_cluster(spec, cluster) if one["kind"] == "ClusterQueue"]
        return [
            [rule["name"] for rule in queue.get("admissionChecksStrategy", {}).get("admissionChecks", [])]
            for queue in queues
        ]

    check = by_name(render_cluster(with_controller(), "worker-a"), "AdmissionCheck")["kueue-fleet-assignment"]
    assert check["spec"] == {"controllerName": "kueue-fleet.dev/assignment"}
    assert all("kueue-fleet-assignment" in found for found in checks("worker-a", with_controller()))
    assert not any("kueue-fleet-assignment" in result for result in checks("manager", with_controller()))
    assert not any("kueue-fleet-assignment" in results for results in checks("worker-a", fleet()))


def test_a_worker_that_gets_no_jobs_any_more_is_still_asked() -> None:
    without = fleet({**OURS, "controller": {"image": "example.com/controller:1"}, "multiKueue/workers": ["worker-a"]})
    assert [one.name for one in controller_configuration(without).workers] == ["worker-a", "worker-b"]
    assert render_controller_worker_access(without, "worker-b")


def test_only_its_own_lease() -> None:
    create, named = by_name(render_controller(with_controller(), "manager"), "Role")["kueue-fleet-controller"]["rules"]
    assert create["verbs"] == ["create"]
    assert (named["verbs"], named["resourceNames"]) == (["get", "update"], ["kueue-fleet-controller"])


def test_the_pod_has_no_privilege_and_no_writable_root() -> None:
    pod = by_kind(render_controller(with_controller(), "manager"))["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    assert {"livenessProbe", "readinessProbe"} <= set(container)
    assert container["resources"]["limits"]["memory"] == "512Mi"


def test_two_replicas_of_which_one_may_be_away() -> None:
    objects = by_kind(render_controller(with_controller(), "manager"))
    assert objects["Deployment"]["spec"]["replicas"] == 2
    assert objects["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_the_configuration_is_what_the_controller_reads_and_a_new_one_makes_new_pods() -> None:
    objects = by_kind(render_controller(with_controller(), "manager"))
    read = ControllerConfiguration.model_validate(yaml.safe_load(objects["ConfigMap"]["data"]["config.yaml"]))
    assert read == controller_configuration(with_controller())
    other = by_kind(render_controller(with_controller(dispatch={"step": 2}), "manager"))

    def marks(found: dict[str, Data]) -> Any:
        return found["Deployment"]["spec"]["template"]["metadata"]["annotations"]

    assert marks(other) != marks(objects)


def test_kueue_is_set_up_for_it() -> None:
    result = with_controller()
    assert kueue_helm_values(result, "manager")["enableMutatingAdmissionPolicy"] is True
    assert "enableMutatingAdmissionPolicy" not in kueue_helm_values(result, "worker-a")
    assert kueue_configuration(result, "manager")["integrations"]["labelKeysToCopy"] == ["kueue-fleet.dev/regions"]
    assert "labelKeysToCopy" not in kueue_configuration(result, "worker-a")["integrations"]


def test_before_kubernetes_1_36_the_gate_takes_the_place_of_the_policy() -> None:
    values = kueue_helm_values(with_controller(), "manager", "1.35.2-gke.1000")
    assert "enableMutatingAdmissionPolicy" not in values
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["featureGates"]["WorkloadRequestUseMergePatch"] is True


def test_the_gate_takes_its_place_where_the_manager_may_be_any_kubernetes() -> None:
    data = mixed_data(controller={"image": "registry.example/controller:1"})
    data["multiKueue"] |= {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
    data["clusters"][0] = {"name": "manager", "role": "manager", "kubernetes": {}}
    values = kueue_helm_values(parse_fleet(data), "manager")
    assert "enableMutatingAdmissionPolicy" not in values
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["featureGates"]["WorkloadRequestUseMergePatch"] is True
    assert kueue_helm_values(parse_fleet(data), "manager", "1.36.3")["enableMutatingAdmissionPolicy"] is True


@pytest.mark.parametrize(
    ("version", "has"),
    [("1.36.0", True), ("v1.36.3", True), ("1.35.9-gke.1", False), ("2.0.0", True), ("1.4.0", False), (None, True)],
)
def test_which_kubernetes_has_the_policy(version: str | None, has: bool) -> None:
    assert has_mutating_policies(version) is has


def test_the_controller_is_given_the_release_of_each_cluster() -> None:
    section = {"controller": {"image": "example.com/controller:1"}}
    result = controller_configuration(fleet({**OURS, **section, "clusters/1/kueue": {"version": "0.18.3"}}))
    assert result.kueue_release == "0.19"
    assert [(item.name, item.kueue_release) for item in result.workers] == [
        ("worker-a", "0.18"),
        ("worker-b", "0.19"),
    ]


def test_a_history_on_a_volume_is_mounted_and_takes_the_right_to_follow_nodes() -> None:
    rendered = by_kind(render_controller(with_controller(history={"volumeClaim": "history"}), "manager"))
    pod = rendered["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "history", "persistentVolumeClaim": {"claimName": "history"}} in pod["volumes"]
    [container] = pod["containers"]
    assert {"name": "history", "mountPath": "/var/lib/kueue-fleet/history"} in container["volumeMounts"]
    assert "iam.gke.io/gcp-service-account" not in str(rendered["ServiceAccount"])


def test_with_a_history_nodes_are_followed_everywhere_and_without_nowhere() -> None:
    def follows_nodes(**section: Any) -> list[bool]:
        result = with_controller(**section)
        manager = by_name(render_controller(result, "manager"), "ClusterRole")["kueue-fleet-controller"]
        worker = by_name(render_controller_worker_access(result, "worker-a"), "ClusterRole")["kueue-fleet-controller"]
        return [any("nodes" in rule["resources"] for rule in role["rules"]) for role in (manager, worker)]

    assert (follows_nodes(), follows_nodes(history={"volumeClaim": "h"})) == ([False, False], [True, True])


def test_with_a_history_in_a_bucket_it_acts_as_a_google_account_that_reaches_no_worker() -> None:
    result = with_controller(history={"store": "gs://lab-history/fleet"})
    rendered = by_kind(render_controller(result, "manager"))
    address = rendered["ServiceAccount"]["metadata"]["annotations"]["iam.gke.io/gcp-service-account"]
    assert address.endswith(".iam.gserviceaccount.com")
    assert {"169.254.169.252/32", "169.254.169.254/32"} <= {
        to["ipBlock"]["cidr"] for rule in rendered["NetworkPolicy"]["spec"]["egress"] for to in rule.get("to", ())
    }
    worker = render_controller_worker_access(result, "worker-a")
    assert address not in str(worker)
    told = ControllerConfiguration.model_validate(yaml.safe_load(rendered["ConfigMap"]["data"]["config.yaml"])).history
    assert told is not None
    assert (told.store, told.settings.pause, told.regions["worker-a"]) == ("gs://lab-history/fleet", 900.0, "us-east4")


@pytest.mark.parametrize(
    ("home", "connection", "ports"),
    [
        ({"region": "europe-west4"}, {"server": "https://k8s.example:6443"}, [{443}, {443, 6443}]),
        ({"region": "europe-west4"}, {"server": "https://k8s.example"}, [{443}, {443}]),
        (
            {"region": "europe-west4"},
            {"server": "https://k8s.example:6443", "proxyUrl": "http://proxy.example:3128"},
            [{443}, {443, 3128}],
        ),
        ({"region": "europe-west4"}, {}, [{443}, {None}]),  # A program gives the address.
        ({"kubernetes": {}}, {"server": "https://k8s.example:6443"}, [{None}, {None}]),
    ],
)
def test_api_servers_outside_gke_are_reached_on_their_own_ports(
    home: dict[str, Any], connection: dict[str, Any], ports: list[set[int | None]]
) -> None:
    data = mixed_data(controller={"image": "registry.example/controller:1"}, fleetPage={})
    data["clusters"][0] = {"name": "manager", "role": "manager", **home}
    data["clusters"][2]["kubernetes"] = connection
    fleet = parse_fleet(data)
    policies = [
        next(entry for entry in render(fleet, "manager") if entry["kind"] == "NetworkPolicy")
        for render in (render_fleet_page, render_controller)
    ]
    assert [{port.get("port") for port in item["spec"]["egress"][0]["ports"]} for item in policies] == ports
