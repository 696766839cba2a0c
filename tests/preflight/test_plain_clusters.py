"""Clusters outside GKE before the first `pulumi up`: what they serve, which Kueue they have, and what one may write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.preflight.needs import needs_of
from kueue_fleet.preflight.page import prerequisites_page
from kueue_fleet.preflight.plain_clusters import (
    ClusterFacts,
    ClusterNeeds,
    ClusterPart,
    Right,
    plain_cluster_findings,
    plain_cluster_needs,
    rights,
)
from plain_fleets import alone, alone_data, mixed

[NEEDS] = plain_cluster_needs(alone())
READY = ClusterFacts(version="v1.36.3", kinds=frozenset(NEEDS.kinds), user="ada")
POLICY = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")


def wrong(facts: ClusterFacts, needs: ClusterNeeds = NEEDS) -> list[str]:
    """What does not fit."""
    result = plain_cluster_findings(needs, facts)
    return [f"{item.verdict}: {item.what}: {item.wrong}; {item.fix}" for item in result if item.verdict != "fits"]


def test_only_clusters_outside_gke_are_asked_by_the_context_of_pulumi() -> None:
    assert [(item.cluster, item.context) for item in plain_cluster_needs(mixed())] == [("paris", "admin@paris")]


def test_the_kinds_are_those_of_kubernetes_itself() -> None:
    assert POLICY in NEEDS.kinds
    assert not [version for version, _ in NEEDS.kinds if "kueue" in version]
    assert "kueue.x-k8s.io" in NEEDS.groups


def test_a_cluster_that_is_ready() -> None:
    assert wrong(READY) == []


def test_one_that_does_not_answer_is_not_known() -> None:
    assert wrong(ClusterFacts(wrong="no answer", fix="correct it")) == [
        "unknown: paris: API server: no answer; correct it"
    ]


@pytest.mark.parametrize("part", ["kinds of objects", "Kueue", "rights"])
def test_a_part_that_is_not_read_is_not_known_and_the_others_are(part: ClusterPart) -> None:
    assert wrong(
        replace(READY, kinds=frozenset() if part == "kinds of objects" else READY.kinds, unread={part: "no"})
    ) == [f"unknown: paris: {part}{' of ada' if part == 'rights' else ''}: no; {NEEDS.fix}"]


def test_an_old_kubernetes_does_not_serve_a_kind() -> None:
    old = replace(READY, version="v1.29.4", kinds=READY.kinds - {POLICY})
    assert wrong(old) == [
        "ask: paris: kinds of objects: the cluster does not serve ValidatingAdmissionPolicy of "
        "admissionregistration.k8s.io/v1; upgrade Kubernetes, which is v1.29.4"
    ]


def test_a_check_of_the_autoscaler_needs_its_requests() -> None:
    check = {"name": "room", "provisioningRequest": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"}}
    [needs] = plain_cluster_needs(alone(admissionChecks=[check]))
    [output] = wrong(READY, needs)
    assert output.endswith(
        "ProvisioningRequest of autoscaling.x-k8s.io/v1; install the cluster autoscaler with ProvisioningRequests"
    )


@pytest.mark.parametrize(("release", "fits"), [(None, True), ("kueue-system/kueue", True), ("", False), ("a/b", False)])
def test_the_kueue_of_another_is_not_taken_over(release: str | None, fits: bool) -> None:
    result = wrong(replace(READY, release=release))
    assert result == ([] if fits else [
        "ask: paris: Kueue: Kueue is there, and Helm takes over no objects that are not of release kueue-system/kueue; "
        "set upsertExistingObjects: true on the cluster, which takes it over, or remove it"
    ])  # fmt: skip


def test_it_is_where_the_file_says_so() -> None:
    assert wrong(replace(READY, release=""), replace(NEEDS, takes_over=True)) == []


def test_rights_that_are_missing_are_named() -> None:
    denied = (Right("", "secrets"), Right("rbac.authorization.k8s.io", "clusterroles"))
    assert wrong(replace(READY, denied=denied)) == [
        "ask: paris: rights of ada: may not write secrets and clusterroles.rbac.authorization.k8s.io; let Pulumi use a "
        "context with the ClusterRole cluster-admin"
    ]


def test_rights_are_to_what_charts_and_the_fleet_make() -> None:
    expected = rights(NEEDS, {POLICY: "validatingadmissionpolicies"})
    assert {
        Right("", "secrets"),
        Right("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        Right("kueue.x-k8s.io", "*"),
    } <= set(expected)


def test_a_fleet_without_gke_asks_no_project() -> None:
    assert needs_of(alone()) == ()


def test_the_page_of_a_fleet_without_gke_names_its_contexts() -> None:
    page = prerequisites_page(alone(), list_prices())
    assert "| paris | `admin@paris` | v1, " in page
    assert "project" not in page


def test_a_prometheus_operator_has_to_be_there_for_its_pod_monitors() -> None:
    data = alone_data()
    data["clusters"][0]["podMonitors"] = {}
    [needs] = plain_cluster_needs(parse_fleet(data))
    served = frozenset(kind for kind in needs.kinds if kind[1] != "PodMonitor")
    assert wrong(replace(READY, kinds=served), needs) == [
        "ask: paris: kinds of objects: the cluster does not serve PodMonitor of monitoring.coreos.com/v1; install the "
        "Prometheus Operator, or remove podMonitors"
    ]
    assert "monitoring.coreos.com" not in needs.groups
