"""Raw Kubernetes objects, among them shapes that other tools have shipped."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import queue, quota

from kueue_admission.api import check_objects


def said_about(text: str) -> list[str]:
    """What is said about the YAML documents in `text`."""
    return [str(problem) for problem in check_objects(yaml.safe_load_all(text))]


def test_v1beta2_queue_with_the_checks_of_v1beta1() -> None:
    text = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: dws-cluster-queue}
spec:
  namespaceSelector: {}
  cohort: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: default-flavor
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 10000}
  admissionChecks: [dws-prov]
"""
    assert said_about(text) == [
        "ClusterQueue[dws-cluster-queue].spec.cohort: was removed in Kueue's v1beta2; write cohortName",
        (
            "ClusterQueue[dws-cluster-queue].spec.admissionChecks: was removed in Kueue's v1beta2; write "
            "admissionChecksStrategy.admissionChecks, a list of {name, onFlavors}"
        ),
    ]


CHECKS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: dws-prov}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: dws-config}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: multikueue}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: multikueue}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: multikueue-2}
spec: {controllerName: kueue.x-k8s.io/multikueue}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: default-flavor, resources: [{name: cpu, nominalQuota: 4}]}
  admissionChecksStrategy:
    admissionChecks:
"""
AT = "ClusterQueue[cluster-queue].spec.admissionChecksStrategy.admissionChecks"


def test_queue_that_dispatches_and_asks_for_capacity_itself() -> None:
    assert said_about(f"{CHECKS}    - name: dws-prov\n    - name: multikueue\n") == [
        (
            f"{AT}: multikueue dispatches to other clusters and dws-prov asks for capacity here, and Kueue allows no "
            "queue both; remove dws-prov here, and put it on the workers' queues"
        )
    ]


def test_two_multikueue_checks() -> None:
    assert said_about(f"{CHECKS}    - name: multikueue\n    - name: multikueue-2\n") == [
        f"{AT}: multikueue, multikueue-2 are all MultiKueue checks, but a queue may have one; keep one of them"
    ]


def test_multikueue_check_for_single_flavors() -> None:
    assert said_about(f"{CHECKS}    - name: multikueue\n      onFlavors: [default-flavor]\n") == [
        f"{AT}[multikueue].onFlavors: multikueue is a MultiKueue check, which is for every flavor; remove onFlavors"
    ]


def test_good_queue() -> None:
    assert said_about(f"{CHECKS}    - name: multikueue\n    - name: not-given-here\n") == []


def kueue(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, **fields}


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "old version": (
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "ClusterQueue",
            "metadata": {"name": "x"},
            "spec": {"cohort": "a"},
        },
        [
            "ClusterQueue[x].apiVersion: kueue.x-k8s.io/v1beta1 is not kueue.x-k8s.io/v1beta2; "
            "write it as kueue.x-k8s.io/v1beta2"
        ],
    ),
    "unknown kind": (
        kueue("ClusterQeue"),
        ["ClusterQeue[x].kind: Kueue has no kind ClusterQeue; did you mean ClusterQueue?"],
    ),
    "rule": (
        kueue(
            "ClusterQueue",
            spec=queue(
                resourceGroups=[
                    {"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": [quota("cpu", -1)]}]}
                ]
            ),
        ),
        [
            "ClusterQueue[x].spec.resourceGroups[0].flavors[a].resources[cpu].nominalQuota: -1 is negative; "
            "write 0 or a positive amount"
        ],
    ),
    "spec no map": (
        kueue("Cohort", spec=["a"]),
        ["Cohort[x].spec: a list is given where a map is needed; write its fields as 'name: value', one on each line"],
    ),
    "no spec": (
        kueue("LocalQueue"),
        ["LocalQueue[x].spec.clusterQueue: is missing; add the name of the ClusterQueue behind it"],
    ),
    "workload priority under spec": (
        kueue("WorkloadPriorityClass", spec={"value": 1}),
        [
            "WorkloadPriorityClass[x].value: is missing; add value",
            "WorkloadPriorityClass[x].spec: is not a known field; remove it, or use one of description, value",
        ],
    ),
    "priority class": (
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "x"}, "value": 2 * 10**9},
        [
            "PriorityClass[x].value: 2000000000 is above 1000000000, the highest priority outside the system; "
            "use a lower value"
        ],
    ),
}


@pytest.mark.parametrize(("document", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(document: dict[str, Any], expected: list[str]) -> None:
    assert [str(problem) for problem in check_objects([document])] == expected


PASSED_OVER: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"anything": 1}},
    kueue("Workload", spec={"anything": 1}),
    kueue("Topology", spec={"levels": [{"nodeLabel": "a"}]}, status={}),
    {},
]


@pytest.mark.parametrize("document", PASSED_OVER)
def test_nothing_to_say(document: dict[str, Any]) -> None:
    assert check_objects([document]) == []
