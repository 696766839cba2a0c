from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

import kueue_fleet as kf
import pulumi_mocks
from kueue_fleet import MultiKueue, WorkerAccess, testing
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.kueue_components.credentials import WorkerGrant
from kueue_fleet.objects import render_worker_access
from kueue_fleet.testing import CA_CERTIFICATE
from pulumi_mocks import Recording
from small_fleets import SECOND_WORKER, WORKER, fleet, fleet_data

TOKEN = "token-of-multikueue-manager-2026-11"
SPEC = fleet()
GRANT = WorkerGrant('{"clusters": [{}]}', "2026-11")


def access(spec: FleetSpec = SPEC) -> WorkerAccess:
    return WorkerAccess(
        "access",
        render_worker_access(spec, WORKER),
        cluster_name=WORKER,
        endpoint="worker.test",
        ca_certificate=CA_CERTIFICATE,
    )


def manager_side(spec: FleetSpec = SPEC, **arguments: Any) -> MultiKueue:
    kubeconfigs = {name: pulumi.Output.secret(json.dumps({"clusters": [{"name": name}]})) for name in spec.worker_names}
    return MultiKueue("multikueue", spec, **{"kubeconfigs": kubeconfigs, **arguments})


def run_both() -> Recording:
    return pulumi_mocks.run(lambda: MultiKueue("multikueue", SPEC, kubeconfigs={WORKER: access().kubeconfig}))


def test_the_manager_gets_a_kubeconfig_with_the_token_that_the_worker_made() -> None:
    secret = run_both().one("Secret", f"multikueue/{WORKER}")
    assert secret.inputs["metadata"] == {"name": f"{WORKER}-2026-11", "namespace": "kueue-system"}
    assert secret.ignore_changes == ("data",), "its token is renewed there"
    kubeconfig = json.loads(base64.b64decode(secret.inputs["data"]["kubeconfig"]))
    assert kubeconfig["clusters"][0]["cluster"] == {
        "server": "https://worker.test",
        "certificate-authority-data": CA_CERTIFICATE,
    }
    assert kubeconfig["users"] == [{"name": "multikueue-manager", "user": {"token": TOKEN}}]
    assert kubeconfig["current-context"] == kubeconfig["contexts"][0]["name"] == WORKER


def test_the_token_is_a_secret_all_the_way() -> None:
    recording = run_both()
    assert recording.one("Secret", "access/token").secret_outputs == ("data", "stringData")
    assert any(path.startswith("data") for path in recording.one("Secret", f"multikueue/{WORKER}").secrets)

    async def is_secret(made: WorkerAccess) -> None:
        assert await made.kubeconfig.is_secret()

    pulumi_mocks.run(lambda: pulumi.Output.from_input(is_secret(access())))


def test_the_token_is_nowhere_but_in_secret_inputs() -> None:
    encoded = base64.b64encode(TOKEN.encode()).decode()
    for resource in run_both():
        opened = json.dumps([resource.outputs, resource.inputs if not resource.secrets else {}, resource.name])
        assert TOKEN not in opened, resource.short
        assert encoded not in opened, resource.short


