"""Flavors whose nodes do not come: how long a job waits for one of them, and to which flavors it moves.

Kueue takes the next flavor of a queue where quota is used up, never where Google has no machines. So a job that has had
quota on a flavor for its patience, without all of its pods running, is kept from that flavor and gives its quota back.
Kueue then looks at the others in their order. Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go
(IsFlavorAllowedForVariant) and docs/decisions.md (13).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_admission.read.dispatch_report import GivenUp
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.settings.configuration import QueueFallback

REQUEUE_SECONDS: Final = 1.0
"""After how long a job that gave up a flavor is queued again."""


@dataclass(frozen=True, slots=True)
class FallbackDecision:
    """Whether the job gives up a flavor now. `allowed` are those that it may have then; `due` is when it gives up."""

    give_up: bool
    allowed: tuple[str, ...]
    message: str
    due: float


def waits_on_workers_since(
    reservation_time: float, copy_reserved: float, given_up: Iterable[GivenUp], provisioning_timeout: float
) -> float:
    """Since when a job that no worker has admitted waits for nodes there.

    Since it has quota on the worker, or since it was first tried on one that the watchdog has given up; not before it
    has quota on the manager, as a copy of an earlier reservation may still be there.

    Args:
        reserved: when it got quota on the manager.
        copy_reserved: when it got quota on the worker.
        given_up: its workers that the watchdog has given up.
        provisioning_timeout: the seconds after which the watchdog gives up a worker.
    """
    first_tried = min((entry.last for entry in given_up), default=math.inf) - provisioning_timeout
    return max(reservation_time, min(copy_reserved, first_tried))


def decide_fallback(
    rules: QueueFallback, waits: Mapping[str, float], allowed_flavors: tuple[str, ...] | None, now: float
) -> FallbackDecision | None:
    """About a job that waits for its nodes; None where it waits for no flavor with a patience.

    Args:
        rules: those of its queue.
        waits: the flavors that it has quota on, and since when; on several clusters, on the first of them.
        allowed: those that it may have so far; None: all.
        now: in the same seconds.
    """
    daily = tuple(name for name in rules.flavors if name not in rules.backups)
    has_all = allowed_flavors is None or set(daily) <= set(allowed_flavors)
    if daily and has_all and not waits.keys().isdisjoint(rules.backups):
        text = f"{', '.join(sorted(waits.keys() & set(rules.backups)))} is kept for when others have no nodes"
        return FallbackDecision(give_up=True, allowed=(*daily, *rules.manager_flavors), message=text, due=now)
    patiences = {entry.flavor: entry.patience.seconds for entry in rules.fallback}
    waiting = sorted((at + patiences[name], name) for name, at in waits.items() if name in patiences)
    if not waiting:
        return None
    due, flavor = waiting[0]
    since, patience = waits[flavor], patiences[flavor]
    given_up = (flavor, *rules.manager_flavors)
    # The first that is given up opens the backups.
    may = rules.flavors if has_all or allowed_flavors is None else allowed_flavors
    flavors_left = tuple(name for name in may if name not in given_up)
    if not flavors_left:
        return None  # Its team's budget leaves it no other.
    allowed = (*flavors_left, *rules.manager_flavors)
    later = [name for name in rules.flavors[rules.flavors.index(flavor) + 1 :] if name in flavors_left]
    goes = f"moves to {later[0]}" if later else f"returns to {', '.join(flavors_left)}"
    if now < due:
        text = f"Waits for nodes of {flavor} since {format_time(since)}; {goes} at {format_time(due)}"
        return FallbackDecision(give_up=False, allowed=allowed, message=text, due=due)
    text = f"No nodes of {flavor} within {patience:.0f} s; {goes}"
    return FallbackDecision(give_up=True, allowed=allowed, message=text, due=due)
