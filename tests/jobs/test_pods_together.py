"""Jobs whose pods never all run at once, for how they are to lie beside each other."""

from __future__ import annotations

from typing import Any, Final

import pytest
from tests.fleet_file.builders import changed, quota, standalone_data
from tests.jobs.test_nodes import documents

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.jobs.workload_file import WorkloadFile

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


def four_nodes(pods: int, labels: dict[str, str] | None = None, **pod: Any) -> tuple[FleetSpec, Document]:
    """A fleet of four nodes in one zone, of two GPUs each, and a Job with pods like these."""
    four = {"name": "four", "machineType": "g2-standard-24", "zones": ["us-central1-a"], "nodeCount": 4}
    resources = ("nvidia.com/gpu", "cpu", "memory")
    amounts = zip(resources, (8, 90, "350Gi"), strict=True)
    quotas = {"name": "four", "resources": [quota(name, amount) for name, amount in amounts]}
    data = changed(
        standalone_data(),
        {
            "clusters/0": {**standalone_data()["clusters"][0], "mode": "Standard", "zones": ["us-central1-a"]},
            "nodePools": [four],
            "flavors": [{"name": "four", "nodePool": "four"}],
            "clusterQueues/0/resourceGroups": [{"coveredResources": resources, "flavors": [quotas]}],
        },
    )
    [job] = documents(pods=pods, **pod)
    template = job.data["spec"]["template"]
    result = {
        **template,
        "metadata": {**template["metadata"], "labels": {"app": "solver"} if labels is None else labels},
    }
    return parse_fleet(data), Document(job.where, {**job.data, "spec": {**job.data["spec"], "template": result}})


def warned(pods: int, labels: dict[str, str] | None = None, **pod: Any) -> list[str]:
    """What `check --jobs` says of it."""
    fleet, job = four_nodes(pods, labels, **pod)
    result = check_manifests(fleet, [job])
    assert result.problems == []
    return [item.wrong for item in result.warnings if "never all run at once" in item.wrong]


def beside(kind: str, key: str, **selector: Any) -> dict[str, Any]:
    """An affinity to pods, or away from them."""
    term = {"topologyKey": key, "labelSelector": selector or {"matchLabels": {"app": "solver"}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def spread(key: str, least: int) -> dict[str, Any]:
    """Pods in at least so many places."""
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["solver"]}]}
    term = {"maxSkew": 1, "minDomains": least, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**term, "labelSelector": selector}]}


@pytest.mark.parametrize(
    ("pods", "pod", "why"),
    [
        (5, beside("podAntiAffinity", HOST), f"at most 4, as its podAntiAffinity puts one on each {HOST}, and pool "),
        (5, beside("podAntiAffinity", HOST, matchLabels={"job-name": "j"}), "at most 4, as its podAntiAffinity puts"),
        (2, beside("podAntiAffinity", ZONE), "at most 1, as its podAntiAffinity puts one on each"),
        (
            3,
            beside("podAffinity", HOST),
            "at most 2, as its podAffinity puts all on one node, and one of pool four",
        ),
        (5, spread(HOST, 6), f"at most 4, as it asks for 6 different {HOST} by minDomains, and pool four has 4"),
        (2, spread(ZONE, 2), "at most 1, as it asks for 2 different"),
    ],
    ids=[
        "one on a node",
        "by the label of the Job",
        "one in a zone",
        "all on a node",
        "six nodes of four",
        "two zones",
    ],
)
def test_pods_that_never_all_run(pods: int, pod: dict[str, Any], why: str) -> None:
    [text] = warned(pods, **pod)
    assert f"has {pods} pods that never all run at once, {why}" in text


@pytest.mark.parametrize(
    ("pods", "pod"),
    [
        (4, beside("podAntiAffinity", HOST)),
        (2, beside("podAffinity", HOST)),
        (5, beside("podAntiAffinity", HOST, matchLabels={"app": "other"})),
        (4, spread(HOST, 4)),
    ],
    ids=["as many as nodes", "as many as a node takes", "away from others", "as many places as nodes"],
)
def test_pods_that_all_run(pods: int, pod: dict[str, Any]) -> None:
    assert warned(pods, **pod) == []


def test_a_port_of_the_node_is_that_of_one_pod() -> None:
    container = {
        "name": "main",
        "image": "busybox",
        "ports": [{"containerPort": 29400, "hostPort": 29400}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}},
    }
    [text] = warned(6, containers=[container])
    assert "at most 4, as one pod of a node has its hostPort, and pool four has 4 nodes" in text


def test_a_simulation_leaves_them_unfinished_and_says_why() -> None:
    fleet, job = four_nodes(5, **beside("podAntiAffinity", HOST))
    [record] = prepare_fleet(fleet, WorkloadFile(), Delays(), manifests=[job]).run().records
    assert (record.finished_at, record.why_not_started.partition(", ")[0]) == (
        None,
        "pod set main has 5 pods that never all run at once",
    )


def test_a_simulation_warns_of_a_gate_of_others() -> None:
    fleet, job = four_nodes(1, schedulingGates=[{"name": "example.com/approved"}])
    [warning] = prepare_fleet(fleet, WorkloadFile(), Delays(), manifests=[job], until=60).warnings
    assert "has the scheduling gate example.com/approved" in warning.wrong
