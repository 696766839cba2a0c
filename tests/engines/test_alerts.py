"""Each alert: a fault, and what Prometheus' own engine makes of the metrics around it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from alerting import Collector, evaluate, firing, kueue_metric
from kueue_admission.history.metrics import QUERY, SINCE, read_answer, read_metrics
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.google.alerts import alert_policies
from kueue_fleet.objects.dashboard_charts import sections

MANAGER, WORKER = "manager", "worker-us"
POLICIES = alert_policies(
    "lab",
    manager=MANAGER,
    job_clusters=[WORKER],
    kueue_namespace="kueue-system",
    provisioning_seconds=1800,
    stopped_queues=["closed"],
    controller_namespace="kueue-fleet-system",
    follows_capacity=True,
)
BUILD = kueue_metric(
    "kueue_build_info", 1, git_version="v0.19.2", git_commit="c", build_date="d", go_version="go", compiler="gc",
    platform="linux/amd64",
)  # fmt: skip


def queue_status(queue: str, status: str, role: str = "leader") -> str:
    """What a replica of Kueue says about the state of a queue."""
    return "".join(
        kueue_metric("kueue_cluster_queue_status", status == item, cluster_queue=queue, status=item, replica_role=role)
        for item in ("pending", "active", "terminated")
    )


def kueue(status: str = "active", role: str = "leader") -> str:
    """All that a replica of Kueue says here."""
    return BUILD + queue_status("gpu", status, role)


def healthy(cluster: str, minutes: float) -> list[Collector]:
    """A leader and a follower of Kueue that are well."""
    return [
        Collector(cluster, f"kueue-{role}").follow(lambda _, role=role: kueue(role=role), minutes)  # type: ignore[misc]
        for role in ("leader", "follower")
    ]


def fired(short: str, collectors: Iterable[Collector], minutes: float) -> dict[str, tuple[float, float]]:
    """Of the alerts that fire, the names of what they are about, and when."""
    result = firing(POLICIES[short], collectors, minutes)
    return {" ".join(value for _, value in labels): times for labels, times in result.items()}


def test_no_alert_for_a_queue_that_is_stopped_on_purpose_or_was_inactive_when_the_leader_followed() -> None:
    stopped = Collector(WORKER).follow(lambda _: BUILD + queue_status("closed", "pending"), 60)
    # A replica that takes over keeps what it measured before, as a follower.
    leads_now = Collector(WORKER, "b").follow(lambda _: kueue() + queue_status("gpu", "pending", "follower"), 60)
    assert fired("queue-inactive", [stopped, leads_now], 60) == {}


def waiting(jobs: int, admitted: int) -> str:
    told = kueue_metric(
        "kueue_unadmitted_workloads", jobs, cluster_queue="gpu", reason="UnsatisfiedAdmissionChecks",
        underlying_cause="", replica_role="leader",
    )  # fmt: skip
    return told + kueue_metric(
        "kueue_admitted_workloads_total", admitted, cluster_queue="gpu", priority_class="", replica_role="leader"
    )


def test_jobs_that_wait_while_others_get_nodes_are_a_queue_and_no_alert() -> None:
    busy = Collector(WORKER).follow(lambda minute: waiting(2, int(minute // 20)), 90)
    on_the_manager = Collector(MANAGER).follow(lambda _: waiting(2, 0), 90)
    assert fired("provisioning-stuck", [busy, on_the_manager], 90) == {}


def test_a_queue_whose_first_job_waits_is_not_stuck_yet() -> None:
    """Its series begins with the job."""
    begins = Collector(WORKER).follow(lambda m: waiting(1, 0) if m >= 10 else BUILD, 60)
    assert fired("provisioning-stuck", [begins], 60) == {f"{WORKER} gpu": (39, 60)}


def test_no_kueue_from_the_beginning() -> None:
    assert fired("kueue-gone", healthy(MANAGER, 30), 30) == {WORKER: (10, 30)}


def test_replicas_of_kueue_of_which_none_leads() -> None:
    follower = Collector(WORKER, "a").follow(lambda _: kueue(role="follower"), 60)
    loses_it = Collector(WORKER, "b").follow(lambda minute: kueue(role="leader" if minute < 20 else "follower"), 60)
    assert fired("kueue-gone", [*healthy(MANAGER, 60), follower, loses_it], 60) == {WORKER: (30, 60)}


def test_one_replica_of_two_is_restarted() -> None:
    restarted = Collector(WORKER, "a").follow(lambda minute: None if 10 <= minute < 30 else kueue(), 60)
    takes_over = Collector(WORKER, "b").follow(lambda minute: kueue(role="follower" if minute < 11 else "leader"), 60)
    assert fired("kueue-gone", [*healthy(MANAGER, 60), restarted, takes_over], 60) == {}


def replica(leads: bool, **workers: int) -> str:
    """What a replica of the fleet's controller says: its own metrics."""
    metrics = Metrics()
    metrics.leading.set(leads)
    for name, followed in workers.items():
        metrics.connected.labels(name).set(followed)
    return metrics.text().decode()


