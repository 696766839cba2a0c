from __future__ import annotations

import pytest
from tests.bench.generator import prepare_generated, read_generator

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.errors import SimulationError

TEXT = """
topology:
  name: racks
  levels:
  - {name: rack, count: 2, nodeLabel: example.com/rack}
  - {name: node, count: 2, nodeLabel: kubernetes.io/hostname, capacity: {cpu: "2", memory: 8Gi}}
resourceFlavor: {name: tas, nodeLabel: tas-node-group, topologyName: racks}
cohorts:
  - className: cohort
    count: 1
    queuesSets:
    - className: cq
      count: 1
      nominalQuota: 100
      workloadsSets:
      - count: 4
        creationIntervalMs: 100
        workloads:
        - {className: small, runtimeMs: 1000, request: "1", podCount: 3, CONSTRAINT, tasLevel: example.com/rack}
"""


def admissions(constraint: str, text: str = TEXT) -> list[float]:
    result = prepare_generated(read_generator(text.replace("CONSTRAINT", constraint), "g.yaml"), Delays()).run()
    return sorted(round(r.admitted_at or -1, 1) for r in result.records)


def test_required_racks_hold_one_workload_each() -> None:
    first, second, third, fourth = admissions("tasConstraint: required")
    assert (first, second) == (0.1, 0.2)
    assert 1.1 <= third <= fourth


def test_unconstrained_workloads_have_one_pod_as_in_the_harness() -> None:
    plain = TEXT.replace(", CONSTRAINT, tasLevel: example.com/rack", "").replace(
        "kubernetes.io/hostname", "example.com/node"
    )
    assert admissions("", plain) == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("constraint", ["tasConstraint: preferred", "tasConstraint: balanced, sliceSize: 3"])
def test_other_constraints_are_placed_too(constraint: str) -> None:
    assert admissions(constraint)[:2] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("topologyName: racks", "topologyName: gone", "resourceFlavor.topologyName: there is no topology gone"),
        ("CONSTRAINT", "tasConstraint: closest", "tasConstraint"),
        ("count: 2, nodeLabel: kubernetes", "count: 0, nodeLabel: kubernetes", "count"),
        ("count: 4", "count: 2000000", "more than 1000000"),
    ],
)
def test_mistakes_are_named(old: str, new: str, said: str) -> None:
    text = TEXT.replace(old, new).replace("CONSTRAINT", "tasConstraint: required")
    with pytest.raises(SimulationError) as refused:
        read_generator(text, "g.yaml")
    assert said in str(refused.value)
