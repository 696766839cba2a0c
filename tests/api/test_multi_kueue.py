"""MultiKueueConfig and MultiKueueCluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import model_problems

from kueue_admission.api import MultiKueueClusterSpec, MultiKueueConfigSpec

REFUSED_MULTIKUEUE_CLUSTER_SPEC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no source": (
        {},
        ["clusterSource: is missing; add clusterSource"],
    ),
    "empty source": (
        {"clusterSource": {}},
        ["clusterSource: neither kubeConfig nor clusterProfileRef is set; set exactly one of the two"],
    ),
    "both sources": (
        {"clusterSource": {"kubeConfig": {"location": "a"}, "clusterProfileRef": {"name": "a"}}},
        ["clusterSource: both kubeConfig and clusterProfileRef are set; set exactly one of the two"],
    ),
    "empty location": (
        {"clusterSource": {"kubeConfig": {"location": ""}}},
        ['clusterSource.kubeConfig.location: "" is empty; write a value'],
    ),
    "location type": (
        {"clusterSource": {"kubeConfig": {"location": "a", "locationType": "File"}}},
        ['clusterSource.kubeConfig.locationType: "File" is not allowed; use one of Secret, Path'],
    ),
    "kubeConfig of v1beta1": (
        {"kubeConfig": {"location": "a"}},
        [
            "clusterSource: is missing; add clusterSource",
            "kubeConfig: was removed in Kueue's v1beta2; write clusterSource.kubeConfig",
        ],
    ),
}

ACCEPTED_MULTIKUEUE_CLUSTER_SPEC: dict[str, dict[str, Any]] = {
    "secret": {"clusterSource": {"kubeConfig": {"location": "a"}}},
    "profile": {"clusterSource": {"clusterProfileRef": {"name": "a"}}},
}

REFUSED_MULTIKUEUE_CONFIG_SPEC: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no clusters": (
        {"clusters": []},
        ["clusters: no items; list at least 1"],
    ),
    "21 clusters": (
        {"clusters": [f"c{i}" for i in range(21)]},
        ["clusters: 21 items; use at most 20"],
    ),
    "cluster twice": (
        {"clusters": ["a", "b", "a"]},
        ["clusters[2]: a is listed twice; list each cluster once"],
    ),
    "long name": (
        {"clusters": ["a" * 257]},
        [
            (
                'clusters[0]: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..." '
                "is too long; use at most 256 characters"
            )
        ],
    ),
    "quotaManagement": (
        {"clusters": ["a"], "quotaManagement": "Auto"},
        ['quotaManagement: "Auto" is not allowed; did you mean Automated? Allowed: Manual, Automated'],
    ),
}

ACCEPTED_MULTIKUEUE_CONFIG_SPEC: dict[str, dict[str, Any]] = {
    "20 clusters": {"clusters": [f"c{i}" for i in range(20)], "quotaManagement": "Manual"},
}


@pytest.mark.parametrize(
    ("data", "expected"), REFUSED_MULTIKUEUE_CLUSTER_SPEC.values(), ids=REFUSED_MULTIKUEUE_CLUSTER_SPEC.keys()
)
def test_multikueue_cluster_spec_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(MultiKueueClusterSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED_MULTIKUEUE_CLUSTER_SPEC.values(), ids=ACCEPTED_MULTIKUEUE_CLUSTER_SPEC.keys())
def test_multikueue_cluster_spec_accepted(data: dict[str, Any]) -> None:
    assert model_problems(MultiKueueClusterSpec, data) == []


@pytest.mark.parametrize(
    ("data", "expected"), REFUSED_MULTIKUEUE_CONFIG_SPEC.values(), ids=REFUSED_MULTIKUEUE_CONFIG_SPEC.keys()
)
def test_multikueue_config_spec_refused(data: dict[str, Any], expected: list[str]) -> None:
    assert model_problems(MultiKueueConfigSpec, data) == expected


@pytest.mark.parametrize("data", ACCEPTED_MULTIKUEUE_CONFIG_SPEC.values(), ids=ACCEPTED_MULTIKUEUE_CONFIG_SPEC.keys())
def test_multikueue_config_spec_accepted(data: dict[str, Any]) -> None:
    assert model_problems(MultiKueueConfigSpec, data) == []
