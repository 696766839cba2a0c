from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.dispatch.build import GPU, borrowed_from, job, objects, running

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule, ClusterQueuePreemption
from kueue_admission.decide.model import (
    AdmissionCheck,
    LocalQueue,
    Objects,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet
from kueue_fleet.dispatch import Fit, FitKind, WorkerQuota


def fit(quota: WorkerQuota, name: str = "train", gpus: int = 1, **changes: Any) -> Fit:
    return quota.examine(job(name, gpus, **changes), 100.0)


def test_free_quota_names_flavor_and_devices() -> None:
    result = fit(WorkerQuota(objects(8)), gpus=4)
    assert (result.kind, result.flavors, result.devices) == (FitKind.FREE, ("l4",), (("l4", 4),))


def test_quota_in_use_is_not_free_until_it_is_given_back() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("other", 6))
    assert fit(quota, gpus=4).kind is FitKind.WAITING
    assert fit(quota, gpus=2).kind is FitKind.FREE
    quota.drop("ns/other")
    assert fit(quota, gpus=4).kind is FitKind.FREE


def test_devices_without_a_flavor_are_not_counted_as_none() -> None:
    quota = borrowed_from()
    two = (PodSet(name="a", requests=((GPU, 2),)), PodSet(name="b", requests=((GPU, 6),)))
    assert (fit(quota, pod_sets=two).kind, fit(quota, pod_sets=two).devices) == (FitKind.WAITING, None)
    assert (fit(quota, gpus=8).kind, fit(quota, gpus=8).devices) == (FitKind.WAITING, None)
    assert fit(quota, gpus=4).devices == (("l4", 4),)
    assert fit(quota, pod_sets=(PodSet(requests=()),)).devices == ()


def test_a_worker_to_which_nothing_happens_does_not_remember_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kueue_fleet.dispatch.worker_quota._MOST_FITS", 10)
    quota = WorkerQuota(objects(8))
    for gpus in range(1, 40):
        fit(quota, gpus=gpus)
    assert len(quota._fits) <= 10


def test_a_finished_workload_counts_no_more() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("other", 6))
    quota.put(running("other", 6, finished=True))
    assert fit(quota, gpus=8).kind is FitKind.FREE


def test_a_nomination_on_its_way_holds_its_quota() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    assert quota.held == {"ns/first"}
    assert fit(quota, gpus=4).kind is FitKind.WAITING
    assert fit(quota, gpus=2).kind is FitKind.FREE


def test_its_own_hold_is_not_in_its_way() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    assert fit(quota, "first", 6).kind is FitKind.FREE
    assert quota.held == {"ns/first"}


def test_its_own_copy_is_not_in_its_way() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("first", 6))
    assert fit(quota, "first", 6).kind is FitKind.FREE
    assert fit(quota, "second", 4).kind is FitKind.WAITING


def test_a_hold_ends_when_the_copy_has_its_quota() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    quota.put(running("first", 6))
    assert quota.held == frozenset()
    assert fit(quota, gpus=2).kind is FitKind.FREE
    assert fit(quota, gpus=3).kind is FitKind.WAITING


def test_a_hold_goes_with_the_nomination() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    quota.forget("ns/first")
    assert fit(quota, gpus=8).kind is FitKind.FREE


def test_a_copy_that_is_there_keeps_its_hold_without_the_nomination() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    quota.put(job("first", 6))
    quota.forget("ns/first")
    assert quota.held == {"ns/first"}
    quota.drop("ns/first")
    assert quota.held == frozenset()


def test_who_waits_gets_what_becomes_free_before_anybody_new() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("old", 8))
    quota.expect(job("waits", 6))
    assert quota.held == frozenset()
    quota.drop("ns/old")
    assert quota.held == {"ns/waits"}
    assert fit(quota, gpus=4).kind is FitKind.WAITING


def test_holds_follow_priority_then_age() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("old", 8))
    quota.expect(job("young", 8, created=20.0))
    quota.expect(job("early", 8, created=10.0))
    quota.expect(job("urgent", 8, created=30.0, priority=5))
    quota.drop("ns/old")
    assert quota.held == {"ns/urgent"}
    quota.forget("ns/urgent")
    assert quota.held == {"ns/early"}


def test_local_jobs_that_wait_on_the_worker_are_ahead_too() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(job("local", 6))
    assert fit(quota, gpus=4).kind is FitKind.WAITING


