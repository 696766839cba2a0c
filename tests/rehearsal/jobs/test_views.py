from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kueue_admission.read.printed import Printed, PrintedWorkload
from kueue_rehearsal.jobs.views import (
    JobState,
    JobView,
    Placement,
    admitted_placements,
    in_vain,
    only_wait_for_each_other,
    view_jobs,
)

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
JOB = {
    "kind": "Job",
    "metadata": {"uid": "u1", "namespace": "team-a", "name": "train", "creationTimestamp": "2026-11-21T12:00:00Z"},
}


def condition(kind: str, status: str, reason: str = "", message: str = "", after_seconds: int = 0) -> dict[str, str]:
    time = (START + timedelta(seconds=after_seconds)).isoformat().replace("+00:00", "Z")
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def workload(*conditions: dict[str, str], **status: object) -> dict[str, object]:
    return {
        "metadata": {"namespace": "team-a", "name": "job-train", "ownerReferences": [{"uid": "u1"}]},
        "status": {"conditions": list(conditions), **status},
    }


def printed(listed: Mapping[str, Sequence[Mapping[str, object]]]) -> dict[str, list[PrintedWorkload]]:
    return {cluster: [PrintedWorkload.of(item) for item in result] for cluster, result in listed.items()}


def view(*manager: dict[str, object], copies: dict[str, dict[str, object]] | None = None, now: int = 9) -> JobView:
    workloads = printed({"manager": list(manager), **{name: [copy] for name, copy in (copies or {}).items()}})
    placements = admitted_placements(workloads, "manager")
    [only] = view_jobs([Printed.of(JOB)], "manager", workloads, placements, START + timedelta(seconds=now))
    return only


def test_a_job_without_workload_waits_for_kueue() -> None:
    seen = view()
    assert (seen.state, seen.waited_seconds) == (JobState.PENDING, 9)
    assert seen.reasons == (("manager", "PendingEvaluation: Kueue has not made its Workload yet"),)
    assert not seen.settled


def test_a_job_without_quota_says_why_in_kueues_words() -> None:
    seen = view(workload(condition("QuotaReserved", "False", "WaitingForQuota", "insufficient unused quota")))
    assert seen.reasons == (("manager", "WaitingForQuota: insufficient unused quota"),)
    assert not seen.settled


def test_a_dispatched_job_that_fits_no_worker_is_hopeless_and_says_so_for_each_worker() -> None:
    too_much = workload(condition("QuotaReserved", "False", "ExceedsMaxQuota", "needs 8, has 4"))
    seen = view(workload(condition("QuotaReserved", "True")), copies={"worker-b": too_much, "worker-a": too_much})
    assert seen.state is JobState.QUOTA_RESERVED
    assert seen.reasons == (
        ("worker-a", "ExceedsMaxQuota: needs 8, has 4"),
        ("worker-b", "ExceedsMaxQuota: needs 8, has 4"),
    )
    assert seen.settled


def test_a_job_that_one_worker_may_still_run_is_not_hopeless() -> None:
    seen = view(
        workload(condition("QuotaReserved", "True")),
        copies={
            "worker-a": workload(condition("QuotaReserved", "False", "ExceedsMaxQuota")),
            "worker-b": workload(condition("QuotaReserved", "False", "WaitingForQuota")),
        },
    )
    assert not seen.settled


def pods(count: int) -> dict[str, object]:
    return {"queueName": "main", "priority": 0, "podSets": [{"count": count, "template": {"spec": {"containers": []}}}]}


