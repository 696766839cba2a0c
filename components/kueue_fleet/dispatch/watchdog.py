"""Capacity that does not come: a ProvisioningRequest that is accepted and never provisioned.

GKE can leave one Accepted without ever saying Failed, and then nothing retries
(https://github.com/kubernetes/autoscaler/issues/9490). The workload is withdrawn from that cluster and tried
elsewhere, or there again when there is nowhere else, as often as the budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_admission.decide.model import CheckState, WorkloadCheck
from kueue_admission.read.dispatch_report import GivenUp
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.settings.dispatch import Watchdog

GIVEN_UP_CONDITION: Final = "kueue-fleet.dev/GivenUp"
"""Type of the condition on a Workload of the manager that counts the clusters it was taken back from."""
PROVISIONING_TIMEOUT: Final = "ProvisioningTimeout"
"""Reason of the condition, where DWS did not deliver in time."""
RETRIES_USED: Final = "RetriesUsed"
"""Reason of the condition, where it did not again, and the workload stays."""

STUCK_CHECK: Final = "StuckCheck"
"""Reason of the event about a check that is Pending again."""


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A ProvisioningRequest of a workload's copy. Times are those of its conditions; None where one is not True."""

    name: str
    accepted_at: float | None = None
    provisioned_at: float | None = None
    failed: bool = False
    uid: str = ""


@dataclass(frozen=True, slots=True)
class WatchdogDecision:
    """Whether to take the workload back from the cluster, or to act at all. `retry_at` is when that may change.

    With a message and without `give_up` it would be taken back, but for the budget.
    """

    give_up: bool
    message: str = ""
    retry_at: float | None = None


def watch(
    cluster: str,
    requests: tuple[Provisioning, ...],
    given_up: Mapping[str, GivenUp],
    settings: Watchdog,
    now: float,
) -> WatchdogDecision:
    """About the ProvisioningRequests of a copy, or of a Workload of a cluster of its own, that is not admitted yet."""
    oldest = oldest_accepted(requests)
    if oldest is None:
        return WatchdogDecision(give_up=False)
    since = oldest.accepted_at or 0.0
    due = since + settings.provisioning_timeout.seconds
    if now < due:
        return WatchdogDecision(give_up=False, retry_at=due)
    text = f"ProvisioningRequest {oldest.name} on {cluster} was accepted"
    used_times = sum(entry.times for entry in given_up.values())
    if used_times >= settings.retries:
        # The same words at every look, or they would be written every time.
        late = f"at {format_time(since)} and is not provisioned after {settings.provisioning_timeout.seconds:.0f} s"
        message = f"{text} {late}, all {settings.retries} retries are used, and it stays"
        return WatchdogDecision(give_up=False, message=message)
    message = f"{text} {now - since:.0f} s ago and is not provisioned; retry {used_times + 1} of {settings.retries}"
    return WatchdogDecision(give_up=True, message=message)


def oldest_accepted(requests: tuple[Provisioning, ...]) -> Provisioning | None:
    """The one that has waited longest of those that are accepted and may still be provisioned."""
    waiting = [
        request
        for request in requests
        if request.accepted_at is not None and request.provisioned_at is None and not request.failed
    ]
    return min(waiting, key=lambda request: (request.accepted_at or 0.0, request.name), default=None)


def watch_checks(
    checks: Iterable[WorkloadCheck], requeue_at: float | None, patience: float, now: float
) -> tuple[tuple[str, ...], float]:
    """The checks that keep a Workload without quota from ever getting any, if they are overdue, and when they are.

    `requeue_at` is when Kueue was to queue it again, if that is known.

    Kueue resets a check that is Retry when it evicts the Workload, and looks at no check of one without quota. One that
    became Retry later than that stays so, and the scheduler passes over the Workload from then on. Source:
    kueue@v0.19.2 pkg/workload/evict/evict.go (resetChecksOnEviction), pkg/scheduler/scheduler.go (nominate),
    https://github.com/kubernetes-sigs/kueue/issues/5129.
    """
    checks_left = [check for check in checks if check.state is CheckState.RETRY]
    if not checks_left:
        return (), math.inf
    due = patience + max(requeue_at or 0.0, *(check.since for check in checks_left))
    return (tuple(check.name for check in checks_left) if due <= now else ()), due


def describe_given_up(given_up: Mapping[str, GivenUp]) -> str:
    """The counts as the message of a condition."""
    return "; ".join(
        f"{cluster} {entry.times} times, last at {format_time(entry.last)}"
        for cluster, entry in sorted(given_up.items())
    )


def add_given_up(given_up: Mapping[str, GivenUp], cluster: str, now: float) -> dict[str, GivenUp]:
    """The counts with one more."""
    known_entry = given_up.get(cluster)
    return {**given_up, cluster: GivenUp((known_entry.times if known_entry else 0) + 1, now)}
