from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.controller.build import GPU, NOW, condition, data, given_up, workload

from drawn import examples
from kueue_admission.read import workloads as from_workloads
from kueue_admission.read.dispatch_report import DATA_CONDITION, DISPATCH_CONDITION, ParsedReport
from kueue_admission.read.workloads import Context
from kueue_fleet.controller.records import PodSets, Record, read_record
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION

QUIET = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is not a failure."""


def read(**changes: Any) -> Record:
    return read_record(workload(**changes), Context(), PodSets())


def test_what_is_kept_of_a_workload() -> None:
    record = read(
        labels={"kueue-fleet.dev/regions": "eu"},
        annotations={"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"},
        status={"nominatedClusterNames": ["eu"], "clusterName": "us"},
        maximumExecutionTimeSeconds=30,
    )
    assert (record.key, record.uid, record.cluster_queue, record.unreadable) == ("ns/train", "uid-train", "gpu", "")
    assert (record.regions, record.run_seconds) == ("eu", "60")
    assert (record.nominated, record.cluster_name, record.reserved_at) == (("eu",), "us", NOW)
    assert record.checks["multikueue"].state == "Pending"
    assert record.holds_quota


def test_without_the_annotation_kueues_own_limit_is_the_run_time() -> None:
    assert read(maximumExecutionTimeSeconds=30).run_seconds == 30.0
    assert read().run_seconds is None


def test_our_condition_counts_for_the_reservation_that_it_was_made_for() -> None:
    told = condition(DISPATCH_CONDITION, 5, status=False, reason="DeadlineExceeded")
    assert read(conditions=[condition("QuotaReserved", 0), told]).gave_up
    assert not read(conditions=[condition("QuotaReserved", 6), told]).gave_up
    assert not read(conditions=[told]).gave_up


def test_counts_of_clusters_that_failed_it() -> None:
    assert read(conditions=given_up(0)).given_up["us"].times == 1
    assert read(conditions=[condition("QuotaReserved", 6), *given_up(0)]).given_up == {}


def test_what_is_not_ours_is_not_read() -> None:
    for bad in (
        {"report": 3},
        {"given_up": {"us": {"times": -1, "last": 0}}},
        {"given_up": {"us": {"times": 1, "last": 1e99}}},
    ):
        record = read(conditions=[condition(GIVEN_UP_CONDITION), condition(DISPATCH_CONDITION), data(**bad)])
        assert (record.given_up, record.report and record.report.said) == ({}, ParsedReport())


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@QUIET
@given(labels=JUNK, annotations=JUNK, conditions=JUNK, checks=JUNK, admission=JUNK, version=JUNK)
def test_whatever_is_in_an_object_it_gives_a_record(
    labels: Any, annotations: Any, conditions: Any, checks: Any, admission: Any, version: Any
) -> None:
    item = workload()
    item["metadata"] |= {"labels": labels, "annotations": annotations, "resourceVersion": version}
    item["status"] |= {"conditions": conditions, "admissionChecks": checks, "admission": admission}
    assert read_record(item, Context(), PodSets()).key == "ns/train"


@QUIET
@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_is_in_our_own_conditions(since: str, message: str) -> None:
    junk = {"type": DISPATCH_CONDITION, "status": "True", "lastTransitionTime": since, "message": message}
    count = {"type": GIVEN_UP_CONDITION, "status": "True", "message": message}
    numbers = {"type": DATA_CONDITION, "status": "True", "message": message}
    record = read(conditions=[condition("QuotaReserved"), junk, count, numbers])
    assert record.holds_quota


def test_what_is_remembered_of_pod_templates_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_workloads, "MOST_KEPT", 10)
    context = Context()
    for number in range(50):
        item = workload(gpus=number)
        assignment = {"name": "main", "flavors": {GPU: "l4"}, "resourceUsage": {GPU: str(number)}}
        item["status"]["admission"]["podSetAssignments"] = [assignment]
        assert read_record(item, context, PodSets()).unreadable == ""
    assert len(context.pod_sets) <= 10
    assert len(context.assignments) <= 10