@pytest.mark.parametrize(("count", "hopeless"), [(8, True), (4, False)])
def test_a_copy_that_kueue_parked_beside_an_equal_one_has_its_reason(count: int, hopeless: bool) -> None:
    """Kueue writes nothing into a Workload that is equal to one which can never fit."""
    fits_never = {**workload(condition("QuotaReserved", "False", "ExceedsMaxQuota", "needs 8, has 6")), "spec": pods(8)}
    former = {**fits_never, "metadata": {"namespace": "team-a", "name": "job-former"}}
    unlooked = {**workload(), "spec": pods(count)}
    workloads = printed({"manager": [workload(condition("QuotaReserved", "True"))], "worker": [former, unlooked]})
    [seen] = view_jobs([Printed.of(JOB)], "manager", workloads, {}, START)
    assert seen.hopeless is hopeless
    output = "ExceedsMaxQuota: needs 8, has 6" if hopeless else "PendingEvaluation: Kueue has not looked at it yet"
    assert seen.reasons == (("worker", output),)


def test_before_dispatch_the_pending_admission_checks_are_named() -> None:
    checks = [{"name": "multikueue", "state": "Pending"}, {"name": "window", "state": "Ready"}]
    seen = view(workload(condition("QuotaReserved", "True"), admissionChecks=checks))
    assert seen.reasons == (("manager", "UnsatisfiedAdmissionChecks: multikueue Pending"),)


def test_an_admitted_job_shows_its_worker_its_flavors_and_how_long_it_waited() -> None:
    assignment = {"podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "dws-t4", "cpu": "cpu-only"}}]}
    seen = view(
        workload(condition("QuotaReserved", "True"), condition("Admitted", "True", after_seconds=4)),
        copies={"worker-a": workload(condition("Admitted", "True"), admission=assignment)},
    )
    assert (seen.state, seen.cluster, seen.waited_seconds) == (JobState.ADMITTED, "worker-a", 4)
    assert seen.flavors == ("cpu-only", "dws-t4")
    assert seen.reasons == ()


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("Succeeded", JobState.FINISHED),
        ("Failed", JobState.FAILED),
        ("OwnerNotFound", JobState.FAILED),
        ("OutOfSync", JobState.FAILED),
    ],
)
def test_a_finished_job_keeps_its_placement_after_the_workers_copy_is_gone(reason: str, state: JobState) -> None:
    manager = workload(
        condition("Admitted", "True", after_seconds=4), condition("Finished", "True", reason, after_seconds=20)
    )
    placements = {"team-a/job-train": Placement("worker-a", ("dws-t4",))}
    workloads = printed({"manager": [manager], "worker-a": []})
    [seen] = view_jobs([Printed.of(JOB)], "manager", workloads, placements, START + timedelta(seconds=60))
    assert (seen.state, seen.cluster, seen.waited_seconds, seen.settled) == (state, "worker-a", 4, True)


@pytest.mark.parametrize(("replicas", "state"), [(1, JobState.ADMITTED), (2, JobState.PENDING)])
def test_a_deployment_is_as_far_as_the_last_of_its_pods(replicas: int, state: JobState) -> None:
    deployment = Printed.of({"kind": "Deployment", "metadata": {"namespace": "a", "name": "chat", "uid": "deployment"}})
    owners = {"pod-0": "replica-set", "pod-1": "replica-set", "replica-set": "deployment"}
    pods = [workload(condition("Admitted", "True")), workload()]
    for number, pod in enumerate(pods):
        pod["metadata"] = {"namespace": "a", "name": "chat", "ownerReferences": [{"uid": f"pod-{number}"}]}
    workloads = printed({"solo": pods[:replicas]})
    [seen] = view_jobs([deployment], "solo", workloads, {}, START, owners=owners)
    assert (seen.state, seen.settled) == (state, replicas == 1)


def test_without_workers_the_only_cluster_is_where_a_job_runs() -> None:
    admitted = workload(condition("Admitted", "True"), admission={"podSetAssignments": []})
    assert admitted_placements(printed({"solo": [admitted]}), "solo") == {"team-a/job-train": Placement("solo", ())}


def test_the_managers_own_admission_is_no_placement() -> None:
    admitted = workload(condition("Admitted", "True"))
    assert admitted_placements(printed({"manager": [admitted], "worker-a": []}), "manager") == {}


