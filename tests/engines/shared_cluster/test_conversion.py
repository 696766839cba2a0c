"""Objects of v1beta1: what Kueue's own conversion webhook makes of them is what ours makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kueue_admission.api.conversion import as_v1beta2
from one_cluster import OneCluster, Refused, wait_until

Json = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
GROUP = "/apis/kueue.x-k8s.io"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
DOMAINS = [{"values": ["rack-1"], "count": 2}, {"values": ["rack-2"], "count": 1}]
TIME = "2026-01-01T00:00:00Z"
OBJECTS: dict[str, tuple[str, Json]] = {
    "ResourceFlavor": ("resourceflavors", {"spec": {"nodeLabels": {"a": "b"}, "topologyName": "old"}}),
    "Topology": ("topologies", {"spec": {"levels": [{"nodeLabel": "example.com/rack"}]}}),
    "AdmissionCheck": (
        "admissionchecks",
        {"spec": {"controllerName": "example.com/nobody", "retryDelayMinutes": 7}},
    ),
    "Cohort": ("cohorts", {"spec": {"parentName": "root", "fairSharing": {"weight": "2"}}}),
    "MultiKueueConfig": ("multikueueconfigs", {"spec": {"clusters": ["old"]}}),
    "MultiKueueCluster": (
        "multikueueclusters",
        {"spec": {"kubeConfig": {"location": "no-secret", "locationType": "Secret"}}},
    ),
    "ProvisioningRequestConfig": (
        "provisioningrequestconfigs",
        {"spec": {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": ["nvidia.com/gpu"]}},
    ),
    "WorkloadPriorityClass": ("workloadpriorityclasses", {"value": 5, "description": "old"}),
    "ClusterQueue": (
        "clusterqueues",
        {
            "spec": {
                "cohort": "old",
                "stopPolicy": "HoldAndDrain",
                "admissionChecks": ["old"],
                "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu"],
                        "flavors": [{"name": "old", "resources": [{"name": "cpu", "nominalQuota": 4}]}],
                    }
                ],
            }
        },
    ),
    "LocalQueue": ("namespaces/default/localqueues", {"spec": {"clusterQueue": "old"}}),
    "Workload": (
        "namespaces/default/workloads",
        {
            "spec": {
                "active": False,
                "queueName": "old",
                "priority": 5,
                "priorityClassName": "old",
                "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
                "podSets": [{"name": "main", "count": 3, "template": TEMPLATE}],
            }
        },
    ),
}
ADMISSION: Json = {
    "accumulatedPastExexcutionTimeSeconds": 7,
    "conditions": [
        {
            "type": "QuotaReserved",
            "status": "True",
            "reason": "QuotaReserved",
            "message": "",
            "lastTransitionTime": TIME,
        }
    ],
    "admission": {
        "clusterQueue": "old",
        "podSetAssignments": [
            {
                "name": "main",
                "count": 3,
                "flavors": {"cpu": "old"},
                "resourceUsage": {"cpu": "3"},
                "topologyAssignment": {"levels": ["example.com/rack"], "domains": DOMAINS},
            }
        ],
    },
}


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def is_served(cluster: OneCluster, plural: str) -> bool:
    """Whether v1beta1 can be asked: the API server makes its storage again after a change of the definition."""
    try:
        cluster.get(f"{GROUP}/v1beta1/{plural}")
    except Refused:
        return False
    return True


@pytest.fixture(scope="module")
def both_versions(kueue_cluster: OneCluster) -> Iterator[OneCluster]:
    """The cluster with v1beta1 served again, which tests leave out to save its cache."""
    crds = [f"{CRDS}/{plural.rpartition('/')[2]}.kueue.x-k8s.io" for plural, _ in OBJECTS.values()]
    before = {path: kueue_cluster.get(path)["spec"]["versions"] for path in crds}
    for path, versions in before.items():
        old = {
            "name": "v1beta1",
            "served": True,
            "storage": False,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": ANYTHING},
        }
        kueue_cluster.request("PATCH", path, {"spec": {"versions": [old, *versions]}}, MERGE_PATCH)
    wait_until(lambda: all(is_served(kueue_cluster, plural) for plural, _ in OBJECTS.values()))
    yield kueue_cluster
    for path, versions in before.items():
        kueue_cluster.request("PATCH", path, {"spec": {"versions": versions}}, MERGE_PATCH)


@pytest.mark.parametrize(("kind", "plural", "body"), [(kind, *each) for kind, each in OBJECTS.items()], ids=OBJECTS)
def test_an_object_of_v1beta1_is_read_as_kueue_converts_it(
    both_versions: OneCluster, kind: str, plural: str, body: Json
) -> None:
    old, new = (f"{GROUP}/{version}/{plural}" for version in ("v1beta1", "v1beta2"))
    posted = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "old"}, **body}
    both_versions.ensure(old, posted)
    if kind == "Workload":
        both_versions.request("PATCH", f"{old}/old/status", {"status": ADMISSION}, MERGE_PATCH)
    real = both_versions.get(f"{new}/old")  # settled: only Kueue's status changes
    assert_within(as_v1beta2(posted)["spec"] if "spec" in posted else body, real.get("spec", real))
    # Kueue may write between the two reads.
    wait_until(
        lambda: settled(dict(as_v1beta2(both_versions.get(f"{old}/old")))) == settled(both_versions.get(f"{new}/old"))
    )


def settled(item: Json) -> Json:
    """What has to be the same: all but what any write changes. A schema would drop what is null."""
    kept = {name: value for name, value in without_slices(item).items() if name not in ("metadata", "status")}
    given = (without_slices(item).get("status") or {}).items()
    status = {name: value for name, value in given if name != "conditions" and value is not None}
    return {**kept, "status": status}


def without_slices(item: Json) -> Json:
    """The object with the places of its pod sets one by one: Kueue writes several in one slice."""
    admission = (item.get("status") or {}).get("admission")
    if not admission:
        return item
    assignments = []
    for entry in admission["podSetAssignments"]:
        result = dict(entry)
        if "topologyAssignment" in entry:
            result["topologyAssignment"] = places(entry["topologyAssignment"]["slices"])
        assignments.append(result)
    return {**item, "status": {**item["status"], "admission": {**admission, "podSetAssignments": assignments}}}


def places(slices: list[Json]) -> list[tuple[str, int]]:
    """Each place of one level, with its pods."""
    result: list[tuple[str, int]] = []
    for item in slices:
        names, counts, number = item["valuesPerLevel"][0], item["podCounts"], item["domainCount"]
        individual = names.get("individual", {})
        values = [
            f"{individual.get('prefix', '')}{root}{individual.get('suffix', '')}"
            for root in individual.get("roots", ())
        ] or [names["universal"]] * number
        result += zip(values, counts.get("individual") or [counts["universal"]] * number, strict=True)
    return result


def assert_within(made: Any, real: Any, path: str = "") -> None:
    """All that is made is there; the API server adds defaults."""
    if isinstance(made, dict) and isinstance(real, dict):
        for name, value in made.items():
            assert name in real, f"{path}.{name}"
            assert_within(value, real[name], f"{path}.{name}")
    elif isinstance(made, list) and isinstance(real, list):
        assert len(made) == len(real), path
        for index, (mine, other) in enumerate(zip(made, real, strict=True)):
            assert_within(mine, other, f"{path}[{index}]")
    else:
        assert str(made) == str(real), path
