"""A job of which it is not known whether it starts is not one that never does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.objects import API, cluster, documents, job, queue
from typer.testing import CliRunner

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_fleet.cli import app

FLEET = Path(__file__).parent / "cases" / "topology-of-gke.yaml"
"""Google's Cluster Toolkit, A100 machines: which of their labels GKE gives is not published."""
JOBS = FLEET.with_suffix(".jobs.yaml")
WHY = (
    "topology gke-default has the level cloud.google.com/gce-topology-block, which GKE may give to nodes of pool a2; "
    "compare with `kubectl get nodes -L cloud.google.com/gce-topology-block`"
)
FLAVOR = {
    "apiVersion": API,
    "kind": "ResourceFlavor",
    "metadata": {"name": "rf"},
    "spec": {"topologyName": "t", "nodeLabels": {"pool": "p"}},
}
TOPOLOGY = {
    "apiVersion": API,
    "kind": "Topology",
    "metadata": {"name": "t"},
    "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
}
CHECK = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": "ac"}, "spec": {"controllerName": "x/y"}}


def called(*arguments: str) -> str:
    return CliRunner().invoke(app, arguments).stdout


def test_all_commands_say_the_same_of_it() -> None:
    simulated = json.loads(called("simulate", "fleet", str(FLEET), "--jobs", str(JOBS), "-o", "json"))
    assert [entry["notKnown"] for entry in simulated["workloads"]] == [WHY]
    checked = json.loads(called("check", str(FLEET), "--jobs", str(JOBS), "-o", "json"))
    result = [f"{item['wrong']}; {item['fix']}" for item in checked["files"][0]["problems"]]
    assert result[-1] == f"whether it starts is not known: {WHY}"
    waited = json.loads(
        called("when", str(FLEET), "-f", str(JOBS), "--objects", str(JOBS), "--seeds", "1", "-o", "json")
    )
    assert (waited["neverStarts"], waited["notKnown"]) == (None, WHY)


def test_the_table_names_it() -> None:
    text = " ".join(called("simulate", "fleet", str(FLEET), "--jobs", str(JOBS)).split())
    assert "Pending not known" in text
    assert f"default/tas-rack: whether it starts is not known: {WHY}" in text


@pytest.mark.parametrize(("strategy", "known"), [("StrictFIFO", False), ("BestEffortFIFO", True)])
def test_it_is_not_known_of_what_waits_behind_it_in_strict_order(strategy: str, known: bool, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        FLEET.read_text().replace("  namespaceSelector", f"  queueingStrategy: {strategy}\n  namespaceSelector")
    )
    jobs = tmp_path / "jobs.yaml"
    first = JOBS.read_text()
    plain = yaml.safe_load(first)
    plain["metadata"]["name"] = "waits"
    plain["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": 9}}
    jobs.write_text(f"{first}\n---\n{yaml.safe_dump(plain)}")
    simulated = json.loads(called("simulate", "fleet", str(fleet), "--jobs", str(jobs), "-o", "json"))
    result = {item["name"]: item["notKnown"] for item in simulated["workloads"]}
    assert result == {
        "tas-rack": WHY,
        "waits": None if known else f"StrictFIFO keeps it behind default/tas-rack, and of that: {WHY}",
    }


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([*cluster()[2:], queue(), FLAVOR, TOPOLOGY], "there is no Node among the objects"),
        (cluster(namespaceSelector={"matchLabels": {"team": "a"}}), "there is no Namespace among the objects"),
        ([*cluster(admissionChecksStrategy={"admissionChecks": [{"name": "ac"}]}), CHECK], "nothing answers admission"),
        (cluster(), ""),
    ],
    ids=["nodes", "namespaces", "checks", "more than the quota"],
)
def test_what_objects_do_not_say(objects: list[dict[str, Any]], why: str) -> None:
    cpu = "1" if why else "5"
    result = prepare_objects(read_raw(documents(*objects, job("a", 0, "1", cpu=cpu))), Delays()).run()
    [workload] = result.as_json()["workloads"]
    assert workload["admittedAt"] is None
    assert (workload["notKnown"] or "").startswith(why)
    assert bool(workload["notKnown"]) == bool(why)
