from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pulumi
import pytest

import pulumi_mocks
from kueue_fleet import AdmissionController, Fleet
from kueue_fleet.objects.controller import render_controller
from pulumi_mocks import Recording
from small_fleets import MANAGER, WORKER, fleet

DISPATCH = {
    "dispatcher": "External",
    "external": {"name": "kueue-fleet.dev/dispatcher"},
    "credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"},
}
SPEC = fleet(multiKueue=DISPATCH, controller={"image": "example.com/controller:1"})


@pytest.fixture(scope="module")
def of_file() -> Recording:
    return pulumi_mocks.run(lambda: Fleet("lab", SPEC))


def alone() -> Recording:
    def program() -> AdmissionController:
        kubeconfigs = {WORKER: pulumi.Output.secret("kubeconfig with a token")}
        return AdmissionController("controller", render_controller(SPEC, MANAGER), kubeconfigs=kubeconfigs)

    return pulumi_mocks.run(program)


def test_every_object_of_the_spec_is_made() -> None:
    result = {resource.type.rsplit(":", 1)[-1] for resource in alone()}
    assert {manifest["kind"] for manifest in render_controller(SPEC, MANAGER)} <= result


def test_the_pods_start_when_all_they_need_is_there() -> None:
    recording = alone()
    deployment = recording.one("Deployment")
    for kind in ("Namespace", "ServiceAccount", "ClusterRoleBinding", "ConfigMap", "Secret"):
        assert recording.is_before(recording.one(kind), deployment), kind
    bindings = [resource for resource in recording if resource.name.startswith("controller/RoleBinding")]
    assert len(bindings) == 5
    assert all(recording.is_before(binding, deployment) for binding in bindings)


def test_the_kubeconfigs_are_a_secret_all_the_way() -> None:
    recording = alone()
    secret = recording.one("Secret")
    assert base64.b64decode(secret.inputs["data"]["kubeconfig"]).decode() == "kubeconfig with a token"
    assert secret.ignore_changes == ("data",), "its token is renewed there"
    assert any(path.startswith("data") for path in secret.secrets)
    for resource in recording:
        opened = json.dumps([resource.outputs, resource.inputs if not resource.secrets else {}, resource.name])
        assert "with a token" not in opened, resource.short


def test_without_a_deployment_it_says_what_to_pass() -> None:
    with pytest.raises(ValueError, match="0 Deployments in a namespace are given; give what render_controller returns"):
        pulumi_mocks.run(lambda: AdmissionController("controller", [], kubeconfigs={}))


def test_a_fleet_has_it_on_the_manager_with_an_account_on_each_worker(of_file: Recording) -> None:
    recording = of_file
    [component] = recording.of_type("kueue-fleet:index:AdmissionController")
    assert component.place == f"{MANAGER}/controller"
    access = recording.one("kueue-fleet:index:WorkerAccess", f"{WORKER}/controller")
    secret = recording.one("Secret", f"{MANAGER}/controller/workers/{WORKER}")
    assert recording.is_before(access, secret) or recording.is_before(
        recording.one("Secret", f"{WORKER}/controller/token"), secret
    )
    assert set(secret.inputs["data"]) == {"kubeconfig"}
    assert recording.is_before(secret, recording.one("Deployment", f"{MANAGER}/controller/Deployment"))


def test_the_image_may_be_what_the_program_builds(of_file: Recording) -> None:
    built = "europe-docker.pkg.dev/p/r/controller@sha256:" + "0" * 64

    def program() -> None:
        Fleet("lab", SPEC, controller_image=pulumi.Output.from_input(built))

    deployments = [
        copy.deepcopy(recording.one("Deployment", f"{MANAGER}/controller/Deployment").inputs)
        for recording in (pulumi_mocks.run(program), of_file)
    ]
    images = [item["spec"]["template"]["spec"]["containers"][0].pop("image") for item in deployments]
    assert images == [built, "example.com/controller:1"]
    assert deployments[0] == deployments[1]


def test_a_worker_without_a_kubeconfig_is_refused() -> None:
    objects = render_controller(SPEC, MANAGER)
    with pytest.raises(ValueError, match=f"kubeconfigs: there is none of {WORKER}; add it"):
        pulumi_mocks.run(lambda: AdmissionController("controller", objects, kubeconfigs={}))


def test_a_fleet_without_it_has_nothing_of_it() -> None:
    recording = pulumi_mocks.run(lambda: Fleet("lab", fleet()))
    assert recording.of_type("kueue-fleet:index:AdmissionController") == []
    assert not [resource for resource in recording if resource.place.startswith(f"{WORKER}/controller")]


def values_of_kueue(recording: Recording, cluster: str = MANAGER) -> dict[str, Any]:
    return dict(recording.one("Release", f"{cluster}/kueue").inputs["values"])


def test_kueue_is_set_up_by_the_version_of_the_managers_server(
    of_file: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert values_of_kueue(of_file)["enableMutatingAdmissionPolicy"] is True
    assert "enableMutatingAdmissionPolicy" not in values_of_kueue(of_file, WORKER)
    asked: list[str | None] = []

    def has_policies(version: str | None) -> bool:
        asked.append(version)
        return version is None

    monkeypatch.setattr("kueue_fleet.fleet_file.model.kueue_installation.has_mutating_policies", has_policies)
    values = values_of_kueue(pulumi_mocks.run(lambda: Fleet("lab", SPEC)))
    assert "enableMutatingAdmissionPolicy" not in values
    assert "WorkloadRequestUseMergePatch: true" in values["managerConfig"]["controllerManagerConfigYaml"]
    assert "1.36.3-gke.1" in asked
