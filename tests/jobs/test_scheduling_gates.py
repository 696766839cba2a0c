"""What Kueue does not see of jobs that it admits: gates of others, RuntimeClasses, Spot nodes, pods that count for
nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.fleet_file.builders import changed, standalone_data
from tests.fleet_file.pool_builders import pools_data
from tests.jobs.test_nodes import ACCELERATOR, TEAM, documents
from tests.simulation.fleets import workload_file

from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests
from kueue_fleet.gke.labels import NODE_POOL

BARE = [{"name": "main", "image": "busybox"}]


def warned(changes: dict[str, Any] | None = None, **pod: Any) -> list[str]:
    result = check_manifests(parse_fleet(changed(pools_data(), changes or {})), documents(**TEAM, **pod))
    assert result.problems == []
    return list(map(str, result.warnings))


def test_a_gate_of_others_stays_when_the_job_is_admitted() -> None:
    [text] = warned(schedulingGates=[{"name": "example.com/quota"}])
    assert "pod set main has the scheduling gate example.com/quota, which Kueue does not take away" in text
    assert warned(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]) == []


def test_a_runtime_class_may_not_be_there() -> None:
    [text] = warned(runtimeClassName="gvisor")
    assert "has runtimeClassName gvisor, and whether batch has it is not known: without it no pod is made" in text


def test_autopilot_has_one_runtime_class() -> None:
    fleet = parse_fleet(standalone_data())

    def named(name: str) -> bool:
        result = check_manifests(fleet, documents(nodeSelector={ACCELERATOR: "nvidia-l4"}, runtimeClassName=name))
        return any("runtimeClassName" in str(item) for item in result.warnings)

    assert (named("gvisor"), named("kata")) == (False, True)


@pytest.mark.parametrize(
    ("spec", "pod", "warned"),
    [
        ({"backoffLimit": 0}, {}, True),
        ({"backoffLimit": 1}, {}, False),
        ({"backoffLimit": 0}, {"nodeSelector": {NODE_POOL: "on-demand"}}, False),
    ],
    ids=["no pod may fail", "one may", "other nodes"],
)
def test_a_spot_node_that_is_taken_back_ends_a_job(spec: dict[str, Any], pod: dict[str, Any], warned: bool) -> None:
    [document] = documents(**TEAM, **pod)
    cast("dict[str, Any]", document.data["spec"]).update(spec)
    result = check_manifests(parse_fleet(pools_data()), [document])
    said = "has backoffLimit 0, and nodes of flavor spot are Spot VMs: it fails when Google takes one back"
    assert [said in str(item) for item in result.warnings] == [True] * warned


def test_pods_without_requests_are_not_counted() -> None:
    [text] = warned(containers=BARE)
    assert "requests nothing that queue gpu counts (nvidia.com/gpu or cpu or memory), so that Kueue admits any" in text


@pytest.mark.parametrize("strategy", ["IgnoreUndeclared", "BlockUndeclared"])
def test_a_misspelt_gpu_is_not_counted_where_kueue_ignores_it(strategy: str) -> None:
    configuration = {"resources": {"quotaCheckStrategy": strategy}}
    data = changed(pools_data(), {"kueue": {"configuration": configuration}})
    entry = {"name": "j", "namespace": "team-a", "queue": "gpu", "requests": {"nvidia.com/gpus": 2}, "runSeconds": 60}
    result = prepare_fleet(parse_fleet(data), workload_file([entry]), Delays(), until=600)
    results = [str(item) for item in result.warnings if "gives them no flavor" in str(item)]
    assert bool(results) is (strategy == "IgnoreUndeclared")
