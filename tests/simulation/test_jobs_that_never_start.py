"""Jobs that a fleet can never run, each alone in it: `check --jobs`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, GPU, US, calendar_data, dispatched_data, fleet_data

from kueue_admission.decide.model import Workload
from kueue_admission.decide.pods import PodSet
from kueue_admission.kernel.base import DEFER_RULES
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.fleet_simulation.node_limit import pools_by_label
from kueue_fleet.jobs.most_on_workers import never_fits


def found(
    data: dict[str, Any],
    pods: int = 1,
    namespace: str = "team-a",
    queue: str = "gpu",
    annotations: object = None,
    **pod: Any,
) -> list[str]:
    """What is said of a Job whose pods request this, with dots for slashes, or have these fields."""
    requests = {GPU: 1, "cpu": 10} | pod.pop("requests", {})
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": requests, "limits": limits}}]
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": containers, **pod},
    }
    labels = {"kueue.x-k8s.io/queue-name": queue}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": namespace, "labels": labels},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }
    return list(map(str, check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).problems))


T4 = {"type": "nvidia-tesla-t4", "count": 2}
NEVER = "j.yaml:1: Job team-a/j: never starts: "
ON_NO_NODE = "its pods do not all fit on node pool l4-spot (0 of 2 nodes in use): a pod asks for "
CHANGE = "; change what it asks for, or the quotas and nodes of its queue"


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"requests": {GPU: 5}}, "ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for "),
        (
            {"pods": 3},
            f"{EUROPE}: ExceedsMaxQuota; {US}: ExceedsMaxQuota: it asks for 3 nvidia.com/gpu, and a flavor has at most "
            f"2 on {US}, 2 on {EUROPE}",
        ),
        ({"requests": {"cpu": 40}}, f"{ON_NO_NODE}40 cpu, and a node of l4-spot has 11900m"),
        ({"requests": {GPU: 2}}, f"{ON_NO_NODE}2 nvidia.com/gpu, and a node of l4-spot has 1"),
        (
            {"nodeSelector": {"cloud.google.com/gke-nodepool": "l5"}},
            f"{EUROPE}: NoMatchingFlavor; {US}: NoMatchingFlavor",
        ),
    ],
)
def test_what_no_cluster_can_hold_never_starts(job: dict[str, Any], why: str) -> None:
    [text] = found(fleet_data(), **job)
    assert text.startswith(f"{NEVER}{why}")
    assert text.endswith(CHANGE)


def test_what_fits_alone_starts() -> None:
    assert found(fleet_data(), pods=2) == []


def test_what_fits_while_a_window_is_open_starts() -> None:
    data = dispatched_data()
    once = {"name": "sale", "start": "2026-12-01T00:00:00Z", "duration": "1h"}
    data["controller"]["quotaWindows"] = [once]
    [gpus, *_] = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    gpus |= {"nominalQuota": 1, "during": {"sale": {"nominalQuota": 4}}}
    assert found(data, pods=4) == []
    assert NEVER in found(data, pods=5)[0]


def test_the_dispatcher_says_why_it_rejects_a_job() -> None:
    [text] = found(dispatched_data(), pods=9)
    assert text.startswith(f"{NEVER}Deactivated: The workload is deactivated due to AdmissionCheck in Rejected state: ")
    assert f"{US} ExceedsMaxQuota, {EUROPE} ExceedsMaxQuota" in text
    assert found(dispatched_data(), pods=8) == []


def test_a_job_that_waits_for_its_check_says_what_workers_have() -> None:
    """With quotas in windows, the dispatcher does not reject what is too much."""
    data = dispatched_data()
    data["controller"]["quotaWindows"] = [{"name": "sale", "start": "2026-12-01T00:00:00Z", "duration": "1h"}]
    [gpus, *_] = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    gpus |= {"nominalQuota": 1, "during": {"sale": {"nominalQuota": 4}}}
    [text] = found(data, pods=5)
    assert "it asks for 5 nvidia.com/gpu, and a flavor has at most 4 on " in text


def test_a_job_with_other_faults_is_told_what_workers_have() -> None:
    """All that is wrong at once; Kueue's words may be of what is said already."""
    data = fleet_data()
    data["clusters"][0]["mode"] = "Autopilot"
    refused, too_much = found(data, pods=3)
    assert "Autopilot refuses that when it is made on manager" in refused
    assert f"never starts: it asks for 3 {GPU}, and a flavor has at most 2 on {US}, 2 on {EUROPE}" in too_much
    assert len(found(data, pods=2)) == 1


