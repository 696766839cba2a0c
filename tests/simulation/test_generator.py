from __future__ import annotations

import pytest
from tests.bench.generator import prepare_generated, read_generator

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.result import waiting_times

TEXT = """
cohorts:
  - className: cohort
    count: 2
    queuesSets:
    - className: cq
      count: 2
      nominalQuota: 2
      borrowingLimit: 10
      reclaimWithinCohort: Any
      withinClusterQueue: LowerPriority
      workloadsSets:
      - count: 10
        creationIntervalMs: 100
        workloads:
        - {className: small, runtimeMs: 200, priority: 50, request: 1}
      - count: 2
        creationIntervalMs: 500
        workloads:
        - {className: large, runtimeMs: 1000, priority: 100, request: "4"}
"""


def test_workloads_come_at_the_interval_and_all_finish() -> None:
    result = prepare_generated(read_generator(TEXT, "g.yaml"), Delays(decision=0.01)).run()
    assert len(result.records) == 2 * 2 * 12
    first = [r for r in result.records if r.namespace == "cq-0-0-cohort-0" and r.label == "small"]
    assert [round(r.arrived_at, 3) for r in first[:3]] == [0.1, 0.2, 0.3]
    assert all(r.finished_at is not None for r in result.records)


def test_waiting_times_by_class() -> None:
    result = prepare_generated(read_generator(TEXT, "g.yaml"), Delays()).run()
    waits = {wait.name: wait for wait in waiting_times(result.records)}
    assert {name: (wait.workloads, wait.admitted) for name, wait in waits.items()} == {
        "large": (8, 8),
        "small": (40, 40),
    }
    assert waits["small"].mean is not None


def test_never_more_than_the_cohort_has() -> None:
    result = prepare_generated(read_generator(TEXT, "g.yaml"), Delays()).run()
    moments: list[tuple[float, int]] = []
    for record in result.records:
        if record.namespace.endswith("cohort-0"):
            assert record.admitted_at is not None
            assert record.finished_at is not None
            cpus = 1 if record.label == "small" else 4
            moments += [(record.admitted_at, cpus), (record.finished_at, -cpus)]
    used = 0
    for _, change in sorted(moments):
        used += change
        assert used <= 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("runtimeMs: 200", "runtimeMs: -1", "runtimeMs"),
        ("nominalQuota: 2", "nominalQuota: lots", "nominalQuota"),
        ("count: 10", "cuont: 10", "cuont"),
        ("cohorts:", "topology: {}\ncohorts:", "topology"),
    ],
)
def test_mistakes_are_named(old: str, new: str, said: str) -> None:
    with pytest.raises(SimulationError) as refused:
        read_generator(TEXT.replace(old, new), "g.yaml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("g.yaml: ")
