"""The page on capacity: each cell is a fleet that is checked here, with a job for `check --jobs`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.gke.consumption import options_of, zones_with
from kueue_fleet.gke.machines import machine_type
from kueue_fleet.kueue_api import SpecError
from kueue_fleet.kueue_api.problem import errors_of
from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.documents import Document
from kueue_fleet.simulation.fleet import check_manifests, prepare_fleet
from kueue_fleet.simulation.records import State
from kueue_fleet.simulation.workload_file import WorkloadFile

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
MACHINES = {
    "n1-standard-8 with a T4": "n1-standard-8",
    **{
        name: name
        for name in (
            "g2-standard-24",
            "g4-standard-48",
            "a2-highgpu-1g",
            "a3-highgpu-1g",
            "a3-highgpu-8g",
            "a3-megagpu-8g",
            "a3-ultragpu-8g",
            "a4-highgpu-8g",
            "a4x-highgpu-4g",
            "ct5lp-hightpu-4t",
            "ct5p-hightpu-4t",
            "ct6e-standard-4t",
            "tpu7x-standard-4t",
        )
    },
}
FIXED, SCALED = {"nodeCount": 2}, {"autoscaling": {"totalMaxNodeCount": 2}}
CALENDAR = {
    "type": "calendar",
    "reservation": "r",
    "start": "2026-11-01T00:00:00Z",
    "duration": "2000h",
    "active": True,
}
CLASSES: dict[str, dict[str, Any]] = {
    "onDemand": {**SCALED},
    "spot": {**SCALED, "capacity": {"type": "spot"}},
    "reserved": {**FIXED, "capacity": {"type": "reserved", "reservation": "r"}},
    "flexStart": {**SCALED, "capacity": {"type": "flexStart", "queuedProvisioning": False}},
    "flexStart, queued": {**SCALED, "capacity": {"type": "flexStart"}},
    "calendar": {**FIXED, "capacity": CALENDAR},
}


@lru_cache
def fleet(machine: str, kind: str) -> FleetSpec:
    known = machine_type(machine)
    assert known is not None
    resource = known.accelerator_resource
    attached = {"accelerator": {"type": "nvidia-tesla-t4", "count": 1}} if machine.startswith("n1-") else {}
    queue: dict[str, Any] = {"name": "q", "namespaceSelector": {}}
    quotas = [{"name": resource, "nominalQuota": 2 * (known.accelerators or 1)}]
    queue["resourceGroups"] = [{"coveredResources": [resource], "flavors": [{"name": "f", "resources": quotas}]}]
    data: dict[str, Any] = {
        "name": "matrix",
        "project": "my-project",
        "clusters": [
            {
                "name": "c",
                "role": "standalone",
                "region": "us-central1",
                "mode": "Standard",
                "zones": ["us-central1-a"],
            }
        ],
        "nodePools": [{"name": "p", "machineType": machine, **attached, **CLASSES[kind]}],
        "flavors": [{"name": "f", "nodePool": "p"}],
        "clusterQueues": [queue],
        "teams": [{"name": "t", "localQueues": [{"name": "q", "clusterQueue": "q"}]}],
    }
    if kind == "flexStart, queued":
        asked = {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": [resource]}
        data["admissionChecks"] = [{"name": "dws", "provisioningRequest": asked}]
        queue["admissionChecksStrategy"] = {"admissionChecks": [{"name": "dws"}]}
    return parse_fleet(data)


def cell(machine: str, kind: str) -> str:
    try:
        fleet(machine, kind)
    except SpecError as refused:
        errors = errors_of(refused.problems)
        assert all("Google does not offer" in error.wrong for error in errors), errors
        return "no"
    option = kind.partition(",")[0]
    if option not in options_of(machine):
        return "not known"
    zones = zones_with(machine, option)
    return "yes" if zones is None else ", ".join(zones)


def job(machine: str, roles: int) -> Document:
    known = machine_type(machine)
    assert known is not None
    limits = {known.accelerator_resource: known.accelerators or 1}
    annotations = {"kueue-fleet.dev/run-seconds": "60"}
    pods = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": limits, "limits": limits}}]},
    }
    meta = {"name": "j", "namespace": "t", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    if roles == 0:
        return Document(
            "job.yaml", {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": pods}}
        )
    made = [
        {"name": f"r{number}", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": pods}}}
        for number in range(roles)
    ]
    spec = {"replicatedJobs": made}
    return Document(
        "job.yaml", {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}
    )


def rows(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def test_machines_by_class() -> None:
    body = [(f"`{name}`", *(cell(machine, kind) for kind in CLASSES)) for name, machine in MACHINES.items()]
    wanted = rows(("machine type", *CLASSES), body)
    assert wanted in PAGE.read_text(), f"write in {PAGE.name}:\n{wanted}"


def job_cell(machine: str, kind: str, roles: int) -> str:
    """What the check says of the job; one that it takes runs on the machines to its end in the simulation."""
    spec, document = fleet(machine, kind), job(machine, roles)
    problems = check_manifests(spec, [document])
    assert all("only single PodSet per request" in problem for problem in problems), problems
    if problems:
        return "GKE refuses it"
    [record] = prepare_fleet(spec, WorkloadFile(), Delays(), manifests=[document]).run().records
    assert record.state is State.FINISHED, record.message
    return "yes"


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_jobs_by_class(machine: str) -> None:
    """The table is of every machine, where the class is offered."""
    table = PAGE.read_text().splitlines()
    offered = [kind for kind in CLASSES if cell(machine, kind) != "no"]
    for name, roles in (("Job", 0), ("JobSet of one role", 1), ("JobSet of two roles", 2)):
        [row] = [line.strip("| ").split(" | ") for line in table if line.startswith(f"| {name} |")]
        wanted = dict(zip(CLASSES, row[1:], strict=True))
        assert {kind: job_cell(machine, kind, roles) for kind in offered} == {kind: wanted[kind] for kind in offered}
