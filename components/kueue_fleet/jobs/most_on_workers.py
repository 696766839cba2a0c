"""What a job asks for that no worker of its queue has as much of, in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueue_admission.decide.amounts import format_request, quota_amount
from kueue_admission.decide.model import Workload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.check.quota_amounts import most_quota
from kueue_fleet.fleet_file.quota_windows import fleet_in, quota_windows
from kueue_fleet.settings.windows import together


def more_than_workers_have(fleet: FleetSpec, queue: str, requests: Iterable[tuple[str, int]]) -> str:
    """The first of the requests that is more than one flavor of the queue can ever have on each worker; empty: none."""
    most = _most(fleet, queue) if fleet.is_dispatched(queue) else {}
    return next(filter(None, (_more(resource, amount, most.get(resource, {})) for resource, amount in requests)), "")


def never_fits(fleet: FleetSpec, queue: str, workload: Workload) -> str:
    """A request of one of its pod sets that no flavor of the queue can ever have, on any worker; empty: none.

    Pod sets may get different flavors, so that more in all is no proof.
    """
    if not fleet.is_dispatched(queue):
        return ""
    workers, most = set(fleet.dispatch_workers(queue)), _most(fleet, queue)
    for pod_set in workload.pod_sets:
        for resource, amount in pod_set.requests:
            here = most.get(resource, {})
            least = amount * (pod_set.min_count or pod_set.count)
            if here.keys() == workers and (more := _more(resource, least, here)):
                return more
    return ""


def _most(fleet: FleetSpec, queue: str) -> dict[str, dict[str, int]]:
    """The most that one flavor of the queue can have, by resource and worker, whichever windows are open."""
    times = [fleet_in(fleet, windows) for windows in (frozenset[str](), *together(quota_windows(fleet)))]
    most: dict[str, dict[str, int]] = {}
    for worker in fleet.dispatch_workers(queue):
        for time in times:
            for resource, quota in most_quota(time, worker).get(queue, {}).items():
                there = most.setdefault(resource, {})
                there[worker] = max(there.get(worker, 0), quota_amount(resource, quota))
    return most


def _more(resource: str, amount: int, most: Mapping[str, int]) -> str:
    if not most or any(amount <= capacity for capacity in most.values()):
        return ""
    there = ", ".join(f"{format_request(resource, value)} on {name}" for name, value in most.items())
    return f"it asks for {format_request(resource, amount)} {resource}, and a flavor has at most {there}"
