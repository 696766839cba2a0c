"""What a change of a company's fleet does, and what it leaves alone.

Two graphs are compared, before and after. A resource that is the same in both is not touched; one whose inputs differ
is changed in place, or replaced where a provider cannot do that; dependencies that differ touch nothing in the cloud.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import pulumi_mocks
from company_fleet import MANAGER, WORKERS, company_data, without_worker
from declared_fleets import company, stack, stack_config
from kueue_admission.api.configuration import overlay
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet
from pulumi_mocks import Recorded, Recording

EUROPE, US, ASIA = WORKERS


@dataclass(frozen=True)
class Difference:
    """The resources of the cloud that a change touches, as `Type name`."""

    added: frozenset[str]
    removed: frozenset[str]
    changed: frozenset[str]

    def kinds(self) -> set[str]:
        """The types of everything that is touched."""
        return {item.split()[0] for item in self.added | self.removed | self.changed}


def declare(data: dict[str, Any]) -> Recording:
    spec = parse_fleet(data)
    return pulumi_mocks.run(lambda: Fleet(spec.name, spec))


@pytest.fixture(scope="module")
def before() -> Recording:
    return company()


def difference(before: Recording, after: Recording) -> Difference:
    def touched(recording: Recording, urns: set[str]) -> frozenset[str]:
        return frozenset(r.short for urn in urns if (r := recording.resources[urn]).custom)

    old, new = before.resources.keys(), after.resources.keys()
    changed = {urn for urn in old & new if sent(before.resources[urn]) != sent(after.resources[urn])}
    return Difference(touched(after, new - old), touched(before, old - new), touched(after, changed))


def sent(resource: Recorded) -> tuple[Any, ...]:
    """What the provider and the engine go by; what else a resource waits for is not among it."""
    return resource.inputs, resource.provider, resource.protect, resource.retain_on_delete, resource.deleted_with


def changed_by(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    data = company_data()
    change(data)
    return data


def test_the_same_file_again_changes_nothing(before: Recording) -> None:
    assert difference(before, declare(company_data())) == Difference(frozenset(), frozenset(), frozenset())


def another_machine_type(data: dict[str, Any], pool: str) -> None:
    next(entry for entry in data["nodePools"] if entry["name"] == pool)["machineType"] = "g2-standard-48"


def team_more(data: dict[str, Any], name: str, **fields: Any) -> None:
    data["teams"].append({**copy.deepcopy(data["teams"][0]), "name": name, **fields})


@pytest.fixture(scope="module")
def after_four_changes() -> Recording:
    """Four changes at once, which touch nothing in common: each test below takes what is its own and looks at that."""
    data = company_data(kueue={"version": "0.19.3"})
    another_machine_type(data, "l4-spot")
    team_more(data, "genomics", members=["user:genomics@company.test"])
    data["multiKueue"]["credentials"] |= {"rotation": "2027-02", "rotateBy": "2027-05-01"}
    return declare(data)


POOLS = {f"NodePool {cluster}/l4-spot" for cluster in WORKERS}
RELEASES = {f"Release {cluster}/kueue" for cluster in (MANAGER, *WORKERS)}
TOKENS = {f"Secret {worker}/multikueue/token" for worker in WORKERS}
CONNECTIONS = {
    f"{kind} {MANAGER}/multikueue/{worker}" for kind in ("Secret", "MultiKueueCluster") for worker in WORKERS
}


def test_changes_touch_what_they_name_and_nothing_else(before: Recording, after_four_changes: Recording) -> None:
    result = difference(before, after_four_changes)
    assert not result.removed
    assert result.changed == POOLS | RELEASES | TOKENS | CONNECTIONS
    assert all("genomics" in item for item in result.added)


def test_another_machine_type_replaces_the_pool_in_its_place(after_four_changes: Recording) -> None:
    for name in POOLS:
        pool = after_four_changes.one("gcp:container/nodePool:NodePool", name.split()[1])
        # GKE cannot change GPUs in place: should the pool be replaced, the old one, of the same name, goes first.
        assert pool.delete_before_replace
        assert pool.inputs["name"] == "l4-spot"
        assert pool.inputs["nodeConfig"]["guestAccelerators"][0]["count"] == 4


def test_a_region_that_is_removed_takes_its_own_with_it_and_changes_what_lists_the_workers(before: Recording) -> None:
    result = difference(before, declare(without_worker(ASIA)))
    assert not result.added
    region = "asia-southeast1"
    assert all(ASIA in item or region in item for item in result.removed)
    assert not [item for item in result.removed if US in item or EUROPE in item]
    assert f"Cluster {ASIA}" in result.removed
    assert f"MultiKueueCluster {MANAGER}/multikueue/{ASIA}" in result.removed
    assert f"Secret {MANAGER}/multikueue/{ASIA}" in result.removed
    assert result.changed == {
        f"MultiKueueConfig {MANAGER}/multikueue/multikueue",
        # The sum of the workers' quotas.
        f"ClusterQueue {MANAGER}/gpu",
        "AlertPolicy kueue-gone",
        "AlertPolicy provisioning-stuck",
        "AlertPolicy queue-inactive",
    }


def test_a_region_cannot_be_removed_while_it_is_protected(before: Recording) -> None:
    guarded = {r.short for r in before if r.custom and r.protect and ASIA in r.name}
    releases = {f"Release {ASIA}/kueue", f"Release {ASIA}/jobset"}
    assert {f"Cluster {ASIA}", f"NodePool {ASIA}/system", f"NodePool {ASIA}/b200", *releases} <= guarded
    assert {short.split()[0] for short in guarded} == {"Cluster", "NodePool", "Release"}

    def lift(data: dict[str, Any]) -> None:
        next(cluster for cluster in data["clusters"] if cluster["name"] == ASIA)["deletionProtection"] = False

    after = declare(changed_by(lift))
    assert difference(before, after).changed == guarded
    assert not [r.short for r in after if r.protect and ASIA in r.name]
    assert after.one("gcp:container/cluster:Cluster", ASIA).inputs["deletionProtection"] is False
    assert after.one("gcp:container/cluster:Cluster", US).protect


def test_a_patch_of_kueue_upgrades_the_releases_in_place(before: Recording, after_four_changes: Recording) -> None:
    for name in RELEASES:
        old, new = (recording.one("Release", name.split()[1]).inputs for recording in (before, after_four_changes))
        assert {key for key in old if old[key] != new[key]} == {"version", "values"}
        tag = {"controllerManager": {"manager": {"image": {"tag": "v0.19.3"}}}}
        assert new["values"] == overlay(old["values"], tag) != old["values"]


def test_a_team_that_joins_has_everything_on_every_cluster(before: Recording, after_four_changes: Recording) -> None:
    result = difference(before, after_four_changes)
    on_each = {"Namespace", "ServiceAccount", "Role", "RoleBinding", "ResourceQuota", "NetworkPolicy", "LocalQueue"}
    policy = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert {item.split()[0] for item in result.added} == {*on_each, *policy, "Account", "IAMMember"}
    for cluster in (MANAGER, *WORKERS):
        added = {item.split()[0] for item in result.added if f" {cluster}/" in item}
        assert added == on_each | (policy if cluster == MANAGER else set())


def test_rotated_credentials_are_new_tokens_and_new_kubeconfigs(
    before: Recording, after_four_changes: Recording
) -> None:
    after = after_four_changes
    for worker in WORKERS:
        old, new = (recording.one("Secret", f"{worker}/multikueue/token") for recording in (before, after))
        # Another name: Kubernetes keeps both until the manager has the new one.
        assert old.inputs["metadata"]["name"] != new.inputs["metadata"]["name"]
        assert not new.delete_before_replace
        kubeconfig = after.one("Secret", f"{MANAGER}/multikueue/{worker}")
        assert kubeconfig.inputs["metadata"]["name"] == f"{worker}-2027-02"
        assert not kubeconfig.delete_before_replace
        assert after.is_before(new, kubeconfig)
        assert after.is_before(kubeconfig, after.one("MultiKueueCluster", f"{MANAGER}/multikueue/{worker}"))


@pytest.fixture(scope="module")
def prod() -> Recording:
    return stack("prod").recording


def prod_after(change: Callable[[dict[str, Any]], None]) -> Recording:
    data = stack_config("prod")["fleet"]
    change(data)
    return declare(data)


PROD_WORKERS = ("worker-europe-west4", "worker-us-central1", "worker-asia-southeast1")


def test_prod_a_region_less(prod: Recording) -> None:
    gone, region = "worker-asia-southeast1", "asia-southeast1"

    def change(data: dict[str, Any]) -> None:
        data["clusters"] = [cluster for cluster in data["clusters"] if cluster["name"] != gone]
        data["reservations"] = [entry for entry in data["reservations"] if not entry["zone"].startswith(region)]
        for pool in data["nodePools"]:
            pool.get("perCluster", {}).pop(gone, None)
        data["multiKueue"]["workers"].remove(gone)
        del data["controller"]["prices"][region]

    result = difference(prod, prod_after(change))
    assert not result.added
    elsewhere = {item for item in result.removed if gone not in item and region not in item}
    # The two workers that are left are also those of the queue foundation, which had a check of its own.
    own = "manager-europe-west4/multikueue/multikueue-foundation"
    assert elsewhere == {f"AdmissionCheck {own}", f"MultiKueueConfig {own}"}
    assert {f"Cluster {gone}", f"Reservation l4-{region}"} <= result.removed
    # The manager's quotas are the sum of the workers', and alerts name the clusters, as the controller's files do.
    kinds = {"MultiKueueConfig", "ClusterQueue", "Cohort", "AlertPolicy", "ConfigMap", "Deployment"}
    assert {item.split()[0] for item in result.changed} == kinds
    assert not [item for item in result.changed if any(worker in item for worker in ("worker-us", "worker-europe"))]


def test_prod_a_patch_of_kueue_another_machine_type_and_a_team_more(prod: Recording) -> None:
    def change(data: dict[str, Any]) -> None:
        data.update(kueue={"version": "0.19.3"})
        another_machine_type(data, "l4-on-demand")
        queue = {"name": "foundation", "clusterQueue": "foundation"}
        team_more(data, "robotics", members=["group:robotics@example.com"], localQueues=[queue])

    result = difference(prod, prod_after(change))
    releases = {f"Release {cluster}/kueue" for cluster in ("manager-europe-west4", *PROD_WORKERS)}
    pools = {f"NodePool {worker}/l4-on-demand" for worker in PROD_WORKERS}
    assert result.changed == releases | pools
    assert not result.removed
    assert all("robotics" in item for item in result.added)


def with_tokens(data: dict[str, Any]) -> None:
    token = {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}
    data["multiKueue"]["credentials"] = token


@pytest.fixture(scope="module")
def prod_with_tokens() -> Recording:
    return prod_after(with_tokens)


def test_prod_with_tokens_rotated(prod_with_tokens: Recording) -> None:
    def change(data: dict[str, Any]) -> None:
        with_tokens(data)
        data["multiKueue"]["credentials"] |= {"rotation": "2027-02", "rotateBy": "2027-05-01"}

    result = difference(prod_with_tokens, prod_after(change))
    changed = {f"Secret {worker}/{who}/token" for worker in PROD_WORKERS for who in ("multikueue", "controller")}
    manager = "manager-europe-west4"
    for worker in PROD_WORKERS:
        changed |= {f"{kind} {manager}/multikueue/{worker}" for kind in ("Secret", "MultiKueueCluster")}
        changed |= {f"Secret {manager}/controller/workers/{worker}", f"Role {worker}/controller/Role"}
    # The controller renews the tokens in the Secrets of these names, and no others.
    changed |= {f"{kind} {manager}/controller/{kind}" for kind in ("Deployment", "ConfigMap")}
    tokens = "kueue-fleet-controller-tokens"
    changed |= {f"Role {manager}/controller/Role/{place}/{tokens}" for place in ("kueue-system", "kueue-fleet-system")}
    assert result == Difference(frozenset(), frozenset(), frozenset(changed))


def test_prod_from_tokens_to_google_accounts_keeps_every_role_and_binding(
    prod: Recording, prod_with_tokens: Recording
) -> None:
    results = difference(prod_with_tokens, prod)
    manager, kept = "manager-europe-west4", {"ClusterRole", "ClusterRoleBinding", "MultiKueueCluster"}
    assert not {item for item in results.removed | results.added if item.split()[0] in kept}
    bindings = {item.removeprefix("RoleBinding ") for item in results.removed if item.startswith("RoleBinding ")}
    assert all("/controller/RoleBinding" in item and "-jobs" not in item for item in bindings), "of tokens, no others"
    assert {item.split()[0] for item in results.removed} == {"Secret", "ServiceAccount", "Role", "RoleBinding"}
    result = {"Account", "IAMMember", "IAMCustomRole", "CustomResourceDefinition", "ClusterProfile", "ConfigMap"}
    assert result < {item.split()[0] for item in results.added}
    assert f"DeploymentPatch {manager}/kueue-plugin/Deployment" in results.added
    assert f"MultiKueueCluster {manager}/multikueue/{PROD_WORKERS[0]}" in results.changed


def test_prod_protects_what_cannot_be_had_again(prod: Recording) -> None:
    guarded = {r.type.rsplit(":", 1)[-1] for r in prod if r.custom and r.protect}
    assert guarded == {"Cluster", "NodePool", "Reservation", "Release"}
    assert all(r.retain_on_delete for r in prod.of_type("Reservation") if r.custom)