def test_nothing_prints_the_token(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    run_both()
    printed = "".join([*capfd.readouterr(), caplog.text])
    assert TOKEN not in printed
    assert base64.b64encode(TOKEN.encode()).decode() not in printed


def test_the_worker_grants_before_it_makes_the_token_and_waits_until_kubernetes_filled_it_in() -> None:
    recording = pulumi_mocks.run(access)
    token = recording.one("Secret", "access/token")
    assert token.inputs["type"] == "kubernetes.io/service-account-token"
    assert token.inputs["metadata"]["annotations"] == {
        "kubernetes.io/service-account.name": "multikueue-manager",
        "kueue-fleet.dev/rotate-by": "2027-02-01",
        "pulumi.com/waitFor": "jsonpath={.data.token}",
    }
    for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
        assert recording.is_before(recording.one(kind, f"access/{kind}"), token)
    binding = recording.one("ClusterRoleBinding")
    assert binding.replace_on_changes == ("roleRef",)
    assert binding.delete_before_replace


def test_the_right_to_write_where_jobs_are_is_there_before_the_roles_for_the_whole_worker() -> None:
    """A worker of an older version, where the account could write everywhere, is taken over without a gap."""
    recording = pulumi_mocks.run(access)
    bindings = recording.of_type("RoleBinding")
    assert [one.name for one in bindings] == [
        f"access/RoleBinding/{place}/multikueue-manager-jobs" for place in ("shared", "team-a")
    ]
    whole = recording.one("ClusterRole", "access/ClusterRole")
    assert whole.inputs["metadata"]["name"] == "multikueue-manager"
    assert all(recording.is_before(one, whole) for one in bindings)


def test_a_new_rotation_renames_the_token_secret_only() -> None:
    data = fleet_data(WORKER)
    data["multiKueue"]["credentials"]["rotation"] = "2027-05"
    before = pulumi_mocks.run(access)
    after = pulumi_mocks.run(lambda: access(parse_fleet(data)))
    changed = [urn for urn in before.resources if before.resources[urn].inputs != after.resources[urn].inputs]
    assert before.resources.keys() == after.resources.keys()
    assert changed == [before.one("Secret", "access/token").urn]
    assert after.resources[changed[0]].inputs["metadata"]["name"].endswith("2027-05")
    assert not after.resources[changed[0]].delete_before_replace


def test_a_token_that_never_came_is_an_error_that_names_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_token(self: object, args: Any) -> tuple[str, dict[str, Any]]:
        return args.name, {**args.inputs, "data": {}}

    monkeypatch.setattr(testing.Mocks, "new_resource", no_token)
    with pytest.raises(RuntimeError, match=f"worker {WORKER}: Kubernetes has put no token"):
        pulumi_mocks.run(lambda: access().kubeconfig)


def test_in_a_preview_the_token_is_not_known_yet_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing.Mocks, "new_resource", lambda self, args: ("", dict(args.inputs)))

    async def unknown(made: WorkerAccess) -> None:
        assert not await made.kubeconfig.is_known()

    pulumi_mocks.run(lambda: pulumi.Output.from_input(unknown(access())), preview=True)


def test_the_check_is_active_only_after_every_worker_answered() -> None:
    recording = pulumi_mocks.run(lambda: manager_side(fleet(WORKER, SECOND_WORKER)))
    clusters = recording.of_type("MultiKueueCluster")
    config = recording.one("MultiKueueConfig")
    check = recording.one("AdmissionCheck", custom=True)
    assert [c.inputs["metadata"]["name"] for c in clusters] == [SECOND_WORKER, WORKER]
    for cluster in clusters:
        # Kueue does not write the condition again where a worker stays connected: its generation may be an older one.
        waited = 'jsonpath={.status.conditions[?(@.type=="Active")].status}=True'
        assert cluster.inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": waited}
        assert recording.is_before(recording.one("Secret", cluster.name), cluster)
        assert recording.is_before(cluster, config)
    assert recording.is_before(config, check)
    assert check.inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Active"}


def test_a_worker_is_connected_after_what_must_stand_on_it() -> None:
    def program() -> None:
        queue = pulumi.CustomResource("lab:index:Queue", "queue")
        manager_side(fleet(WORKER, SECOND_WORKER), workers_ready={WORKER: [queue]})

    recording = pulumi_mocks.run(program)
    queue = recording.one("Queue")
    connected = {c.name: queue.urn in c.dependencies for c in recording.of_type("MultiKueueCluster")}
    assert connected == {f"multikueue/{WORKER}": True, f"multikueue/{SECOND_WORKER}": False}


def test_one_more_worker_changes_only_what_lists_the_workers() -> None:
    before = pulumi_mocks.run(manager_side)
    after = pulumi_mocks.run(lambda: manager_side(fleet(WORKER, SECOND_WORKER)))
    changed = {after.resources[u].short for u in before.resources if before.resources[u] != after.resources[u]}
    assert changed == {"MultiKueueConfig multikueue/multikueue", "MultiKueue multikueue"}


def test_with_cluster_profiles_there_are_no_kubeconfigs() -> None:
    data = fleet_data(WORKER)
    data["multiKueue"]["credentials"] = {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}
    spec = parse_fleet(data)
    recording = pulumi_mocks.run(lambda: manager_side(spec, kubeconfigs={WORKER: access(spec).kubeconfig}))
    assert not recording.of_type("Secret")
    assert not recording.of_type("ServiceAccount")
    assert recording.one("MultiKueueCluster").inputs["spec"] == {
        "clusterSource": {"clusterProfileRef": {"name": WORKER}}
    }
    profile = recording.one("ClusterProfile")
    [provider] = profile.inputs["status"]["accessProviders"]
    assert provider["cluster"] == {"server": "https://worker.test", "certificate-authority-data": CA_CERTIFICATE}
    assert not profile.secrets
    assert recording.is_before(profile, recording.one("MultiKueueCluster"))


