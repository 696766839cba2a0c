"""The walk-through of the batch platform, simulated, beside the numbers that its authors published.

Three columns: the published tables; the platform with the quotas of the publication, 16 GPUs on 8 real ones; and the
platform of this repository.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from typer.testing import CliRunner

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.objects import render_cluster

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, tzinfo=UTC)

STEPS: Final = {"low-priority": 0, "high-priority": 300, "compact": 960, "jobset": 1920}
"""Second at which the jobs of each kind begin to arrive, one each second: from the ages in the publication."""
RUN_SECONDS: Final = {"low-priority": 600, "high-priority": 480, "compact": 450, "jobset": 300}
"""How long a job of each kind runs: what most of them took in the publication."""
SHOWN: Final = {"low-priority": 60, "high-priority": 360, "compact": 1020, "jobset": 1980}
"""Second of each table: a minute after the kind's first job."""

Row = dict[str, str]
COUNTED: Final[Mapping[str, Mapping[str, tuple[str, str, str]]]] = {
    "low-priority": {
        "lp": ("0/4 0/4 0/4 0/4", "0/4 0/4 0/4 0/4", "0/4 1/3 0/4 1/3"),
        "hp": ("0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0"),
        "compact": ("0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0"),
    },
    "high-priority": {
        "lp": ("1/3 0/3 0/3 0/3", "1/3 1/3 1/3 1/3", "1/3 1/3 1/3 1/3"),
        "hp": ("2/2 2/2 2/2 2/2", "2/2 2/2 2/2 2/2", "2/2 3/1 2/2 3/1"),
        "compact": ("0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0"),
    },
    "compact": {
        "lp": ("0/0 0/0 0/0 0/1", "0/1 0/1 0/1 0/1", "0/1 0/1 0/1 0/1"),
        "hp": ("0/2 0/2 1/2 0/2", "0/2 0/2 0/2 0/2", "1/1 1/2 1/1 1/2"),
        "compact": ("3/1 2/1 3/1 2/1", "3/1 3/1 3/1 3/1", "3/1 3/1 3/1 3/1"),
    },
    "jobset": {
        "lp": ("0/4 0/4 0/4 0/4", "0/4 0/4 0/4 0/4", "0/4 1/3 0/4 1/3"),
        "hp": ("0/0 0/0 0/1 0/0", "0/0 0/0 0/0 0/0", "0/0 0/0 0/0 0/0"),
        "compact": ("2/1 2/0 0/1 2/1", "1/1 1/1 1/1 1/1", "1/1 1/1 1/1 1/1"),
    },
}
"""Pending/admitted of the queues of teams a to d, by kind of queue, after each kind of job was submitted: as published,
simulated with the published quotas, and simulated with those of this repository.

Rows differ as the reserved nodes have room for two jobs, where the published quotas admit four; as a preempted job
waits for Spot quota, or was just returning to its queue; and as published runs took longer, or were still submitted.
"""


def objects(as_published: bool) -> list[dict[str, Any]]:
    """The platform's objects; `as_published` with four GPUs on reserved nodes for each team, none borrowed."""
    path = ROOT / "stacks/Pulumi.batch-platform.yaml"
    fleet = parse_fleet_text(path.read_text(encoding="utf-8"), path.name)
    kinds = ("Namespace", "ResourceFlavor", "ClusterQueue", "LocalQueue", "Cohort", "PriorityClass", "AdmissionCheck")
    result: list[Any] = [item for item in render_cluster(fleet, "batch-dev") if item["kind"] in kinds]
    for item in result:
        if as_published and item["kind"] == "ClusterQueue" and item["metadata"]["name"].endswith("-hp"):
            del item["spec"]["preemption"]["borrowWithinCohort"]
            reserved, on_demand = item["spec"]["resourceGroups"][0]["flavors"]
            reserved["resources"] = [{**quota, "borrowingLimit": "0"} for quota in on_demand["resources"]]
    return result


