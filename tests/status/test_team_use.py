"""What `status` says of each team."""

from __future__ import annotations

from typing import Any

from tests.simulation.fleets import GPU, fleet
from tests.status.test_fleet_status import ADMITTED, RESERVED, conditions, queue, workload

from kueue_fleet.status import ClusterObjects, TeamUse, team_use

OWN: list[dict[str, Any]] = [
    {"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]},
    {"name": "team-b", "namespaces": ["b1", "b2"]},
]


def of(namespace: str, count: int, gpus: str, **states: tuple[bool, str, str]) -> dict[str, Any]:
    result = workload(f"{namespace}-{count}")
    result["status"] = conditions(**states)
    result["metadata"]["namespace"] = namespace
    containers = [{"resources": {"limits": {GPU: gpus}, "requests": {"cpu": "1"}}}, {"name": "sidecar"}]
    result["spec"]["podSets"] = [{"name": "main", "count": count, "template": {"spec": {"containers": containers}}}]
    if "QuotaReserved" in states:
        usage = {"cpu": "4", GPU: str(count * int(gpus))}
        result["status"]["admission"] = {"podSetAssignments": [{"name": "main", "resourceUsage": usage}]}
    return result


def clusters() -> dict[str, ClusterObjects]:
    over = of("team-a", 9, "9", Finished=(True, "Succeeded", ""), QuotaReserved=RESERVED)
    on_worker = of("team-a", 2, "4", QuotaReserved=RESERVED, Admitted=ADMITTED)
    on_worker["status"]["clusterName"] = "w1"
    workloads = [
        on_worker,
        of("team-a", 1, "1", QuotaReserved=RESERVED),
        of("team-a", 3, "2"),
        over,
        of("b1", 1, "1"),
        of("b2", 1, "2", QuotaReserved=RESERVED),
        of("elsewhere", 5, "5"),
    ]
    borrows = queue(used="9", borrowed="3")
    borrows["metadata"]["name"] = "gpu"
    return {
        "manager": ClusterObjects("manager", {"workloads": workloads, "clusterqueues": [borrows]}),
        "w1": ClusterObjects("worker", {"clusterqueues": [borrows, queue(borrowed="7")], "workloads": workloads}),
        "w2": ClusterObjects("worker", {"clusterqueues": [borrows]}),
    }


def test_use_is_of_the_manager_and_borrowing_of_the_workers() -> None:
    assert list(team_use(fleet(teams=OWN), clusters())) == [
        TeamUse("team-a", jobs=1, gpus=9, borrowed=6, waiting_jobs=2, waiting_gpus=7),
        TeamUse("team-b", jobs=0, gpus=2, borrowed=None, waiting_jobs=2, waiting_gpus=3),
    ]


def test_one_that_keeps_its_quota_and_can_never_run_waits() -> None:
    """MultiKueue leaves it its quota on the manager; `status` lists it as pending, and `explain` says that it waits."""
    never = of("team-a", 9, "9", QuotaReserved=RESERVED)
    result = {"manager": ClusterObjects("manager", {"workloads": [never], "clusterqueues": []})}
    use = next(iter(team_use(fleet(teams=OWN), result)))
    assert (use.jobs, use.waiting_jobs, use.waiting_gpus) == (0, 1, 81)


def test_one_that_the_manager_admitted_without_a_worker_does_not_run() -> None:
    nowhere = of("team-a", 1, "1", QuotaReserved=RESERVED, Admitted=ADMITTED)
    result = {"manager": ClusterObjects("manager", {"workloads": [nowhere], "clusterqueues": []})}
    use = next(iter(team_use(fleet(teams=OWN), result)))
    assert (use.jobs, use.waiting_jobs) == (0, 1)


def test_what_a_queue_of_several_teams_borrows_is_of_no_team() -> None:
    shared = [OWN[0], {**OWN[0], "name": "team-c"}]
    assert [item.borrowed for item in team_use(fleet(teams=shared), clusters())] == [None, None]


def test_the_use_of_a_manager_that_cannot_be_read_is_not_known() -> None:
    result = {"manager": ClusterObjects("manager", unreachable="no answer")}
    assert [item.gpus for item in team_use(fleet(teams=OWN), result)] == [None, None]
