"""Jobs that a manager admits without a worker, since Kueue counts nothing of what they request."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fleets import GPU, fleet_data, workload_file
from tests.simulation.test_jobs_that_never_start import found

from kueue_admission.cli.simulate_tables import show
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.result import waiting_times
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet

NOWHERE = (
    "requests nothing that queue gpu counts (nvidia.com/gpu), so that Kueue gives it no flavor and no MultiKueue "
    "check, and admits it on manager, where no pod runs"
)


def gpus_alone(strategy: str = "IgnoreUndeclared") -> dict[str, Any]:
    """A fleet whose queue covers GPUs alone."""
    quotas = [{"name": GPU, "nominalQuota": 2}]
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "l4-spot", "resources": quotas}]}]
    queue = {"name": "gpu", "namespaceSelector": {}, "resourceGroups": groups}
    configuration = {"resources": {"quotaCheckStrategy": strategy}, "waitForPodsReady": {"timeout": "1h"}}
    return fleet_data(clusterQueues=[queue], kueue={"configuration": configuration})


def prepared(data: dict[str, Any], requests: dict[str, Any], until: float = 600) -> Prepared:
    entry = {"name": "j", "namespace": "team-a", "queue": "gpu", "requests": requests, "runSeconds": 60}
    return prepare_fleet(parse_fleet(data), workload_file([entry]), Delays(), until=until)


@pytest.mark.parametrize("requests", [{"cpu": 1}, {}, {"nvidia.com/gpus": 1}])
def test_a_job_of_which_nothing_is_counted_never_starts(requests: dict[str, Any]) -> None:
    containers = [{"name": "c", "image": "m:1", "resources": {"requests": requests, "limits": requests}}]
    [text] = found(gpus_alone(), containers=containers)
    assert f"never starts: {NOWHERE}" in text


@pytest.mark.parametrize(
    ("name", "near"),
    [("nvidia.com/gpus", GPU), ("nvida.com/gpu", GPU), ("google.com/tpus", "google.com/tpu"), ("example.com/gpu", "")],
)
@pytest.mark.parametrize("strategy", ["IgnoreUndeclared", "BlockUndeclared"])
def test_the_resource_that_is_meant_is_named(name: str, near: str, strategy: str) -> None:
    containers = [{"name": "c", "image": "m:1", "resources": {"requests": {name: 1}, "limits": {name: 1}}}]
    [text] = found(gpus_alone(strategy), containers=containers)
    assert text.endswith(f"; did you mean {near} for {name}?") if near else "did you mean" not in text


def test_the_resource_that_is_meant_is_named_where_other_requests_count() -> None:
    data = gpus_alone()
    data["clusterQueues"][0]["resourceGroups"][0] = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "l4-spot", "resources": [{"name": "cpu", "nominalQuota": 8}]}],
    }
    resources = {"requests": {"cpu": 1, "nvidia.com/gpus": 1}, "limits": {"nvidia.com/gpus": 1}}
    [text] = found(data, containers=[{"name": "c", "image": "m:1", "resources": resources}])
    assert text.endswith("; did you mean nvidia.com/gpu for nvidia.com/gpus?")


def test_a_resource_like_another_of_its_vendor_is_none_of_it() -> None:
    resources = {"requests": {"nvidia.com/gpumem": 1}, "limits": {"nvidia.com/gpumem": 1}}
    [text] = found(gpus_alone(), containers=[{"name": "c", "image": "m:1", "resources": resources}])
    assert "never starts" in text
    assert "did you mean" not in text


def test_autopilot_may_add_what_counts() -> None:
    data = fleet_data()
    data["clusters"][0]["mode"] = "Autopilot"
    containers = [{"name": "c", "image": "m:1"}]
    assert found(data, containers=containers) == []
    data["clusters"][0]["mode"] = "Standard"
    assert "never starts: requests nothing that queue gpu counts" in found(data, containers=containers)[0]


def test_a_simulation_leaves_it_unfinished_and_says_why() -> None:
    result = prepared(gpus_alone(), {"cpu": 1})
    assert [str(item) for item in result.warnings] == [
        f"jobs[j].queue: {NOWHERE}; request nvidia.com/gpu in its containers",
    ]
    [record] = result.run().records
    assert (record.finished_at, record.why_not_started) == (None, NOWHERE)


def test_a_job_that_is_evicted_without_having_run_counts_as_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    result = prepared(gpus_alone(), {"cpu": 1}, until=20_000).run()
    [wait] = waiting_times(result.records)
    assert (wait.admitted, wait.mean) == (0, None)
    show(result)
    assert f"team-a/j was admitted 6 times and never ran: {NOWHERE}" in " ".join(capsys.readouterr().out.split())


def test_what_other_requests_hold_back_waits() -> None:
    result = prepared(gpus_alone("BlockUndeclared"), {"cpu": 1})
    assert result.warnings == ()
    [record] = result.run().records
    assert (record.admitted_at, record.reason) == (None, "NoMatchingFlavor")


def test_before_0_18_the_job_has_the_check_and_runs() -> None:
    data = gpus_alone()
    data["kueue"] = {"version": "0.17.1"}
    result = prepared(data, {})
    assert result.warnings == ()
    assert result.run().records[0].finished_at is not None
