"""Names: once in each list, and none that the fleet itself makes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet, fleet_data, problems

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.rules.files import UNUSED

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cluster twice": (
        {"clusters/2/name": "worker-a", "flavors/1/clusters": ["worker-a"]},
        ["clusters[2].name: worker-a is already the name of clusters[1]; give each cluster a unique name"],
    ),
    "flavor twice": (
        {"flavors/+": {"name": "l4"}},
        ["flavors[2].name: l4 is already the name of flavors[0]; give each flavor a unique name"],
    ),
    "topology twice": (
        {
            "topologies": [
                {"name": "t", "levels": [{"nodeLabel": "a"}]},
                {"name": "t", "levels": [{"nodeLabel": "a"}]},
            ],
            "flavors/0/topologyName": "t",
        },
        ["topologies[1].name: t is already the name of topologies[0]; give each topology a unique name"],
    ),
    "longer than the labels of jobs": (
        {
            "localQueues/+": {"name": "q" * 64, "namespace": "extra", "clusterQueue": "vision"},
            "workloadPriorityClasses/+": {"name": "p" * 64, "value": 1},
        },
        [
            f"workloadPriorityClasses[{'p' * 64}].name: {'p' * 64} is 64 characters long, and jobs name it in a "
            "label, which has at most 63; write a shorter name",
            f"localQueues[{'q' * 64}].name: {'q' * 64} is 64 characters long, and jobs name it in a label, which has "
            "at most 63; write a shorter name",
        ],
    ),
    "cohort twice": (
        {"cohorts/+": {"name": "research"}},
        ["cohorts[1].name: research is already the name of cohorts[0]; give each cohort a unique name"],
    ),
    "queue twice": (
        {"clusterQueues/1/name": "vision", "teams/1/localQueues/0/clusterQueue": "vision"},
        ["clusterQueues[1].name: vision is already the name of clusterQueues[0]; give each queue a unique name"],
    ),
    "check twice": (
        {"admissionChecks/+": {"name": "dws", "controllerName": "example.com/x"}},
        ["admissionChecks[1].name: dws is already the name of admissionChecks[0]; give each check a unique name"],
    ),
    "priority class twice": (
        {"priorityClasses/+": {"name": "batch", "value": 1}},
        [
            (
                "priorityClasses[1].name: batch is already the name of priorityClasses[0]; give each priority "
                "class a unique name"
            )
        ],
    ),
    "workload priority class twice": (
        {"workloadPriorityClasses/+": {"name": "urgent", "value": 1}},
        [
            (
                "workloadPriorityClasses[1].name: urgent is already the name of workloadPriorityClasses[0]; give "
                "each workload priority class a unique name"
            )
        ],
    ),
    "team twice": (
        {"teams/1/name": "team-vision", "teams/1/namespaces": ["other"]},
        ["teams[1].name: team-vision is already the name of teams[0]; give each team a unique name"],
    ),
    "check with the MultiKueue check's name": (
        {"multiKueue/admissionCheckName": "dws"},
        [
            (
                "admissionChecks[dws].name: dws is the name of the MultiKueue check that the fleet makes; use "
                "another name, or change multiKueue.admissionCheckName"
            )
        ],
    ),
    "config name taken": (
        {
            "admissionChecks/+": {
                "name": "dws2",
                "provisioningRequest": {"configName": "dws", "provisioningClassName": "queued-provisioning.gke.io"},
            },
            "clusterQueues/1/admissionChecksStrategy": {"admissionChecks": [{"name": "dws2"}]},
        },
        [
            (
                "admissionChecks[dws2].provisioningRequest.configName: dws is already the config of "
                "admissionChecks[dws]; set another configName"
            )
        ],
    ),
    "check name no config name": (
        {
            "admissionChecks/0/name": "dws.prov",
            "clusterQueues/0/admissionChecksStrategy/admissionChecks/0/name": "dws.prov",
        },
        [
            (
                "admissionChecks[dws.prov].provisioningRequest.configName: not set, and the check's name "
                "dws.prov cannot be the name of a ProvisioningRequestConfig, to which a check refers by at most "
                "63 letters, digits and hyphens; set configName"
            )
        ],
    ),
}

REFUSED["config of a queue on some workers"] = (
    {
        "clusterQueues/1/name": "language.models",
        "clusterQueues/1/clusters": ["worker-b"],
        "teams/1/localQueues/0/clusterQueue": "language.models",
    },
    [
        "clusterQueues[language.models].name: language.models is on some workers only, and the MultiKueueConfig for "
        "these would be called multikueue-language.models, to which a check refers by at most 63 letters, digits and "
        "hyphens; shorten the queue's name, and write it without dots"
    ],
)

ACCEPTED: dict[str, dict[str, Any]] = {
    "same name in different lists": {
        "workloadPriorityClasses/0/name": "batch",
        "cohorts/0/name": "vision",
        "clusterQueues/0/cohortName": "vision",
        "clusterQueues/1/cohortName": "vision",
    },
    "config name given": {
        "admissionChecks/0/name": "dws.prov",
        "admissionChecks/0/provisioningRequest/configName": "dws",
        "clusterQueues/0/admissionChecksStrategy/admissionChecks/0/name": "dws.prov",
    },
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changes: dict[str, Any]) -> None:
    assert problems(changed(fleet_data(), changes)) == []


def test_problems_are_in_the_order_of_the_file() -> None:
    paths = ["observability.alerts", "teams[team-a]", "clusters[worker-b]", "clusters[manager]", "enableApis", ""]
    result = Scope(fleet()).in_file_order(UNUSED.at(path, "wrong", "mend it") for path in paths)
    assert [problem.path for problem in result] == [*reversed(paths)]
