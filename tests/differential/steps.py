"""What a script's step does, decided in the same way from Kueue's state and from the core's.

A round is: the step is done, then nothing is done until everything is quiet. Between two steps the pods of evicted
workloads stop, one workload in each round, the first by name first. Steps that say "the n-th" count the workloads to
which they can apply by name, modulo their number; without any the round passes without an event.

    submit NAME WORKLOAD   a workload is created
    finish N               the n-th workload that holds quota and is not evicted finishes
    delete N               the n-th pending workload is deleted
    quota QUEUE GROUPS     a ClusterQueue has new resource groups
    stop QUEUE POLICY      a ClusterQueue has a new stop policy
    hold LOCALQUEUE POLICY a LocalQueue has a new stop policy
    check N STATE [LATER]  the check of the n-th workload that waits for one has a new state, to be tried again LATER
    unready N              the pods of the n-th admitted workload are not all ready any more

In the setting `pods-ready` the pods of a workload that is marked so are ready as soon as it is admitted.
    reclaim N              the n-th admitted workload needs one pod less in its first pod set of several
    priority N VALUE       the n-th pending workload has a new priority
    node NAME STATE        a node is `gone`, `notReady`, `tainted`, or `back`, ready and without its taint
    scale N COUNT          the first pod set of the n-th workload that has more pods and is not evicted has so many

In the setting `elastic` a workload that is created may replace a slice of the same job (`replaces`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.states import ADMITTED, EVICTED, PENDING, RESERVED, kind_of

Json = dict[str, Any]
States = Mapping[str, str]

MOST_ROUNDS = 6


def next_event(case: Json, states: States, done: int) -> tuple[list[Any] | None, int]:
    """The event of the next round, None for one without, and how many steps are done after it; done < 0 at the end."""
    stopped = sorted(name for name, state in states.items() if kind_of(state) == EVICTED)
    if stopped:
        return ["release", stopped[0]], done
    if done >= len(case["steps"]):
        return None, -1
    return resolve(case, case["steps"][done], states), done + 1


def resolve(case: Json, step: list[Any], states: States) -> list[Any] | None:
    """The step with a workload's name in place of a number."""
    kind = step[0]
    if kind in ("submit", "quota", "stop", "hold", "node"):
        return step
    expected = {
        "finish": (RESERVED, ADMITTED),
        "delete": (PENDING,),
        "check": (RESERVED,),
        "reclaim": (ADMITTED,),
        "unready": (ADMITTED,),
        "priority": (PENDING,),
        "scale": (PENDING, RESERVED, ADMITTED),
    }[kind]
    names = sorted(name for name, state in states.items() if kind_of(state) in expected)
    if kind == "reclaim":
        names = [name for name in names if reclaimed(case, name) is not None]
    if kind == "scale":
        names = [name for name in names if submitted(case)[name]["podSets"]["main"]["count"] > step[2]]
    return [kind, names[step[1] % len(names)], *step[2:]] if names else None


def submitted(case: Json) -> dict[str, Json]:
    """Every workload of the scenario, whenever it comes."""
    return {**case["workloads"], **{step[1]: step[2] for step in case["steps"] if step[0] == "submit"}}


def reclaimed(case: Json, name: str) -> tuple[str, int] | None:
    """The pod set of which a pod is not needed any more, if there is one of several pods; and how many."""
    for pod_set, given in submitted(case)[name]["podSets"].items():
        if given.get("count", 1) > 1 and "min" not in given:
            return pod_set, 1
    return None
