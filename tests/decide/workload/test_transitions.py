"""The lifecycle table: a step that it has leads where it says, every other raises, and the page shows the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from tests.decide.build import Cluster, job, queue

from kueue_admission.decide.events import Deleted, Finished, PodsStopped
from kueue_admission.decide.model import Admission
from kueue_admission.decide.reasons import EvictionReason
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.decide.workload.transitions import (
    TRANSITIONS,
    IllegalTransitionError,
    Phase,
    Step,
)

PAGE = Path(__file__).parents[3] / "docs/concepts.md"
BEFORE = {
    Phase.PENDING: (),
    Phase.QUOTA_RESERVED: (Step.RESERVE,),
    Phase.ADMITTED: (Step.RESERVE, Step.ADMIT),
    Phase.EVICTED: (Step.RESERVE, Step.ADMIT, Step.EVICT),
    Phase.FINISHED: (Step.FINISH,),
}


def go(info: WorkloadInfo, step: Step, now: float = 5.0) -> None:
    match step:
        case Step.RESERVE:
            lifecycle.reserve(info, Admission("cq", ()), now)
        case Step.ADMIT:
            lifecycle.admit(info, now)
        case Step.EVICT:
            lifecycle.mark_evicted(info, EvictionReason.PREEMPTED, now)
        case Step.STOP | Step.WITHDRAW:
            lifecycle.release(info, step, now)
        case Step.FINISH:
            lifecycle.finish(info, now)


def state_diagram() -> str:
    """The table as a Mermaid diagram."""
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in _diagram_lines())]) + "\n"


def _diagram_lines() -> Iterator[str]:
    yield f"[*] --> {Phase.PENDING.value}: submitted"
    for (before, step), after in TRANSITIONS.items():
        yield f"{before.value} --> {after.value}: {step.value}"
    yield f"{Phase.FINISHED.value} --> [*]"


@pytest.mark.parametrize(("phase", "step"), list(product(Phase, Step)), ids=str)
def test_a_step_leads_where_the_table_says_or_raises(phase: Phase, step: Step) -> None:
    info = WorkloadInfo(job("a"))
    for earlier in BEFORE[phase]:
        go(info, earlier)
    assert info.phase is phase
    before = info.status()
    if (phase, step) in TRANSITIONS:
        go(info, step)
        assert info.phase is TRANSITIONS[phase, step] is info.story[-1].phase
    else:
        with pytest.raises(IllegalTransitionError):
            go(info, step)
        assert info.status() == before


def test_what_is_not_possible_is_said_with_the_last_steps() -> None:
    cluster = Cluster(queue())
    cluster.submit(job("a"))
    cluster.cycle()
    with pytest.raises(IllegalTransitionError) as raised:
        cluster.engine.handle(PodsStopped(7, "ns/a"))
    assert str(raised.value).splitlines() == [
        "workload ns/a: `pods stopped` at 7.0 s is not possible while it is Admitted, only evicted, finished; "
        "its last steps:",
        "  0.0 s: submitted, now Pending",
        "  0.0 s: quota reserved (cq), now QuotaReserved",
        "  0.0 s: admitted, now Admitted",
    ]
    assert cluster.admitted == {"a"}
    cluster.engine.handle(Finished(8, "ns/a"))
    assert not cluster.engine.workloads


def test_a_workload_can_be_deleted_in_every_phase_and_a_story_stays_short() -> None:
    info = WorkloadInfo(job("a"))
    for _ in range(9):
        for step in (Step.RESERVE, Step.EVICT, Step.STOP):
            go(info, step)
    assert len(info.story) == 12
    cluster = Cluster(queue())
    cluster.submit(job("a"), job("b"))
    cluster.cycle()
    for key in ("ns/a", "ns/b"):
        cluster.engine.handle(Deleted(1, key))
    assert not cluster.engine.workloads


def test_the_page_shows_the_table() -> None:
    assert f"```mermaid\n{state_diagram()}```" in PAGE.read_text(), "put what state_diagram() gives into the page"