def test_another_job_of_the_file_is_judged_too() -> None:
    def job(name: str, pods: int, **spec: Any) -> Document:
        resources = {"requests": {GPU: 1}, "limits": {GPU: 1}}
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "m:1", "resources": resources}], **spec}
        metadata = {"name": name, "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
        of_job = {"parallelism": pods, "completions": pods, "template": {"spec": pod}}
        data = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": of_job}
        return Document("j.yaml:1", data)

    jobs = [job("elsewhere", 1, nodeSelector={"cloud.google.com/gke-spot": "false"}), job("large", 5)]
    found_texts = list(map(str, check_manifests(parse_fleet(fleet_data()), jobs).problems))
    assert [text.split(":")[2].strip() for text in found_texts] == ["Job team-a/elsewhere", "Job team-a/large"]


def test_a_job_whose_pod_sets_fit_different_flavors_is_not_too_large() -> None:
    """Each of its pod sets gets a flavor of its own."""
    flavors = [
        {"name": name, "resources": [{"name": GPU, "nominalQuota": 2}, {"name": "cpu", "nominalQuota": 99}]}
        for name in ("l4-spot", "l4-too")
    ]
    data = fleet_data()
    data["clusters"][0]["mode"] = "Autopilot"
    data["flavors"].append({**data["flavors"][0], "name": "l4-too"})
    data["clusterQueues"][0]["resourceGroups"] = [{"coveredResources": [GPU, "cpu"], "flavors": flavors}]
    fleet = parse_fleet(data)
    pod_sets = tuple(PodSet(name, 2, requests=((GPU, 1),)) for name in "ab")
    workload = Workload("team-a", "w", "w", "gpu", pod_sets)
    assert never_fits(fleet, "gpu", workload) == ""
    assert "asks for 3" in never_fits(fleet, "gpu", replace(workload, pod_sets=(replace(pod_sets[0], count=3),)))
    fewer = replace(pod_sets[0], count=3, min_count=2)
    assert never_fits(fleet, "gpu", replace(workload, pod_sets=(fewer,))) == ""


def test_workers_of_another_dispatcher_are_all_tried() -> None:
    data = fleet_data()
    data["multiKueue"] |= {"dispatcher": "External", "external": {"name": "example.com/dispatcher"}}
    assert found(data) == []
    assert found(data, pods=3) != []


def test_calendar_pools_are_open_and_stopped_queues_say_nothing_against_a_job() -> None:
    data = calendar_data(open_by_hand=False)
    assert found(data, pods=8, namespace="default", queue="q", requests={GPU: 8}) == []
    assert found(fleet_data(clusterQueues=[{**fleet_data()["clusterQueues"][0], "stopPolicy": "Hold"}])) == []


@pytest.mark.parametrize("amount", ["1.5", "500m"])
def test_devices_are_whole(amount: str) -> None:
    path = "j.yaml:1: Job team-a/j.spec.template.spec.containers[0].resources.requests.nvidia.com/gpu"
    _, text = found(fleet_data(), requests={GPU: amount})
    assert text.startswith(f"{path}: is ")
    assert text.endswith("m; write a whole number, as it is a number of devices")
    assert found(fleet_data(), requests={GPU: "1000m", "cpu": "1.5"}) == []


@pytest.mark.parametrize("seconds", ["x", "-1", "nan", {}, True, "9" * 400])
def test_a_run_time_that_is_no_time_is_named(seconds: object) -> None:
    [text] = found(fleet_data(), annotations={"kueue-fleet.dev/run-seconds": seconds})
    where = "j.yaml:1: Job team-a/j.spec.template.metadata.annotations[kueue-fleet.dev/run-seconds]: "
    assert text.startswith(where)
    assert text.endswith(" is not a number of seconds; write 0 to 1,000,000,000, in quotes")


def test_a_queue_that_is_not_there_has_its_namesake_in_the_namespace() -> None:
    assert found(fleet_data(), queue="gpus") == [
        "j.yaml:1: workload team-a/j: there is no LocalQueue team-a/gpus; did you mean gpu?"
    ]
    [text] = found(fleet_data(), queue="x")
    assert text.endswith("there is no LocalQueue team-a/x; use one of the LocalQueues of team-a: gpu")


def test_the_nodes_of_another_flavor_that_hold_its_pods_are_named() -> None:
    data = fleet_data()
    data["nodePools"] += [{"name": "t4", "machineType": "n1-standard-16", "accelerator": T4, "nodeCount": 1}]
    data["flavors"] += [{"name": "t4", "nodePool": "t4"}]
    [group] = data["clusterQueues"][0]["resourceGroups"]
    group["flavors"] += [{"name": "t4", "resources": group["flavors"][0]["resources"]}]
    [text] = found(data, requests={GPU: 2})
    assert "let its pods select cloud.google.com/gke-accelerator: nvidia-tesla-t4, whose nodes hold them, or" in text


def test_a_kind_that_kueue_manages_and_nothing_here_reads_is_not_refused() -> None:
    metadata = {"name": "a", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata, "spec": {}}
    frameworks = ["batch/job", "workload.codeflare.dev/appwrapper"]
    data = fleet_data(kueue={"configuration": {"integrations": {"frameworks": frameworks}}})
    findings = check_manifests(parse_fleet(data), [Document("j.yaml:1", wrapper)])
    assert findings.problems == []
    assert list(map(str, findings.warnings)) == [
        "j.yaml:1: AppWrapper team-a/a: has pods that are not read here, so that nothing is known of it; see "
        "yourself that its queue has what its pods ask for"
    ]
    [unmanaged] = check_manifests(parse_fleet(fleet_data()), [Document("j.yaml:1", wrapper)]).problems
    assert "is an AppWrapper" in str(unmanaged)


def test_a_kind_that_multikueue_has_no_adapter_for() -> None:
    metadata = {"name": "s", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    spark = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": metadata, "spec": {}}
    data = dispatched_data()
    data["kueue"] = {"configuration": {"integrations": {"frameworks": ["sparkoperator.k8s.io/sparkapplication"]}}}
    [warning] = check_manifests(parse_fleet(data), [Document("j.yaml:1", spark)]).warnings
    assert warning.wrong == "is of a kind that MultiKueue rejects"


@pytest.mark.parametrize(
    ("labels", "gpus", "said"),
    [
        ({}, 1, "it starts only if Kueue, at random, gives pod set main that of l4, and is evicted otherwise"),
        ({}, 4, "never starts: its pods do not all fit on node pool cpu (0 of 4 nodes in use), l4 (0 of 2 nodes"),
        ({"a": "b"}, 1, "it starts only if Kueue, at random, gives pod set main that of l4, and is evicted otherwise"),
        (
            {"c": "d"},
            1,
            "never starts: its pods do not all fit on node pool cpu (0 of 4 nodes in use): a pod asks for 1",
        ),
    ],
    ids=["one fits", "none fits", "with what the other has", "with what the other lacks"],
)
def test_flavors_with_different_values_of_a_label(labels: dict[str, str], gpus: int, said: str) -> None:
    """Kueue copies the labels of a pod's flavors in a random order, and keeps the first value."""
    data = fleet_data()
    data["clusters"] = [{**data["clusters"][1], "name": "c", "role": "standalone"}]
    del data["multiKueue"], data["teams"][1]
    data["nodePools"] = [
        {"name": "l4", "machineType": "g2-standard-24", "nodeCount": 2, "labels": {"a": "b"}},
        {"name": "cpu", "machineType": "n2-standard-32", "nodeCount": 4, "labels": {"a": "b", "c": "d"}},
    ]
    l4, cpu = ({"cloud.google.com/gke-nodepool": name} for name in ("l4", "cpu"))
    data["flavors"] = [{"name": "l4", "nodeLabels": l4}, {"name": "cpu", "nodeLabels": cpu | labels}]
    quotas = [{"name": "cpu", "nominalQuota": 100}, {"name": "memory", "nominalQuota": "400Gi"}]
    data["clusterQueues"][0]["resourceGroups"] = [
        {"coveredResources": [GPU], "flavors": [{"name": "l4", "resources": [{"name": GPU, "nominalQuota": 4}]}]},
        {"coveredResources": ["cpu", "memory"], "flavors": [{"name": "cpu", "resources": quotas}]},
    ]
    resources = {"requests": {"cpu": 1, GPU: gpus}, "limits": {GPU: gpus}}
    containers = [{"name": "c", "image": "m:1", "resources": resources}]
    metadata = {"name": "j", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpu"}}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    problems, warnings = check_manifests(parse_fleet(data), [Document("j.yaml:1", job)])
    [problem] = [*problems, *warnings]
    assert said in problem.wrong
    assert problem.severity == ("error" if said.startswith("never") else "warning")


def test_pools_of_as_many_flavors_as_a_queue_has_groups() -> None:
    """Sixteen flavors have more orders than can be tried."""
    data = fleet_data()
    data["clusters"] = [{**data["clusters"][1], "name": "c", "role": "standalone"}]
    del data["multiKueue"], data["teams"][1]
    labels = {f"key-{index}": "same" for index in range(16)}
    data["nodePools"] = [{"name": "cpu", "machineType": "n2-standard-32", "nodeCount": 4, "labels": labels}]
    data["flavors"] = [{"name": key, "nodeLabels": {key: "same"}} for key in labels]
    fleet = FleetSpec.model_validate(data, context={DEFER_RULES: True})
    pools = pools_by_label(fleet, "c", list(labels))
    assert [[pool.name for pool in of_flavor] for of_flavor in pools.values()] == [["cpu"]] * 16