def jobs() -> list[dict[str, Any]]:
    """The jobs but those of DWS, each with the time it arrives and how long it runs."""
    arrived: Counter[str] = Counter()
    result = []
    for item in yaml.safe_load((ROOT / "examples/batch-platform/jobs.yaml").read_text(encoding="utf-8"))["items"]:
        job = copy.deepcopy(item)
        step = job["metadata"]["labels"]["kueue-fleet.dev/step"]
        if step not in STEPS:
            continue
        at = START + timedelta(seconds=STEPS[step] + arrived[step])
        arrived[step] += 1
        job["metadata"]["creationTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        job["metadata"]["annotations"] = {"kueue-fleet.dev/run-seconds": str(RUN_SECONDS[step])}
        result.append(job)
    return result


@cache
def simulated(as_published: bool) -> Sequence[dict[str, Any]]:
    """Every job's record."""
    documents = [Document(f"{index}", item) for index, item in enumerate([*objects(as_published), *jobs()])]
    result: list[dict[str, Any]] = prepare_objects(read_raw(documents), Delays()).run().as_json()["workloads"]
    return result


def table(as_published: bool, second: float) -> Row:
    """Pending/admitted of the queues of teams a to d at `second`, by kind of queue."""
    pending: Counter[str] = Counter()
    admitted: Counter[str] = Counter()
    for job in simulated(as_published):
        runs = [run for run in job["runs"] if run["admittedAt"] <= second]
        if any(second < run["endedAt"] for run in runs):
            admitted[job["clusterQueue"]] += 1
        elif job["arrivedAt"] <= second and not any(run["end"] == "Succeeded" for run in runs):
            pending[job["clusterQueue"]] += 1
    return {
        kind: " ".join(f"{pending[f'cq-team-{team}-{kind}']}/{admitted[f'cq-team-{team}-{kind}']}" for team in "abcd")
        for kind in ("lp", "hp", "compact")
    }


def flavors_of(as_published: bool, step: str) -> Counter[str]:
    """How often jobs of a kind ran on each flavor, and how each run ended, where it was not by itself."""
    return Counter(
        f"{','.join(run['flavors'])}{'' if run['end'] == 'Succeeded' else ' ' + run['end']}"
        for job in simulated(as_published)
        if f"-{step}-" in job["name"]
        for run in job["runs"]
    )


def test_every_job_ends() -> None:
    for as_published in (True, False):
        assert Counter(job["state"] for job in simulated(as_published)) == {"Finished": 64}


@pytest.mark.parametrize("step", STEPS)
def test_jobs_wait_and_run_as_counted(step: str) -> None:
    as_published, here = (table(item, SHOWN[step]) for item in (True, False))
    assert {kind: (as_published[kind], here[kind]) for kind in here} == {
        kind: (theirs, ours) for kind, (_, theirs, ours) in COUNTED[step].items()
    }


def test_low_priority_jobs_run_on_reserved_nodes_until_high_priority_jobs_come() -> None:
    """Reserved nodes hold two jobs. With the published quotas four are admitted there, and two of them cannot run."""
    assert flavors_of(False, "low-priority") == {"gpu-l4-spot": 16, "gpu-l4-reserved Preempted": 2}
    assert flavors_of(True, "low-priority") == {"gpu-l4-spot": 16, "gpu-l4-reserved Preempted": 4}
    preempted = {
        job["name"]: [(run["flavors"], run["end"]) for run in job["runs"]]
        for job in simulated(False)
        if any(run["end"] == "Preempted" for run in job["runs"])
    }
    assert preempted == {
        f"team-{team}-low-priority-job-0": [(["gpu-l4-reserved"], "Preempted"), (["gpu-l4-spot"], "Succeeded")]
        for team in "ac"
    }


def test_high_priority_jobs_run_on_reserved_and_on_demand_nodes() -> None:
    for as_published in (True, False):
        result = flavors_of(as_published, "high-priority")
        assert set(result) == {"gpu-l4-reserved", "gpu-l4-ondemand"}
        assert sum(result.values()) == 16


def test_no_more_jobs_than_fit_are_ever_on_reserved_nodes() -> None:
    def most(as_published: bool) -> int:
        spans: list[tuple[float, float]] = [
            (run["admittedAt"], run["endedAt"])
            for job in simulated(as_published)
            for run in job["runs"]
            if run["flavors"] == ["gpu-l4-reserved"]
        ]
        return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)

    assert most(False) == 2
    assert most(True) == 4


def test_compact_jobs_run_on_a100_spot_nodes() -> None:
    assert flavors_of(False, "compact") == {"gpu-a100-compact-spot": 16}


def test_jobsets_run_as_low_priority_jobs() -> None:
    assert set(flavors_of(False, "jobset")) == {"gpu-l4-reserved", "gpu-l4-spot"}


def test_nodes_and_the_queue_of_dws_are_as_published_at_each_step() -> None:
    """Spot, on-demand and reserved nodes, those that GKE makes for compact jobs, and the two jobs of DWS."""
    examples = ROOT / "examples/batch-platform"
    given = [str(ROOT / "stacks/Pulumi.batch-platform.yaml"), "--jobs", str(examples / "jobs.yaml")]
    walk = ["--workload", str(examples / "walk-through.yaml"), "--output", "json"]
    printed = CliRunner().invoke(app, ["simulate", "fleet", *given, *walk], catch_exceptions=False).stdout
    result = {each["at"]: each for each in json.loads(printed)["snapshots"]}
    pools = "spot-np", "ondemand-np", "reserved-np", "gpu-a100-compact-spot", "dws-a100-np", "dws-h100-np"
    assert {at: [item["nodes"].get(pool, 0) for pool in pools] for at, item in result.items()} == {
        2: [24, 0, 4, 0, 0, 0],
        12: [24, 8, 4, 0, 0, 0],
        34: [8, 8, 4, 8, 0, 0],
        66: [24, 4, 4, 8, 0, 0],
        88: [0, 0, 4, 8, 0, 0],
        106: [0, 0, 4, 0, 1, 1],
        120: [0, 0, 4, 0, 0, 0],
    }
    dws = {at: entry["queues"]["dws-cluster-queue"] for at, entry in result.items()}
    assert dws[88] == {"pending": 0, "admitted": 0}
    assert dws[106] == {"pending": 0, "admitted": 2}
