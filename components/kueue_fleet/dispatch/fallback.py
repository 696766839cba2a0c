"""Flavors whose nodes do not come: how long a job waits for one of them, and to which flavors it goes on.

Kueue takes the next flavor of a queue where quota is used up, never where Google has no machines. So a job that has had
quota on a flavor for its patience, without all of its pods running, is kept from that flavor and gives its quota back.
Kueue then looks at the others in their order. Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go
(IsFlavorAllowedForVariant) and docs/adr/0013-fallback-by-allowed-flavors.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_fleet.dispatch.fleet_checks import format_time

REQUEUE_SECONDS: Final = 1.0
"""After how long a job that gave up a flavor is queued again."""


@dataclass(frozen=True, slots=True)
class FallbackRules:
    """A queue's flavors in order, and the seconds that a job waits for nodes of some of them."""

    flavors: tuple[str, ...]
    patience: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FallbackDecision:
    """Whether the job gives up a flavor now. `allowed` are those that it may have then; `due` is when it gives up."""

    give_up: bool
    allowed: tuple[str, ...]
    message: str
    due: float


def decide_fallback(
    rules: FallbackRules, used: Iterable[str], allowed: tuple[str, ...] | None, since: float, now: float
) -> FallbackDecision | None:
    """About a job that has waited for its nodes `since`; None where it waits for no flavor with a patience.

    Args:
        rules: those of its queue.
        used: the flavors that it has quota on.
        allowed: those that it may have so far; None: all.
        since: when it got its quota, or was admitted.
        now: in the same seconds.
    """
    waiting = sorted((rules.patience[flavor], flavor) for flavor in set(used) if flavor in rules.patience)
    if not waiting:
        return None
    patience, flavor = waiting[0]
    left = tuple(name for name in (rules.flavors if allowed is None else allowed) if name != flavor)
    later = [name for name in rules.flavors[rules.flavors.index(flavor) + 1 :] if name in left]
    due = since + patience
    goes = f"goes on to {later[0]}" if later else f"goes back to {', '.join(left)}"
    if now < due:
        text = f"Waits for nodes of {flavor} since {format_time(since)}; {goes} at {format_time(due)}"
        return FallbackDecision(give_up=False, allowed=left, message=text, due=due)
    text = f"No nodes of {flavor} within {patience:.0f} s; {goes}"
    return FallbackDecision(give_up=True, allowed=left, message=text, due=due)
