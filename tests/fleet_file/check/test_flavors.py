"""Flavors, topologies and admission checks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems

PLACED = (
    "warning: flavors[l4].topologyName: rack: Kueue admits jobs of this flavor only onto nodes that are there, and GKE "
    "makes none on"
)
BEFORE = "before there are pods; remove topologyName, or write nodePool"

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown cluster": (
        {"flavors/1/clusters": ["worker-x"]},
        ["flavors[t4].clusters[0]: there is no cluster worker-x; did you mean worker-b?"],
    ),
    "cluster twice": (
        {"flavors/1/clusters": ["worker-b", "worker-b"]},
        ["flavors[t4].clusters[1]: worker-b is listed twice; list each cluster once"],
    ),
    "unknown topology": (
        {
            "flavors/0/topologyName": "rak",
            "topologies": [{"name": "rack", "levels": [{"nodeLabel": "example.com/rack"}]}],
        },
        [
            "flavors[l4].topologyName: there is no topology rak; did you mean rack?",
            "warning: topologies[rack]: no flavor uses this topology; set topologyName on a flavor, or remove it",
        ],
    ),
    "topology not there": (
        {
            "flavors/0/topologyName": "rack",
            "topologies": [{"name": "rack", "clusters": ["worker-a"], "levels": [{"nodeLabel": "example.com/rack"}]}],
        },
        [
            (
                "flavors[l4].topologyName: topology rack does not exist on worker-b, where the flavor does; add "
                "worker-b to topologies[rack].clusters, or leave worker-b out of the flavor's"
            ),
            f"{PLACED} worker-a {BEFORE}",
        ],
    ),
    "topology of nodes that GKE makes": (
        {
            "flavors/0/topologyName": "rack",
            "topologies": [{"name": "rack", "levels": [{"nodeLabel": "example.com/rack"}]}],
        },
        [f"{PLACED} worker-a and worker-b {BEFORE}"],
    ),
    "topology on unknown cluster": (
        {
            "flavors/1/topologyName": "rack",
            "topologies": [
                {"name": "rack", "clusters": ["worker-b", "wrker-a"], "levels": [{"nodeLabel": "example.com/rack"}]}
            ],
        },
        ["topologies[rack].clusters[1]: there is no cluster wrker-a; did you mean worker-a?"],
    ),
    "topology unused": (
        {"topologies": [{"name": "rack", "levels": [{"nodeLabel": "example.com/rack"}]}]},
        ["warning: topologies[rack]: no flavor uses this topology; set topologyName on a flavor, or remove it"],
    ),
    "flavor unused": (
        {"flavors/+": {"name": "a100"}},
        ["warning: flavors[a100]: no queue has quota on this flavor; add quota for it to a queue, or remove it"],
    ),
    "check unused": (
        {"admissionChecks/+": {"name": "residency", "controllerName": "example.com/r"}},
        [
            (
                "warning: admissionChecks[residency]: no queue uses this check; name it in a queue's "
                "admissionChecksStrategy, or remove it"
            )
        ],
    ),
    "check on unknown cluster": (
        {"admissionChecks/0/clusters": ["worker-a", "worker-b", "worker-c"]},
        ["admissionChecks[dws].clusters[2]: there is no cluster worker-c; did you mean worker-b?"],
    ),
    "run too long": (
        {"admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "604801"}},
        [
            (
                'admissionChecks[dws].provisioningRequest.parameters[maxRunDurationSeconds]: "604801" is not a run '
                'time that DWS grants; write whole seconds between "1" and "604800", which is seven days'
            )
        ],
    ),
    "run no number": (
        {"admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "7d"}},
        [
            (
                'admissionChecks[dws].provisioningRequest.parameters[maxRunDurationSeconds]: "7d" is not a run time '
                'that DWS grants; write whole seconds between "1" and "604800", which is seven days'
            )
        ],
    ),
    "run not in ASCII": (
        {"admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "²"}},
        [
            (
                'admissionChecks[dws].provisioningRequest.parameters[maxRunDurationSeconds]: "²" is not a run time '
                'that DWS grants; write whole seconds between "1" and "604800", which is seven days'
            )
        ],
    ),
    "class misspelt": (
        {"admissionChecks/0/provisioningRequest/provisioningClassName": "queue-provisioning.gke.io"},
        [
            (
                "warning: admissionChecks[dws].provisioningRequest.provisioningClassName: "
                "queue-provisioning.gke.io is not a class that GKE or the cluster autoscaler answers; did you mean "
                "queued-provisioning.gke.io?"
            )
        ],
    ),
    "misspelt resource and parameter": (
        {
            "admissionChecks/0/provisioningRequest/managedResources": ["nvidia/gpu", "google.com/tpu", "cpu"],
            "admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSecond": "60", "other": "x"},
        },
        [
            "warning: admissionChecks[dws].provisioningRequest.managedResources[0]: nvidia/gpu is not a resource of a "
            "queue that uses the check; did you mean nvidia.com/gpu?",
            "warning: admissionChecks[dws].provisioningRequest.parameters[maxRunDurationSecond]: maxRunDurationSecond "
            "is not a parameter that DWS reads; did you mean maxRunDurationSeconds?",
        ],
    ),
    "retry base above max": (
        {"admissionChecks/0/provisioningRequest/retryStrategy": {"backoffBaseSeconds": 600, "backoffMaxSeconds": 60}},
        [
            (
                "warning: admissionChecks[dws].provisioningRequest.retryStrategy.backoffBaseSeconds: 600 is more "
                "than backoffMaxSeconds, 60; raise backoffMaxSeconds or lower this"
            )
        ],
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "seven days": {"admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "604800"}},
    "another class": {
        "admissionChecks/0/provisioningRequest/provisioningClassName": "capacity.example.com",
        "admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "7d"},
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []


def test_pools_of_an_existing_cluster_that_the_file_does_not_name_may_have_nodes() -> None:
    changes = {
        "flavors/0/topologyName": "rack",
        "topologies": [{"name": "rack", "levels": [{"nodeLabel": "example.com/rack"}]}],
        "clusters/1": {
            "name": "worker-a",
            "role": "worker",
            "region": "us-east4",
            "mode": "Standard",
            "existing": True,
        },
    }
    assert [text for text in problems(changed(fleet_data(), changes)) if "topologyName" in text] == [
        f"{PLACED} worker-b {BEFORE}"
    ]
