"""The controller's objects: what it may do, and how it runs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kueue_fleet.spec import FleetSpec, kueue_configuration, kueue_helm_values, render_cluster
from kueue_fleet.spec.controller_configuration import ControllerConfiguration, controller_configuration
from kueue_fleet.spec.controller_manifests import render_controller, render_controller_worker_access
from kueue_fleet.spec.install import has_mutating_policies
from spec.builders import Data, fleet

OURS = {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"}}


def with_controller(**section: Any) -> Any:
    return fleet({**OURS, "admissionController": {"image": "example.com/controller:1", **section}})


def watched() -> FleetSpec:
    return fleet(
        {
            **OURS,
            "admissionController": {"image": "example.com/controller:1"},
            "observability": {"managedPrometheus": True},
        }
    )


def by_kind(objects: list[Data]) -> dict[str, Data]:
    return {one["kind"]: one for one in objects}


def test_the_manager_has_all_of_it_and_each_worker_an_account() -> None:
    kinds = [one["kind"] for one in render_controller(watched(), "manager")]
    assert kinds == [
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
        "NetworkPolicy", "PodDisruptionBudget", "Deployment", "PodMonitoring",
    ]  # fmt: skip
    assert render_controller(with_controller(), "worker-a") == []
    granted = [one["kind"] for one in render_controller_worker_access(with_controller(), "worker-a")]
    assert granted == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Secret"]
    assert render_controller_worker_access(with_controller(), "manager") == []


def test_a_fleet_without_it_has_none_of_it() -> None:
    for cluster in ("manager", "worker-a"):
        names = [one["metadata"]["name"] for one in render_cluster(fleet(), cluster)]
        assert not [name for name in names if name.startswith("kueue-fleet-controller")]


def test_they_are_among_the_objects_of_the_cluster() -> None:
    for cluster, kind in (("manager", "Deployment"), ("worker-a", "ServiceAccount")):
        found = [(one["kind"], one["metadata"]["name"]) for one in render_cluster(with_controller(), cluster)]
        assert (kind, "kueue-fleet-controller") in found


def test_without_managed_prometheus_there_is_no_pod_monitoring() -> None:
    assert with_controller().observability.managed_prometheus is False
    assert "PodMonitoring" not in by_kind(render_controller(with_controller(), "manager"))


def test_it_may_write_four_statuses_and_events_and_nothing_else_and_reads_no_secret() -> None:
    rules = by_kind(render_controller(with_controller(), "manager"))["ClusterRole"]["rules"]
    writes = {rule["resources"][0]: rule["verbs"] for rule in rules if not set(rule["verbs"]) <= {"list", "watch"}}
    statuses = ("workloads", "admissionchecks", "jobs", "jobsets")
    assert writes == {"events": ["create"], **{f"{name}/status": ["patch"] for name in statuses}}
    worker = by_kind(render_controller_worker_access(with_controller(), "worker-a"))["ClusterRole"]["rules"]
    assert {verb for rule in worker for verb in rule["verbs"]} == {"list", "watch"}
    for rule in (*rules, *worker):
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        assert "secrets" not in rule["resources"]


def test_only_its_own_lease() -> None:
    create, named = by_kind(render_controller(with_controller(), "manager"))["Role"]["rules"]
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
    made = with_controller()
    assert kueue_helm_values(made, "manager")["enableMutatingAdmissionPolicy"] is True
    assert "enableMutatingAdmissionPolicy" not in kueue_helm_values(made, "worker-a")
    assert kueue_configuration(made, "manager")["integrations"]["labelKeysToCopy"] == ["kueue-fleet.dev/regions"]
    assert "labelKeysToCopy" not in kueue_configuration(made, "worker-a")["integrations"]


def test_before_kubernetes_1_36_the_gate_takes_the_place_of_the_policy() -> None:
    values = kueue_helm_values(with_controller(), "manager", "1.35.2-gke.1000")
    assert "enableMutatingAdmissionPolicy" not in values
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert configuration["featureGates"]["WorkloadRequestUseMergePatch"] is True


@pytest.mark.parametrize(
    ("version", "has"),
    [("1.36.0", True), ("v1.36.3", True), ("1.35.9-gke.1", False), ("2.0.0", True), ("1.4.0", False), (None, True)],
)
def test_which_kubernetes_has_the_policy(version: str | None, has: bool) -> None:
    assert has_mutating_policies(version) is has
