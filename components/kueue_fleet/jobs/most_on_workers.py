"""What a job asks for that no worker of its queue has as much of, in numbers."""

from __future__ import annotations

from collections.abc import Iterable

from kueue_admission.decide.amounts import format_request, quota_amount
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.check.quota_amounts import most_quota
from kueue_fleet.fleet_file.quota_windows import fleet_in, quota_windows
from kueue_fleet.settings.windows import together


def more_than_workers_have(fleet: FleetSpec, queue: str, requests: Iterable[tuple[str, int]]) -> str:
    """The first of the requests that is more than one flavor of the queue can ever have on each worker; empty: none."""
    if not fleet.is_dispatched(queue):
        return ""
    times = [fleet_in(fleet, windows) for windows in (frozenset[str](), *together(quota_windows(fleet)))]
    most: dict[str, dict[str, int]] = {}
    for worker in fleet.dispatch_workers(queue):
        for time in times:
            for resource, quota in most_quota(time, worker).get(queue, {}).items():
                there = most.setdefault(resource, {})
                there[worker] = max(there.get(worker, 0), quota_amount(resource, quota))
    for resource, amount in requests:
        here = most.get(resource, {})
        if here and all(amount > capacity for capacity in here.values()):
            amount_texts = ", ".join(f"{format_request(resource, value)} on {name}" for name, value in here.items())
            return f"it asks for {format_request(resource, amount)} {resource}, and a flavor has at most {amount_texts}"
    return ""
