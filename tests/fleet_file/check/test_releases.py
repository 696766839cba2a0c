"""What the releases of Kueue that a file names have, and which go together."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems

LATER = (
    "0.20.6 fixes the watch cache of /convert, 0.20.7 fixes quota that leaks when a check is tried again, 0.21.0 has "
    "no v1beta1 any more"
)
SEEN = (
    "whose rules are known here from its source and changelog alone: it never ran here; use 0.19.2, or try it before "
    f"you rely on it; {LATER}"
)


def found(changes: dict[str, Any]) -> list[str]:
    """What is reported, but for what `lost_at_once` is about."""
    return problems(changed(fleet_data(), {"multiKueue/workerLostTimeout": "168h", **changes}))


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a field of the Configuration that is not there yet": (
        {"kueue/version": "0.17.1", "kueue/configuration": {"resources": {"quotaCheckStrategy": "IgnoreUndeclared"}}},
        [
            "kueue.configuration.resources.quotaCheckStrategy: Kueue 0.17.1 has no field resources.quotaCheckStrategy "
            "in Configuration; remove it, or use 0.18.3 or 0.19.2 or 0.20.0, which have it"
        ],
    ),
    "a field that is in no release that runs here": (
        {"kueue/configuration": {"waitForPodsReady": {"unscheduledTimeout": "5m"}}},
        [
            "kueue.configuration.waitForPodsReady.unscheduledTimeout: Kueue 0.19.2 has no field "
            "waitForPodsReady.unscheduledTimeout in Configuration; remove it, or use 0.20.0, which has it"
        ],
    ),
    "fields of sections that no model reads": (
        {
            "kueue/configuration": {
                "metrics": {"enableClusterQueueResource": True},
                "resources": {"deviceClassMappings": [{"name": "a", "deviceClassNames": ["b"], "source": []}]},
            }
        },
        [
            "kueue.configuration.metrics.enableClusterQueueResource: is not a known field, with which Kueue does not "
            "start; did you mean enableClusterQueueResources?",
            "kueue.configuration.resources.deviceClassMappings.source: is not a known field, with which Kueue does not "
            "start; did you mean sources?",
        ],
    ),
    "a name that newer releases keep for themselves": (
        {
            "kueue/version": "0.20.0",
            "kueue/configuration": {
                "resources": {
                    "transformations": [{"input": "nvidia.com/gpu", "strategy": "Retain", "outputs": {"pods": "1"}}],
                    "deviceClassMappings": [{"name": "pods", "deviceClassNames": ["gpu.nvidia.com"]}],
                }
            },
        },
        [
            f"warning: kueue.version: 0.20.0, {SEEN}",
            "kueue.configuration.resources.transformations[0].outputs[pods]: pods is a name that Kueue 0.20.0 keeps "
            "for itself, and it does not start; use another name",
            "kueue.configuration.resources.deviceClassMappings[0].name: pods is a name that Kueue 0.20.0 keeps for "
            "itself, and it does not start; use another name",
        ],
    ),
    "a field of a queue": (
        {
            "kueue/version": "0.17.1",
            "clusterQueues/0/concurrentAdmissionPolicy": {"migration": {"mode": "RetainFirstAdmission"}},
        },
        [
            "clusterQueues[vision].concurrentAdmissionPolicy: Kueue 0.17.1 has no field spec.concurrentAdmissionPolicy "
            "in ClusterQueue; remove it, or use 0.18.3 or 0.19.2 or 0.20.0, which have it",
        ],
    ),
    "the step of a dispatcher": (
        {
            "kueue/version": "0.18.3",
            "multiKueue/dispatcher": "Incremental",
            "multiKueue/incremental": {"stepSize": 2},
        },
        [
            "multiKueue.incremental.stepSize: Kueue 0.18.3 has no field "
            "multiKueue.incrementalDispatcherConfig.stepSize in Configuration, and asks three workers more each time; "
            "remove it, or use 0.19.2 or 0.20.0, which have it"
        ],
    ),
    "a gate that is not there yet": (
        {"kueue/version": "0.18.3", "kueue/configuration": {"featureGates": {"DisableWaitForPodsReady": True}}},
        [
            "kueue.configuration.featureGates[DisableWaitForPodsReady]: Kueue 0.18.3 has no feature gate "
            "DisableWaitForPodsReady; remove it, or use 0.19.2 or 0.20.0, which have it"
        ],
    ),
    "a gate that a patch release added": (
        {"kueue/version": "0.19.0", "kueue/configuration": {"featureGates": {"PrioritizePreemptorWorkloads": True}}},
        [
            "kueue.configuration.featureGates[PrioritizePreemptorWorkloads]: Kueue 0.19.0 has no feature gate "
            "PrioritizePreemptorWorkloads; remove it, or use 0.19.2 or 0.20.0, which have it"
        ],
    ),
    "a gate that is gone": (
        {"kueue/version": "0.20.0", "kueue/configuration": {"featureGates": {"HierarchicalCohorts": True}}},
        [
            f"warning: kueue.version: 0.20.0, {SEEN}",
            "warning: kueue.configuration.featureGates[HierarchicalCohorts]: Kueue 0.20.0 has no feature gate "
            "HierarchicalCohorts; remove it, or use 0.17.1 or 0.18.3 or 0.19.2, which have it",
        ],
    ),
    "a gate of the fleet on one cluster of an older release": (
        {
            "kueue/configuration": {"featureGates": {"DisableWaitForPodsReady": True}},
            "clusters/1/kueue": {"version": "0.18.3"},
        },
        [
            "clusters[worker-a].kueue.configuration.featureGates[DisableWaitForPodsReady]: Kueue 0.18.3 has no feature "
            "gate DisableWaitForPodsReady; remove it, or use 0.19.2 or 0.20.0, which have it"
        ],
    ),
    "a patch release that was not read": (
        {"kueue/version": "0.18.6"},
        [
            "warning: kueue.version: 0.18.6, but the rules checked here are those of 0.18.3; read the release notes "
            "since 0.18.3"
        ],
    ),
    "a patch release of whose notes something is known": (
        {"kueue/version": "0.20.7"},
        [
            "warning: kueue.version: 0.20.7, but the rules checked here are those of 0.20.0; read the release notes "
            f"since 0.20.0; {LATER}"
        ],
    ),
    "a build of one's own": (
        {"kueue/version": "0.19.2+ours"},
        [
            "warning: kueue.version: 0.19.2+ours, but the rules checked here are those of 0.19.2; use 0.19.2, or read "
            "the release notes of both"
        ],
    ),
    "a release without facts": (
        {"kueue/version": "0.16.4"},
        [
            "warning: kueue.version: 0.16.4, but the rules checked here are those of 0.17.1; use 0.17.1, or read the "
            "release notes of both"
        ],
    ),
    "a release that never ran here": (
        {"clusters/1/kueue": {"version": "0.20.0"}},
        [f"warning: clusters[worker-a].kueue.version: 0.20.0, {SEEN}"],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_reported(changes: dict[str, Any], expected: list[str]) -> None:
    assert found(changes) == expected


@pytest.mark.parametrize("version", ["0.17.0", "0.17.1", "0.18.2", "0.18.3", "0.19.0", "0.19.1", "0.19.2"])
def test_a_fleet_of_each_release_that_runs_here_is_valid(version: str) -> None:
    assert found({"kueue/version": version}) == []


@pytest.mark.parametrize(("manager", "worker"), [("0.19.2", "0.18.3"), ("0.18.3", "0.19.2")])
def test_a_manager_and_a_worker_of_two_releases_go_together(manager: str, worker: str) -> None:
    changes = {"kueue/version": manager, "clusters/1/kueue": {"version": worker}}
    assert found(changes) == []


def test_workers_of_0_17_know_a_jobs_workload_by_a_label_alone() -> None:
    """As a rehearsal with the real releases showed: the worker makes a second Workload for each Job."""
    mixed = {"kueue/version": "0.19.2", "clusters/1/kueue": {"version": "0.17.1"}}
    assert found(mixed) == [
        "clusters[worker-a].kueue.version: 0.17.1, whose Workloads have no tie to a Job but a label; the manager's "
        "0.19.2 writes an annotation, so that the worker makes a second Workload; use 0.18 or newer on the worker, or "
        "set featureGates.WorkloadIdentifierAnnotations of the manager to false"
    ]
    gates = {"configuration": {"featureGates": {"WorkloadIdentifierAnnotations": False}}}
    assert found({**mixed, "clusters/0/kueue": gates}) == []


@pytest.mark.parametrize("worker", ["0.18.3", "0.19.2"])
def test_newer_workers_finish_the_copies_of_a_manager_of_0_17(worker: str) -> None:
    """As the real ones did: "Workload is orphaned; finishing to release quota"."""
    mixed = {"kueue/version": "0.17.1", "clusters/1/kueue": {"version": worker}}
    assert found(mixed) == [
        f"clusters[worker-a].kueue.version: {worker}, whose Workloads have no owner if a manager of 0.17.1 copies them "
        "there, and are finished for that: no job runs, and the manager takes all of them for finished; upgrade the "
        "manager first, with its featureGates.WorkloadIdentifierAnnotations false, or set "
        "featureGates.FinishOrphanedWorkloads of the worker to false"
    ]
    gates = {"version": worker, "configuration": {"featureGates": {"FinishOrphanedWorkloads": False}}}
    assert found({**mixed, "clusters/1/kueue": gates}) == []


def lost_at_once(version: str, timeout: str | None = None) -> list[str]:
    given = {} if timeout is None else {"multiKueue/workerLostTimeout": timeout}
    return [text for text in problems(changed(fleet_data(), {"kueue/version": version, **given})) if "Lost" in text]


@pytest.mark.parametrize("version", ["0.17.1", "0.18.3"])
def test_before_0_19_the_manager_evicts_long_jobs_of_a_worker_that_is_away(version: str) -> None:
    assert lost_at_once(version) == [
        f"warning: multiKueue.workerLostTimeout: 15m, which Kueue {version} counts from when a job was admitted on its "
        "worker: a job that runs longer is evicted as soon as the manager does not reach its worker; use 0.19 or newer "
        "on the manager, or set it to 168h, longer than jobs run"
    ]
    assert lost_at_once("0.19.2") == []


def test_a_timeout_that_is_longer_than_jobs_run_is_not_warned_of() -> None:
    assert len(lost_at_once("0.18.3", "24h")) == 1
    assert lost_at_once("0.18.3", "168h") == []


@pytest.mark.parametrize(("version", "starts"), [("0.19.2", True), ("0.19.14", False), ("0.20.7", False)])
def test_outputs_called_pods_keep_newer_releases_from_starting(version: str, starts: bool) -> None:
    outputs = {"resources": {"transformations": [{"input": "nvidia.com/gpu", "outputs": {"pods": "1"}}]}}
    output = found({"kueue/version": version, "kueue/configuration": outputs})
    assert any("outputs[pods]: pods is a name that Kueue" in item for item in output) is not starts


def test_a_release_that_does_not_serve_what_the_fleet_writes_is_refused() -> None:
    assert problems(changed(fleet_data(), {"kueue/version": "0.14.9"}))[0] == (
        "kueue.version: 0.14.9, which does not serve v1beta2, in which the fleet writes Kueue's objects; use 0.19.2; "
        "0.16.0 stores objects in v1beta2: run Kueue's hack/migrate-to-v1beta2.sh after it"
    )
    assert "does not serve" not in str(problems(changed(fleet_data(), {"kueue/version": "0.15.0"})))


@pytest.mark.parametrize(
    ("version", "since"),
    [("0.12.3", ["0.13.0", "0.14.0", "0.16.0"]), ("0.13.4", ["0.14.0", "0.16.0"]), ("0.15.1", ["0.16.0"])],
)
def test_what_breaks_on_the_way_from_older_releases_is_told(version: str, since: list[str]) -> None:
    output = problems(changed(fleet_data(), {"kueue/version": version}))[0]
    assert re.findall(r"(0\.1[3-6]\.0) (?:has no|stores)", output) == since
