"""`explain` on flavors whose nodes say more than Kueue counts: shared GPUs, and compute classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.objects import render_cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
GPU = "nvidia.com/gpu"
CLASS = "cloud.google.com/compute-class"


def workload(namespace: str, queue: str, gpus: int, admitted: tuple[str, str] | None) -> dict[str, Any]:
    """One that waits, or is admitted in a ClusterQueue with a flavor."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi", GPU: gpus}}}]
    result: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": namespace, "uid": "u", "creationTimestamp": "2026-11-20T08:00:00Z"},
        "spec": {
            "queueName": queue,
            "podSets": [{"name": "main", "count": 2, "template": {"spec": {"containers": containers}}}],
        },
    }
    if admitted is not None:
        names = ["cpu", "memory", GPU]
        usage = {"cpu": "2", "memory": "2Gi", GPU: str(2 * gpus)}
        given = {"name": "main", "count": 2, "flavors": dict.fromkeys(names, admitted[1]), "resourceUsage": usage}
        result["status"] = {
            "admission": {"clusterQueue": admitted[0], "podSetAssignments": [given]},
            "conditions": [
                {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": "2026-11-20T08:00:01Z"}
                for kind in ("QuotaReserved", "Admitted")
            ],
        }
    return result


def node(name: str, allocatable: dict[str, int], **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def explained(example: str, cluster: str, folder: Path, *objects: dict[str, Any]) -> dict[str, Any]:
    fleet = parse_fleet_text((EXAMPLES / example / "fleet.yaml").read_text(), "fleet")
    (folder / "dump.yaml").write_text(yaml.safe_dump_all([*render_cluster(fleet, cluster), *objects]))
    result = CliRunner().invoke(app, ["explain", "w", "--objects", str(folder / "dump.yaml"), "-o", "json"])
    assert result.exit_code == 0, result.output
    [results] = json.loads(result.stdout)["explanations"]
    return dict(results)


def test_an_admitted_job_whose_nodes_refuse_its_pods_says_so(tmp_path: Path) -> None:
    result = explained(
        "shared-gpus",
        "gpu",
        tmp_path,
        workload("teaching", "notebooks", 2, ("notebooks-teaching", "l4-shared")),
    )
    assert result["headline"] == (
        "It is admitted, and its nodes refuse its pods (UnexpectedAdmissionError): a container of pod set main "
        "requests 2 nvidia.com/gpu, but those of flavor l4-shared are shared, and a container gets at most 1."
    )
    assert result["next_step"].startswith("Submit it again with 1 nvidia.com/gpu for each container")


@pytest.mark.parametrize(("gpus", "whole"), [(1, "2 are 0.5 of nvidia-l4"), (4, "8 are 2 of nvidia-l4")])
def test_shares_are_said_as_whole_gpus_too(gpus: int, whole: str, tmp_path: Path) -> None:
    result = explained("shared-gpus", "gpu", tmp_path, workload("teaching", "notebooks", gpus, None))
    assert result["nodes"][0] == (
        f"Flavor l4-shared: quota counts a {GPU} for each share (shared by time-sharing), 4 to each nvidia-l4: its "
        f"{whole}"
    )
    assert bool(result["nodes"][1:]) == (gpus > 1)


def test_parts_that_are_not_shared_may_be_several(tmp_path: Path) -> None:
    result = explained("shared-gpus", "gpu", tmp_path, workload("research", "inference", 7, ("inference", "a100-7th")))
    assert "refuse" not in result["headline"]
    assert result["nodes"] == [
        f"Flavor a100-7th: quota counts a {GPU} for each share (parts of 1g.10gb), 7 to each nvidia-a100-80gb: its 14 "
        "are 2 of nvidia-a100-80gb"
    ]


def test_whole_gpus_say_nothing_more(tmp_path: Path) -> None:
    result = explained("shared-gpus", "gpu", tmp_path, workload("research", "training", 4, None))
    assert result["nodes"] == []


def test_the_way_of_a_class_is_that_of_its_nodes(tmp_path: Path) -> None:
    admitted = workload("research", "gpu", 2, ("training", "l4"))
    ways = ({"cloud.google.com/gke-provisioning": "spot"}, {"cloud.google.com/gke-flex-start": "true"})
    nodes = [node(f"n{i}", {GPU: 2}, **{CLASS: "l4"}, **way) for i, way in enumerate(ways)]
    [note] = explained("compute-class", "worker-us", tmp_path, admitted, *nodes)["nodes"]
    assert note.startswith("Flavor l4: nodes of compute class l4; Kueue counts one quota for all priorities")
    assert note.endswith("nodes of it that are there: 1 flex-start, 1 spot")
    [note] = explained("compute-class", "worker-us", tmp_path, admitted)["nodes"]
    assert note.endswith(f"see kubectl get nodes -l {CLASS}=l4 -L cloud.google.com/gke-provisioning")
