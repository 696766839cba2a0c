"""Where a workload stands, in a line: the same words from Kueue's object and from the core's state.

Pending[ REASON]
Reserved main*2 cpu=f1,gpu=g1 aux*1 cpu=f2
Admitted main*2 cpu=f1
Evicted REASON[ PREEMPTION by NAME] main*2 cpu=f1
Deactivated
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PENDING, RESERVED, ADMITTED, EVICTED, DEACTIVATED = "Pending", "Reserved", "Admitted", "Evicted", "Deactivated"


def kind_of(state: str) -> str:
    """The first word of a state."""
    return state.partition(" ")[0]


def is_held(state: str) -> bool:
    """Whether the workload holds quota."""
    return kind_of(state) in (RESERVED, ADMITTED, EVICTED)


def pod_set_text(name: str, count: int, flavors: Mapping[str, str], places: Mapping[str, int] | None = None) -> str:
    """One pod set of an admission, with the number of pods in each place if it has places."""
    text = f"{name}*{count} {','.join(f'{resource}={flavors[resource]}' for resource in sorted(flavors))}"
    return text + "".join(f" @{place}*{pods}" for place, pods in sorted((places or {}).items()))


def held(kind: str, pod_sets: Iterable[str], why: str = "") -> str:
    """The state of a workload that holds quota."""
    return " ".join(part for part in (kind, why, *pod_sets) if part)


def pending(reason: str) -> str:
    """The state of a workload without quota.

    What Kueue writes before it looked at the workload is none, and neither is what it writes when it happens to
    reconcile a workload of a stopped queue, or what releases before 0.19 write of every one.
    """
    return PENDING if reason in ("", PENDING, "PendingEvaluation", "Suspended") else f"{PENDING} {reason}"


def restless(found: Iterable[str]) -> str:
    """The state of a workload for which Kueue finds several reasons in turn, for ever."""
    return " / ".join(sorted(set(found)))


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """What is different; a workload that is gone has an empty state."""
    result = {name: state for name, state in sorted(after.items()) if before.get(name) != state}
    result.update({name: "" for name in sorted(before) if name not in after})
    return result
