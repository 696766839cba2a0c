"""What each team has: its GPUs in use, those that wait, and what its own ClusterQueues borrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kueue_admission.read.printed import Printed
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.status.accelerators import accelerators_asked, accelerators_held, reserved
from kueue_fleet.status.conditions import why_not_dispatched
from kueue_fleet.status.model import ClusterObjects, TeamUse


def team_use(fleet: FleetSpec, clusters: Mapping[str, ClusterObjects]) -> Iterator[TeamUse]:
    """The use of each team of the fleet, from the Workloads of the cluster that jobs are submitted to."""
    home = next((objects for objects in clusters.values() if objects.role != "worker"), ClusterObjects(""))
    is_known, unfinished_workloads = (
        home.knows("workloads"),
        [workload for workload in home.workloads if not workload.is_true("Finished")],
    )
    queues_known = all(objects.knows("clusterqueues") for objects in clusters.values() if objects.role != "manager")
    users: dict[str, set[str]] = {}
    for team in fleet.teams:
        for queue in team.local_queues:
            users.setdefault(queue.cluster_queue, set()).add(team.name)
    for entry in fleet.local_queues:
        users.setdefault(entry.cluster_queue, set()).add("")
    is_manager = home.role == "manager"
    for team in fleet.teams:
        own = [workload for workload in unfinished_workloads if workload.namespace in team.namespace_names]
        holders = [workload for workload in own if workload.is_true("QuotaReserved")]
        waiting = [
            workload
            for workload in own
            if not workload.is_true("Admitted") or (is_manager and why_not_dispatched(workload))
        ]
        queues = [name for name, teams in users.items() if teams == {team.name}]
        yield TeamUse(
            team=team.name,
            jobs=len(own) - len(waiting) if is_known else None,
            gpus=sum(accelerators_held(workload, GPU_RESOURCE) for workload in holders) if is_known else None,
            borrowed=sum(sum(reserved(queue, GPU_RESOURCE, "borrowed").values()) for queue in _queues(queues, clusters))
            if queues and queues_known
            else None,
            waiting_jobs=len(waiting) if is_known else None,
            waiting_gpus=sum(accelerators_asked(workload, GPU_RESOURCE) for workload in waiting) if is_known else None,
        )


def _queues(names: list[str], clusters: Mapping[str, ClusterObjects]) -> list[Printed]:
    """These ClusterQueues on the clusters that run jobs."""
    queue_list = [
        queue for objects in clusters.values() if objects.role != "manager" for queue in objects.of("clusterqueues")
    ]
    return [queue for queue in queue_list if queue.name in names]
