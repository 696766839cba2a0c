"""Kueue's metrics as a history: what they tell of each ClusterQueue, and which goals that answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_admission.history.metrics import is_metrics, judge_counted, read_answer, read_metrics
from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.problem import SpecError
from kueue_admission.read.goals import Goal, Standing

EXAMPLE = Path(__file__).parents[2] / "examples" / "dws-multikueue" / "metrics.txt"
AT = 1_795_161_600.0


def rows(text: str = "") -> list[Event]:
    return read_metrics(text or EXAMPLE.read_text(), "metrics.txt", 1_800_000_000.0)


def goal(limit: float, quantile: float = 0.9, queue: str = "dws", team: str = "", priority_class: str = "") -> Goal:
    return Goal("clusterQueues[dws]", "wait", limit, queue, team, quantile, priority_class)


def test_a_queue_has_one_row_with_what_was_counted() -> None:
    [row] = rows()
    assert (row.kind, row.time, row.cluster_queue, row.exact) == (Kind.COUNTED, AT, "dws", False)
    assert row.counts == {
        "waitedAtMost1": 3,
        "waitedAtMost320": 140,
        "waitedAtMost640": 188,
        "waitedAtMost1280": 199,
        "admitted": 200,
        "pendingActive": 2,
        "pendingInadmissible": 0,
        "evictedAdmissionCheck": 4,
        "countedSeconds": 7 * 86_400,
    }


def test_without_times_it_is_of_now_and_since_when_is_not_known() -> None:
    text = "".join(
        f"{line.removesuffix(' 1795161600000')}\n"
        for line in EXAMPLE.read_text().splitlines()
        if not line.startswith("process_")
    )
    [row] = rows(text)
    assert row.time == 1_800_000_000.0
    assert "countedSeconds" not in (row.counts or {})
    assert "since a time that is not known" in judge_counted(goal(640), [row]).why


def test_priority_classes_are_summed_and_other_metrics_left_out() -> None:
    name = "kueue_admission_wait_time_seconds"
    [row] = rows(
        f'{name}_count{{cluster_queue="a",priority_class="x"}} 2\n'
        f'{name}_count{{cluster_queue="a",priority_class="y"}} 3\n'
        f'{name}_bucket{{cluster_queue="a",le="+Inf"}} 5\ngo_goroutines 7\nkueue_build_info{{v="a b \\" }}"}} 1\n'
    )
    assert row.counts == {"admitted": 5}


@pytest.mark.parametrize(
    ("limit", "quantile", "standing"),
    [
        (640, 0.9, Standing.MET),  # 188 of 202 at most: 182 are needed
        (640, 0.94, Standing.NOT_KNOWN),  # 188 waited at most 640 s, 190 are needed: the two that wait decide
        (640, 0.95, Standing.MISSED),  # 12 waited longer, 10 may
        (1280, 0.95, Standing.MET),
        (1000, 0.95, Standing.NOT_KNOWN),  # between two buckets
        (320, 0.9, Standing.MISSED),  # 60 waited longer, 20 may
        (300, 0.5, Standing.NOT_KNOWN),
        (0.5, 0.5, Standing.MISSED),
        (100_000, 0.99, Standing.NOT_KNOWN),  # 199 of at least 200
    ],
)
def test_a_goal_is_judged_only_where_buckets_and_those_that_wait_leave_no_doubt(
    limit: float, quantile: float, standing: Standing
) -> None:
    assert judge_counted(goal(limit, quantile), rows()).standing is standing


@pytest.mark.parametrize(
    "other",
    [
        goal(640, queue="", team="vision"),
        goal(640, priority_class="high"),
        goal(640, queue="other"),
        Goal("clusterQueues[dws]", "share", 0.5, "dws"),
    ],
)
def test_other_goals_are_not_known(other: Goal) -> None:
    assert judge_counted(other, rows()).standing is Standing.NOT_KNOWN


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('# HELP x y\nkueue_pending_workloads{cluster_queue="a"} 1\n', "has no kueue_admission_wait_time_seconds"),
        ("# TYPE x gauge\n<html>\n", "line 2: is not a sample of a metric"),
        ('kueue_x{a="b"} many\n', "line 1: is not a sample of a metric"),
        ("# HELP\n", "has no kueue_admission_wait_time_seconds"),
    ],
)
def test_what_is_no_metrics_of_kueue_is_refused(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        rows(text)


def test_only_metrics_are_taken_for_metrics() -> None:
    assert is_metrics(EXAMPLE.read_text())
    assert not any(
        map(is_metrics, ("", "submitted,queue\n", "apiVersion: v1\n", "# a comment\nkind: List\n", "JobID|\n"))
    )


WAIT = "kueue_admission_wait_time_seconds"


def answer(*series: tuple[str, dict[str, str], list[tuple[float, str]]]) -> dict[str, object]:
    """As Prometheus answers a query of a range."""
    result: list[dict[str, object]] = [
        {"metric": {"__name__": name, **labels}, "values": values} for name, labels, values in series
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_an_answer_of_prometheus_has_a_row_for_each_time() -> None:
    own, other = {"instance": "kueue:8443"}, {"instance": "node:9100"}
    [first, second] = read_answer(
        answer(
            (f"{WAIT}_count", {"cluster_queue": "dws", **own}, [(1000.0, "2"), (2000.0, "5")]),
            (f"{WAIT}_bucket", {"cluster_queue": "dws", "le": "320", **own}, [(1000.0, "1"), (2000.0, "4")]),
            ("process_start_time_seconds", own, [(1000.0, "400"), (2000.0, "400")]),
            ("process_start_time_seconds", other, [(1000.0, "900"), (2000.0, "900")]),
        ),
        "http://p",
        "manager",
    )
    assert (first.time, first.counts) == (1000.0, {"admitted": 2, "waitedAtMost320": 1, "countedSeconds": 600})
    assert (second.time, second.counts) == (2000.0, {"admitted": 5, "waitedAtMost320": 4, "countedSeconds": 1600})


def test_of_a_prometheus_of_several_clusters_one_counts() -> None:
    both = answer(
        *(
            (f"{WAIT}_count", {"cluster_queue": "dws", "cluster": name}, [(1000.0, "2")])
            for name in ("manager", "other")
        )
    )
    [row] = read_answer(both, "http://p", "manager")
    assert row.counts == {"admitted": 2}
    with pytest.raises(SpecError, match=r"http://p: has metrics of manager, other, .* none of third; name the cluster"):
        read_answer(both, "http://p", "third")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"status": "error", "error": "bad_data"},
        {"status": "success", "data": {"resultType": "vector", "result": []}},
        {"status": "success", "data": {"resultType": "matrix"}},
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": []}]}},
        {"status": "success", "data": {"resultType": "matrix", "result": [1]}},
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": [], "values": []}]}},
        answer((f"{WAIT}_count", {}, [(1000.0, "many")])),
    ],
)
def test_what_is_no_answer_of_prometheus_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="does not answer as Prometheus does"):
        read_answer(document, "http://p", "manager")