def test_no_controller_at_all() -> None:
    assert fired("controller-gone", [], 20) == {"": (5, 20)}


def test_another_replica_that_leads_within_a_minute_is_no_alert() -> None:
    killed = Collector(MANAGER, "a").follow(lambda minute: replica(True) if minute < 10 else None, 40)
    follows = Collector(MANAGER, "b").follow(lambda minute: replica(minute >= 11), 40)
    assert fired("controller-gone", [killed, follows], 40) == {}


def test_a_worker_that_is_unknown_for_a_moment_is_no_alert() -> None:
    leader = Collector(MANAGER).follow(lambda m: replica(True, us=0 if m % 9 < 8 else 1), 60)
    assert fired("worker-unfollowed", [leader], 60) == {}


def stuck(jobs: int) -> str:
    """What the leader says of jobs whose eviction or deletion is not finished."""
    metrics = Metrics()
    metrics.stuck.labels("StuckEviction").set(jobs)
    return metrics.text().decode()


def lost(gpus: int) -> str:
    """What the leader says of nodes that are broken."""
    metrics = Metrics()
    if gpus:
        metrics.lost_capacity.labels("us", "h100", "nvidia.com/gpu").set(gpus)
    return metrics.text().decode()


def tokens(issued: float, expiry: float, renewed_at: float | None, minute: float) -> str:
    """What the leader says of a token; times in minutes; once it is renewed, a second one of the same lifetime."""
    metrics = Metrics()
    if renewed_at is not None and minute >= renewed_at:
        issued, expiry = renewed_at, renewed_at + expiry - issued
    metrics.token_issued.labels("us", "multikueue-manager").set(issued * 60)
    metrics.token_expires.labels("us", "multikueue-manager").set(expiry * 60)
    return metrics.text().decode()


def test_a_token_that_is_renewed_in_time_and_one_that_never_ends_are_no_alert() -> None:
    renewed = Collector(MANAGER).follow(lambda minute: tokens(0, 60, 45, minute), 90)
    assert fired("token-expiring", [renewed], 90) == {}
    assert fired("token-expiring", [Collector(MANAGER).follow(lambda _: replica(True, us=1), 90)], 90) == {}


