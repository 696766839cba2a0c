"""Views of what clusters print: what they take, and what they leave out or report."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import PrintedJob, PrintedNode, PrintedWorkload, WorkloadState
from kueue_admission.read.printed_pods import PrintedPod

NOON = "2026-01-31T12:00:00Z"
SECONDS = 1_769_860_800.0


def condition(kind: str, status: Any = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": NOON, **more}


def workload(*conditions: Any, **status: Any) -> PrintedWorkload:
    return PrintedWorkload.of({"metadata": {"name": "w"}, "status": {"conditions": list(conditions), **status}})


def test_a_condition_that_is_true_has_a_time() -> None:
    printed = workload(condition("Admitted"), condition("Evicted", "False"))
    assert (printed.since("Admitted"), printed.since("Evicted"), printed.since("Finished")) == (SECONDS, None, None)
    assert (printed.changed_at("Evicted"), printed.changed_at("Finished")) == (SECONDS, None)


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ((), WorkloadState.PENDING),
        (("QuotaReserved",), WorkloadState.QUOTA_RESERVED),
        (("QuotaReserved", "Admitted"), WorkloadState.ADMITTED),
        (("QuotaReserved", "Admitted", "Finished"), WorkloadState.FINISHED),
    ],
)
def test_how_far_a_workload_is(conditions: tuple[str, ...], state: WorkloadState) -> None:
    assert workload(*map(condition, conditions)).state is state


def test_what_only_repeats_an_eviction_is_no_refusal() -> None:
    refused = condition("QuotaReserved", "False", reason="Pending", message="no quota")
    assert workload(refused).refusal == ("Pending", "no quota")
    assert workload(refused, condition("Evicted", message="no quota")).refusal is None


def test_the_job_of_a_workload_is_the_owner_that_controls_it() -> None:
    owners = [{"kind": "Pod", "name": "p"}, {"kind": "Job", "name": "j", "controller": True}]
    owner = PrintedWorkload.of({"metadata": {"ownerReferences": owners}}).owner
    assert owner is not None
    assert (owner.kind, owner.name) == ("Job", "j")


JUNK = ([1, condition("Admitted", True), {"type": "Finished", "status": "True", "lastTransitionTime": "noon"}], "x", 7)


@pytest.mark.parametrize("conditions", JUNK, ids=str)
def test_what_a_cluster_wrote_wrong_is_missing(conditions: Any) -> None:
    printed = PrintedWorkload.of({"status": {"conditions": conditions}})
    assert not printed.is_true("Admitted")
    assert printed.changed_at("Finished") is None


def test_what_people_wrote_wrong_is_reported_with_its_path() -> None:
    problems: list[Problem] = []
    printed = PrintedWorkload(Fields({"status": {"conditions": JUNK[0]}}, "Workload ns/w", problems))
    assert not printed.is_true("Admitted")
    assert printed.since("Finished") == 0.0
    assert [str(item) for item in dict.fromkeys(problems)] == [
        "Workload ns/w.status.conditions[0]: is the number 1, not an object; write fields under it",
        "Workload ns/w.status.conditions[1].status: is true, not text; put it in quotes",
        "Workload ns/w.status.conditions[2].lastTransitionTime: 'noon' is not a time; write it as 2026-01-31T12:00:00Z",
    ]


def test_a_job_has_ended_whatever_its_kind_calls_that() -> None:
    for kind in ("Complete", "Completed", "Failed"):
        assert PrintedJob.of({"status": {"conditions": [condition(kind)]}}).ended_at == SECONDS
    assert PrintedJob.of({"spec": {"suspend": True}}).ended_at is None


def test_a_pod_that_is_over_keeps_its_node() -> None:
    pod = PrintedPod.of({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}})
    assert (pod.is_over, pod.node) == (True, "n")
    assert not PrintedPod.of({}).is_over


def test_a_node_that_says_nothing_counts_as_ready() -> None:
    assert PrintedNode.of({}).is_ready
    assert not PrintedNode.of({"status": {"conditions": [condition("Ready", "Unknown")]}}).is_ready
