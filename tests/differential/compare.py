"""Two answers to one scenario: equal or not, and the banner of a mismatch."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.differential import states
from tests.differential.replay import Chance, Replay, chances_for, just_before, same_heads
from tests.differential.settings import LATEST, names_no_fit, says_why

from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason

Json = dict[str, Any]


MOST_LATE = 5
"""So many cycles of a scenario may come before what Kueue had logged just before them."""


ENDLESS = 9
"""Of more equal cycles in a row the number is left out: Kueue never rests then, and it counts seconds only."""


_NO_FIT = (RequeueReason.NO_FIT, RequeueReason.PREEMPTION_NO_CANDIDATES)
_BY_MAP_ORDER = (states.PENDING, f"{states.PENDING} {QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED}")


_MISCONFIGURED = f"{states.PENDING} {QuotaReservedReason.MISCONFIGURED}"


class Difference(NamedTuple):
    """What differs, to read; and the round and the number of the cycle, if it was one."""

    text: str
    round: int
    cycle: int | None


def mismatch(case: Json, answer: Json) -> str | None:
    """None if the core answers as Kueue did, in one of the ways Kueue's speed may lead to; else what differs."""
    result = way(case, answer)
    return result if isinstance(result, str) else None


def way(case: Json, answer: Json) -> tuple[Chance, set[int]] | str:
    """The way that Kueue went, and the cycles that came too early for what was just before them; or what differs."""
    banner = ""
    for chance in chances_for(case):
        late: set[int] = set()
        for _ in range(MOST_LATE):
            result = differs(case, answer, chance, late)
            if result is None:
                return chance, late
            banner = banner or result.text
            if (
                result.cycle is None
                or result.cycle in late
                or not just_before(answer["rounds"][result.round]["trace"], result.cycle)
            ):
                break
            late.add(result.cycle)
    return banner


def differs(case: Json, answer: Json, chance: Chance, late: set[int]) -> Difference | None:
    """The first decision that differs."""
    run = Replay(case, answer["made"], chance)
    standing: dict[str, str] = {}
    for number, one in enumerate(answer["rounds"]):

        def difference(lines: list[str], cycle: int | None, number: int = number, one: Json = one) -> Difference:
            head = f"scenario {case['name']}, round {number}: {json.dumps(one['event'])}"
            scenario = f"  scenario: {json.dumps(case, separators=(',', ':'))}"
            return Difference("\n".join([head, *lines, scenario]), number, cycle)

        for item, mine in run.play(one, late):
            if not same_heads(as_logged(mine, case), item[3]):
                lines = [f"  cycle {item[2]}, core  {mine}", f"  cycle {item[2]}, Kueue {item[3]}"]
                return difference(lines, item[2])
        if run.unlike:
            return difference([f"  usage differs: {run.unlike}"], None)
        if run.unexplained:
            return difference([f"  Kueue looked again, and the core does not know why: {run.unexplained}"], None)
        for name, state in one["changes"].items():
            standing[name] = state
            if not state:
                del standing[name]
        ours = as_shown(run.states(), case)
        output = as_shown(standing, case)
        seen = {
            name: set(as_shown({entry: entry for entry in result}, case).values()) for name, result in run.seen.items()
        }
        wrong = [
            f"  {name}: core {ours.get(name)!r}, Kueue {standing.get(name)!r}"
            for name in sorted({*ours, *standing})
            if not _same(seen.get(name, set()), ours.get(name), output.get(name), case)
        ]
        if not wrong and run.engine.wants_cycle and not run.is_restless:
            wrong = ["  the core would go on, Kueue does not"]
        if wrong:
            return difference(wrong, None)
    return None


def as_logged(heads: list[list[str]], case: Json) -> list[list[str]]:
    """The core's heads as the scenario's release logs them: before 0.18, without why one does not fit."""
    if names_no_fit(case.get("release", LATEST)):
        return heads
    return [[name, "generic" if outcome in _NO_FIT else outcome] for name, outcome in heads]


def as_shown(states_by_name: dict[str, str], case: Json) -> dict[str, str]:
    """The core's states as the objects of the scenario's release show them: before 0.19, without why one waits."""
    if says_why(case.get("release", LATEST)):
        return states_by_name
    return {
        name: states.PENDING if states.kind_of(state) == states.PENDING else state
        for name, state in states_by_name.items()
    }


def as_answered(case: Json, latest: Json) -> Json:
    """An answer of 0.19.2 as the scenario's release would log and show the same decisions."""
    result = []
    for one in latest["rounds"]:
        trace = [[*item[:3], as_logged(item[3], case), *item[4:]] if item[0] == "c" else item for item in one["trace"]]
        result.append({**one, "trace": trace, "changes": as_shown(one["changes"], case)})
    return {**latest, "rounds": result}


def is_known_by(case: Json, answer: Json, latest: Json) -> bool:
    """Whether a release decided in each round as 0.19.2 did, cycle by cycle, and the core does so at the same moments.

    Then its answer says nothing that the other one does not. Samples of usage always do: they depend on the moment.
    """
    if case["setting"] == "usage":
        return False
    known = as_answered(case, latest)
    return _decided(answer) == _decided(known) and mismatch(case, known) is None


def _decided(answer: Json) -> list[Any]:
    """By round: the event, the heads and outcomes of its cycles, and the states after it."""
    result: list[Any] = []
    standing: dict[str, str] = {}
    for one in answer["rounds"]:
        cycles = [(item[3], min(item[4], ENDLESS)) for item in one["trace"] if item[0] == "c"]
        standing = {**standing, **one["changes"]}
        result.append((one["event"], cycles, standing))
    return result


def _same(seen: set[str], mine: str | None, right: str | None, case: Json) -> bool:
    """Whether two states are equal, but for this: Kueue may leave the reason of an earlier look.

    It writes a reason only if it is not that of its own copy of the workload, which may be older than its last write.
    Of placements on several flavors it names the one that failed first, in the order of a Go map.
    Its workload controller does not add defaults before it looks at LimitRanges, and then replaces what the scheduler,
    which does, has written.
    """
    if "limitRanges" in case and _MISCONFIGURED in (mine, right):
        return all(state is not None and states.kind_of(state) == states.PENDING for state in (mine, right))
    by_map = "topologies" in case and mine in _BY_MAP_ORDER and right in _BY_MAP_ORDER
    return mine == right or by_map or (mine in seen and right in seen)
