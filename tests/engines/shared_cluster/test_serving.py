"""What serves and grows gets its GPUs back from batch: the queues and the Deployment of `examples/serving`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.objects import objects_on
from one_cluster import JOBS, KUEUE, OneCluster, condition, job, kueue_object, pod_template, wait_until

EXAMPLE = Path(__file__).parents[3] / "examples/serving"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"
PLACES = {"ResourceFlavor": "resourceflavors", "ClusterQueue": "clusterqueues"}
A_MINUTE = 60.0


@pytest.fixture
def cluster(kueue_cluster: OneCluster) -> Iterator[OneCluster]:
    """With the example's queues for serving and batch, and six jobs of two GPUs that fill what serving leaves."""
    result = []
    fleet = parse_fleet_text((EXAMPLE / "fleet.yaml").read_text(), "fleet")
    for item in (one.manifest for one in objects_on(fleet, "gpus")):
        if item["kind"] in PLACES and item["metadata"]["name"] != "notebooks":
            name = f"serving-{item['metadata']['name']}"
            text = yaml.safe_dump({**item, "metadata": {"name": name}}).replace("name: l4", "name: serving-l4")
            result.append(f"{KUEUE}/{PLACES[item['kind']]}/{name}")
            kueue_cluster.create(f"{KUEUE}/{PLACES[item['kind']]}", yaml.safe_load(text))
    for name in ("serving", "batch"):
        queue = kueue_object("LocalQueue", name, {"clusterQueue": f"serving-{name}"}, "default")
        result.append(f"{KUEUE}/namespaces/default/localqueues/{name}")
        kueue_cluster.create(f"{KUEUE}/namespaces/default/localqueues", queue)
    yield kueue_cluster
    for path in reversed(result):
        kueue_cluster.delete(path)


def admitted(cluster: OneCluster, queue: str, count: int) -> list[str] | None:
    """The names of the Workloads of a LocalQueue that are admitted, if there are so many."""
    result = [
        item["metadata"]["name"]
        for item in cluster.items(WORKLOADS)
        if item["spec"]["queueName"] == queue and condition(item, "Admitted") == "True"
    ]
    return result if len(result) == count else None


def test_replicas_that_are_added_get_their_gpus_from_batch_within_a_minute(cluster: OneCluster) -> None:
    deployment: dict[str, Any] = next(yaml.safe_load_all((EXAMPLE / "vllm.yaml").read_text()))
    deployment["metadata"]["namespace"] = "default"
    cluster.create(DEPLOYMENTS, deployment)
    wait_until(partial(admitted, cluster, "serving", 2))
    for number in range(6):
        cluster.create(JOBS, job(f"evaluate-{number}", "batch", pod_template(2)))
    wait_until(partial(admitted, cluster, "batch", 6))
    scale = {"spec": {"replicas": 8}}
    cluster.request("PATCH", f"{DEPLOYMENTS}/chat/scale", scale, "application/merge-patch+json")
    wait_until(partial(admitted, cluster, "serving", 8), A_MINUTE)
    assert wait_until(partial(admitted, cluster, "batch", 3))
    cluster.delete(f"{DEPLOYMENTS}/chat")
    for number in range(6):
        cluster.delete(f"{JOBS}/evaluate-{number}")
    wait_until(lambda: not {"serving", "batch"} & {item["spec"]["queueName"] for item in cluster.items(WORKLOADS)})