def alone(**arguments: Any) -> None:
    """Both sides without a fleet."""
    credentials = kf.ServiceAccountToken("2026-11", rotate_by="2027-02-01")
    granted = WorkerAccess(
        "access",
        cluster_name=WORKER,
        endpoint="worker.test",
        ca_certificate=CA_CERTIFICATE,
        namespaces=["shared", "team-a"],
        **{"credentials": credentials, **arguments},
    )
    MultiKueue("multikueue", workers={WORKER: granted})


def test_without_a_fleet_the_same_resources_are_made() -> None:
    of_fleet, single = run_both(), pulumi_mocks.run(alone)
    result = {urn: resource for urn, resource in single.resources.items() if resource.custom}
    assert result.keys() == {urn for urn, resource in of_fleet.resources.items() if resource.custom}
    for urn, resource in result.items():
        assert resource.inputs == of_fleet.resources[urn].inputs, resource.short
    assert single.resources.keys() == of_fleet.resources.keys(), "components too"


def test_a_worker_is_connected_after_all_that_it_grants() -> None:
    recording = pulumi_mocks.run(alone)
    connected = recording.one("MultiKueueCluster")
    for kind in ("ServiceAccount", "ClusterRoleBinding"):
        assert recording.is_before(recording.one(kind), connected)


def test_a_google_account_needs_no_token() -> None:
    recording = pulumi_mocks.run(
        lambda: alone(credentials=None, google_account="lab-manager@lab-project.iam.gserviceaccount.com")
    )
    assert not recording.of_type("Secret")
    assert (
        recording.one("ClusterRoleBinding").inputs["subjects"][0]["name"]
        == "lab-manager@lab-project.iam.gserviceaccount.com"
    )
    assert recording.one("MultiKueueCluster").inputs["spec"]["clusterSource"]["clusterProfileRef"] == {"name": WORKER}
    assert recording.one("ClusterProfile").inputs["status"]["accessProviders"]


def test_each_check_has_workers_of_its_own() -> None:
    def program() -> None:
        grants = {name: WorkerGrant('{"clusters": [{}]}', "2026-11") for name in ("eu", "us")}
        result = MultiKueue("multikueue", workers=grants, checks={"everywhere": ["us", "eu"], "eu-only": ["eu"]})
        rules = [kf.AdmissionCheckStrategyRule(result.checks["eu-only"])]
        strategy = kf.AdmissionChecksStrategy(admission_checks=rules)
        kf.ClusterQueue("q", kf.ClusterQueueSpec(admission_checks_strategy=strategy))

    recording = pulumi_mocks.run(program)
    clusters = {item.inputs["metadata"]["name"]: item.inputs["spec"] for item in recording.of_type("MultiKueueConfig")}
    assert clusters == {"everywhere": {"clusters": ["us", "eu"]}, "eu-only": {"clusters": ["eu"]}}
    check = recording.one("AdmissionCheck", "multikueue/eu-only", custom=True)
    assert recording.is_before(check, recording.one("ClusterQueue", custom=True))


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: MultiKueue("m", workers={"eu": GRANT}, checks={"a": ["us"]}), r"m.checks\[a\]: us is not among"),
        (lambda: MultiKueue("m"), "there are no workers; give workers="),
        (lambda: MultiKueue("m", SPEC, workers={"eu": GRANT}), "there are no workers"),
        (lambda: alone(google_account="lab-manager@lab-project.iam.gserviceaccount.com"), "give exactly one of them"),
        (lambda: alone(credentials=kf.ServiceAccountToken("2026-11")), "rotateBy: is missing, but no controller"),
    ],
)
def test_what_does_not_go_together_is_refused(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(kf.SpecError, match=said):
        pulumi_mocks.run(mistake)


def test_a_missing_kubeconfig_is_refused() -> None:
    with pytest.raises(ValueError, match=f"worker {WORKER} has no kubeconfig; add it to kubeconfigs"):
        pulumi_mocks.run(lambda: manager_side(kubeconfigs={}))


def test_access_with_two_token_secrets_is_refused() -> None:
    [secret] = [item for item in render_worker_access(SPEC, WORKER) if item["kind"] == "Secret"]
    with pytest.raises(ValueError, match=r"WorkerAccess a\.objects: 2 Secrets were given; give one of type"):
        pulumi_mocks.run(
            lambda: WorkerAccess(
                "a", [secret] * 2, cluster_name=WORKER, endpoint="worker.test", ca_certificate=CA_CERTIFICATE
            )
        )