@pytest.mark.parametrize(
    "changes", [{"active": False}, {"gated_by": "x/y"}, {"status": WorkloadStatus(requeued=False)}, {"queue": "none"}]
)
def test_who_cannot_be_admitted_now_holds_nothing(changes: dict[str, Any]) -> None:
    quota = WorkerQuota(objects(8))
    quota.put(job("local", 6, **changes))
    assert quota.held == frozenset()


def test_a_copy_of_other_size_gets_another_hold() -> None:
    quota = WorkerQuota(objects(8))
    quota.expect(job("first", 6))
    quota.put(job("first", 2))
    assert fit(quota, gpus=6).kind is FitKind.FREE


def test_what_never_fits_says_so_in_kueues_words() -> None:
    result = fit(WorkerQuota(objects(8)), gpus=9)
    assert (result.kind, result.reason) == (FitKind.NEVER, "ExceedsMaxQuota")
    assert "maximum capacity (8)" in result.message


def test_a_flavor_that_the_pods_exclude_is_no_match() -> None:
    pod_set = replace(job().pod_sets[0], node_selector=(("cloud.google.com/gke-accelerator", "nvidia-b200"),))
    result = objects(8)
    labelled = replace(result.flavors[0], node_labels=(("cloud.google.com/gke-accelerator", "nvidia-l4"),))
    results = fit(WorkerQuota(replace(result, flavors=(labelled,))), pod_sets=(pod_set,))
    assert (results.kind, results.reason) == (FitKind.NEVER, "NoMatchingFlavor")


def missing_queue(made: Objects) -> Objects:
    return replace(made, cluster_queues=())


def missing_local_queue(made: Objects) -> Objects:
    return replace(made, local_queues=())


def stopped_local_queue(made: Objects) -> Objects:
    return replace(made, local_queues=(LocalQueue("ns", "gpu", "gpu", "Hold"),))


def stopped_queue(made: Objects) -> Objects:
    return replace(made, cluster_queues=(replace(made.cluster_queues[0], stop_policy="Hold"),))


def without_flavor(made: Objects) -> Objects:
    return replace(made, flavors=())


def inactive_check(made: Objects) -> Objects:
    queue = replace(made.cluster_queues[0], checks=(AdmissionCheckStrategyRule(name="dws"),))
    return replace(made, cluster_queues=(queue,), checks=(AdmissionCheck("dws", "x", active=False),))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (missing_queue, FitKind.MISSING, "ClusterQueue gpu doesn't exist"),
        (missing_local_queue, FitKind.MISSING, "there is no LocalQueue gpu in its namespace"),
        (stopped_local_queue, FitKind.INACTIVE, "LocalQueue gpu is stopped"),
        (stopped_queue, FitKind.INACTIVE, "ClusterQueue gpu is inactive"),
        (without_flavor, FitKind.INACTIVE, "ClusterQueue gpu is inactive"),
        (inactive_check, FitKind.INACTIVE, "ClusterQueue gpu is inactive"),
    ],
)
def test_a_queue_that_cannot_admit(change: Any, kind: FitKind, words: str) -> None:
    result = fit(WorkerQuota(change(objects(8))))
    assert result.kind is kind
    assert words in result.message


def test_a_namespace_that_the_queue_refuses_is_a_mistake_of_configuration() -> None:
    assert fit(WorkerQuota(objects(8, namespace_selector=None))).kind is FitKind.NEVER


def test_preemption_is_possible_but_not_free() -> None:
    quota = WorkerQuota(objects(8, preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority")))
    quota.put(running("other", 8))
    assert fit(quota, priority=5).kind is FitKind.PREEMPTING
    assert fit(quota, priority=0).kind is FitKind.WAITING


def test_new_configuration_keeps_what_is_known() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("other", 6))
    quota.expect(job("first", 2))
    quota.load(objects(16))
    assert quota.held == {"ns/first"}
    assert fit(quota, gpus=8).kind is FitKind.FREE
    assert fit(quota, gpus=9).kind is FitKind.WAITING


def test_examining_changes_nothing() -> None:
    quota = WorkerQuota(objects(8))
    quota.put(running("other", 5))
    quota.expect(job("first", 2))
    before = [fit(quota, gpus=n).kind for n in range(1, 9)]
    assert [fit(quota, gpus=n).kind for n in range(1, 9)] == before == [FitKind.FREE] + [FitKind.WAITING] * 7
