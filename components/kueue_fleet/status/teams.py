"""What each team has: its GPUs in use, those that wait, and what its own ClusterQueues borrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.kueue_api.quantity import Quantity
from kueue_fleet.status.conditions import is_true
from kueue_fleet.status.model import ClusterObjects, Manifest, TeamUse


def team_use(fleet: FleetSpec, clusters: Mapping[str, ClusterObjects]) -> Iterator[TeamUse]:
    """The use of each team of the fleet, from the Workloads of the cluster that jobs are submitted to."""
    home = next((found for found in clusters.values() if found.role != "worker"), ClusterObjects(""))
    users: dict[str, set[str]] = {}
    for team in fleet.teams:
        for queue in team.local_queues:
            users.setdefault(queue.cluster_queue, set()).add(team.name)
    for entry in fleet.local_queues:
        users.setdefault(entry.cluster_queue, set()).add("")
    for team in fleet.teams:
        own = [
            each
            for each in home.of("workloads")
            if each["metadata"]["namespace"] in team.namespace_names and not is_true(each, "Finished")
        ]
        held = [each for each in own if is_true(each, "QuotaReserved")]
        waiting = [each for each in own if not is_true(each, "QuotaReserved")]
        queues = [name for name, teams in users.items() if teams == {team.name}]
        yield TeamUse(
            team=team.name,
            jobs=len(held),
            gpus=sum(map(_held, held)),
            borrowed=sum(map(_borrowed, _queues(queues, clusters))) if queues else None,
            waiting_jobs=len(waiting),
            waiting_gpus=sum(map(_asked, waiting)),
        )


def _held(workload: Manifest) -> int:
    """The GPUs for which it has quota."""
    assignments = ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()
    return sum(_gpus(each.get("resourceUsage")) for each in assignments)


def _asked(workload: Manifest) -> int:
    """The GPUs that its pods ask for; an init container's are among those of the others."""
    total = 0
    for pod_set in (workload.get("spec") or {}).get("podSets") or ():
        pod: Mapping[str, Any] = (pod_set.get("template") or {}).get("spec") or {}
        needs = [container.get("resources") or {} for container in pod.get("containers") or ()]
        gpus = sum(_gpus({**(need.get("limits") or {}), **(need.get("requests") or {})}) for need in needs)
        total += int(pod_set.get("count", 1)) * gpus
    return total


def _queues(names: list[str], clusters: Mapping[str, ClusterObjects]) -> list[Manifest]:
    """These ClusterQueues on the clusters that run jobs."""
    listed = [queue for found in clusters.values() if found.role != "manager" for queue in found.of("clusterqueues")]
    return [queue for queue in listed if queue["metadata"]["name"] in names]


def _borrowed(queue: Manifest) -> int:
    flavors = (queue.get("status") or {}).get("flavorsReservation") or ()
    resources = [resource for flavor in flavors for resource in flavor.get("resources") or ()]
    return sum(_gpus({resource["name"]: resource.get("borrowed") or "0"}) for resource in resources)


def _gpus(amounts: Mapping[str, Any] | None) -> int:
    found = (amounts or {}).get(GPU_RESOURCE)
    return 0 if found is None else Quantity(str(found)).value