FAULTS: dict[str, tuple[list[Collector], int, dict[str, tuple[float, float]]]] = {
    # A queue is not active from minute 5 to 30.
    "queue-inactive": (
        [Collector(WORKER).follow(lambda m: kueue("pending" if 5 <= m < 30 else "active"), 60)],
        60,
        {f"{WORKER} gpu": (15, 29)},
    ),
    # Jobs wait for nodes from minute 10 on.
    "provisioning-stuck": (
        [Collector(WORKER).follow(lambda m: waiting(2 if m >= 10 else 0, 3), 60)],
        60,
        {f"{WORKER} gpu": (40, 60)},
    ),
    # No Kueue on one of two clusters from minute 5 to 40.
    "kueue-gone": (
        [*healthy(MANAGER, 60), Collector(WORKER).follow(lambda m: None if 5 <= m < 40 else kueue(), 60)],
        60,
        {WORKER: (15, 39)},
    ),
    # The leader is gone at minute 10, the other replica leads from minute 30.
    "controller-gone": (
        [
            Collector(MANAGER, "a").follow(lambda m: replica(True) if m < 10 else None, 40),
            Collector(MANAGER, "b").follow(lambda m: replica(m >= 30), 40),
        ],
        40,
        {"": (15, 29)},
    ),
    # One of two workers is unknown from minute 5 to 20.
    "worker-unfollowed": (
        [Collector(MANAGER).follow(lambda m: replica(True, eu=1, us=0 if 5 <= m < 20 else 1), 40)],
        40,
        {"us": (15, 19)},
    ),
    # A deletion that is not finished from minute 5 to 20.
    "jobs-stuck": (
        [Collector(MANAGER).follow(lambda m: stuck(1 if 5 <= m < 20 else 0), 40)],
        40,
        {"StuckEviction": (15, 19)},
    ),
    # A node that is broken from minute 5 to 40.
    "capacity-lost": (
        [Collector(MANAGER).follow(lambda m: lost(8 if 5 <= m < 40 else 0), 60)],
        60,
        {"us h100 nvidia.com/gpu": (35, 39)},
    ),
    # A token of two hours that nothing renews.
    "token-expiring": (
        [Collector(MANAGER).follow(lambda m: tokens(0, 120, None, m), 120)],
        120,
        {"multikueue-manager us": (107, 120)},
    ),
}


def test_every_alert_on_metrics_has_a_fault() -> None:
    """`worker-disconnected` reads a log: faults/."""
    assert FAULTS.keys() == POLICIES.keys() - {"worker-disconnected"}


@pytest.mark.parametrize("short", FAULTS)
def test_a_fault_fires_its_alert_and_names_what_is_broken(short: str) -> None:
    collectors, minutes, expected = FAULTS[short]
    assert fired(short, collectors, minutes) == expected


def jobs_that_wait(collectors: Iterable[Collector]) -> list[Any]:
    (chart,) = (
        item for section in sections(controller=False) for item in section.charts if item.title == "Jobs that wait"
    )
    return [float(series["values"][-1][1]) for series in evaluate(chart.queries[""], collectors, 5, 60)]


def test_dashboards_count_each_job_once_however_many_replicas_there_are() -> None:
    def pending(role: str) -> str:
        return kueue_metric(
            "kueue_pending_workloads", 7, cluster_queue="gpu", status="active", replica_role=role
        )  # fmt: skip

    replicas = [
        Collector(WORKER, role).follow(lambda _, role=role: pending(role), 5)  # type: ignore[misc]
        for role in ("leader", "follower")
    ]
    assert jobs_that_wait(replicas) == [7.0]
    assert jobs_that_wait([Collector(WORKER).follow(lambda _: pending("standalone"), 5)]) == [7.0]


def test_prometheus_tells_record_what_kueue_counted_of_one_of_its_clusters() -> None:
    """As from the text that Kueue serves, but for its own times."""
    text = (Path(__file__).parents[2] / "examples" / "dws-multikueue" / "metrics.txt").read_text()
    both = [Collector(name).follow(lambda _: text, 10) for name in (MANAGER, WORKER)]
    matrix = {"resultType": "matrix", "result": evaluate(QUERY, both, 10, 300)}
    rows = read_answer({"status": "success", "data": matrix}, "prometheus", MANAGER)
    [printed] = read_metrics(text, "metrics.txt", 0.0)
    counts = {name: count for name, count in (printed.counts or {}).items() if name != SINCE}
    assert [(row.time, row.cluster_queue, row.counts) for row in rows] == [(at, "dws", counts) for at in (0, 300, 600)]