def test_a_deactivated_copy_is_hopeless() -> None:
    evicted = condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "the requeuing limit is exceeded")
    copy = {**workload(condition("QuotaReserved", "False", "Pending"), evicted), "spec": {"active": False}}
    seen = view(workload(condition("QuotaReserved", "True")), copies={"worker-a": copy})
    assert seen.reasons == (("worker-a", "Deactivated: the requeuing limit is exceeded"),)
    assert seen.settled


CHECKS = {"admissionChecks": [{"name": "dws", "state": "Pending", "message": "Waiting for capacity"}]}


def test_what_the_simulated_cloud_never_has_is_hopeless() -> None:
    copy = workload(condition("QuotaReserved", "True"), **CHECKS)
    manager = workload(condition("QuotaReserved", "True"))
    workloads = printed({"manager": [manager], "worker-a": [copy], "worker-b": [copy]})

    def seen(*without: str) -> JobView:
        def beyond(cluster: str, asked: PrintedWorkload) -> str | None:
            return f"never in {cluster}" if cluster in without and asked.fields.data == copy else None

        [only] = view_jobs([Printed.of(JOB)], "manager", workloads, {}, START, beyond)
        return only

    assert seen().reasons[0] == ("worker-a", "UnsatisfiedAdmissionChecks: dws Pending: Waiting for capacity")
    assert not seen("worker-a").settled
    nowhere = seen("worker-a", "worker-b")
    assert nowhere.settled
    assert nowhere.reasons == (
        ("worker-a", "UnsatisfiedAdmissionChecks: never in worker-a"),
        ("worker-b", "UnsatisfiedAdmissionChecks: never in worker-b"),
    )


def named(name: str, *conditions: dict[str, str], **spec: object) -> dict[str, object]:
    result = workload(*conditions)
    result["metadata"] = {"namespace": "team-a", "name": name}
    return {**result, "spec": spec}


WAITS = condition("QuotaReserved", "False", "WaitingForQuota")
HOLDS = condition("QuotaReserved", "True")
TOO_BIG = condition("QuotaReserved", "False", "ExceedsMaxQuota")


@pytest.mark.parametrize(
    ("manager", "worker", "alone"),
    [
        ([named("a", WAITS)], [], True),
        ([named("a", WAITS), named("b", HOLDS)], [named("b", TOO_BIG)], True),
        ([named("a", WAITS), named("b", condition("QuotaReserved", "False", "Suspended"))], [], True),
        ([named("a", WAITS), named("b", condition("Finished", "True", "Succeeded"))], [], True),
        ([named("a", WAITS), named("b", HOLDS, condition("Admitted", "True"))], [], False),
        ([named("a", WAITS), named("b", HOLDS)], [named("b", WAITS)], True),
        ([named("a", WAITS), named("b", HOLDS)], [named("b", HOLDS)], False),
        ([named("a", WAITS), named("b", HOLDS)], [], False),
        ([named("a", WAITS), named("b")], [], False),
        ([named("a", WAITS), named("b", condition("QuotaReserved", "False", "PendingEvaluation"))], [], False),
    ],
)
def test_jobs_that_wait_for_each_other_alone(
    manager: list[dict[str, object]], worker: list[dict[str, object]], alone: bool
) -> None:
    assert only_wait_for_each_other(printed({"manager": manager, "worker": worker}), "manager") is alone


def test_a_job_that_waits_in_vain_says_so_and_is_settled() -> None:
    waits = in_vain(view(workload(condition("QuotaReserved", "False", "WaitingForQuota", "4 more needed"))))
    assert waits.settled
    assert waits.reasons == (("manager", "WaitingForQuota: 4 more needed; no running workload will release quota"),)
    finished = view(workload(condition("Admitted", "True"), condition("Finished", "True", "Succeeded")))
    assert in_vain(finished) is finished
