"""Kueue's own cases for the order in which workloads are preempted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import Workload, WorkloadStatus
from kueue_admission.decide.preemption.candidates import victim_key
from kueue_admission.decide.workload.state import WorkloadInfo, refresh_order

FILE = Path(__file__).parent / "scenarios" / "candidates.yaml"
CASES = yaml.safe_load(FILE.read_text(encoding="utf-8"))["cases"]
OWN = "preemptor"


def candidate(name: str, fields: dict[str, Any], gates: Gates) -> WorkloadInfo:
    status = WorkloadStatus(reserved_at=fields.get("reserved", 0), evicted_at=fields.get("evicted"))
    workload = Workload(
        namespace="",
        name=name,
        uid=name,
        queue=f"of-{name}",
        pod_sets=(),
        priority=fields.get("priority", 0),
        priority_boost=fields.get("priority_boost", 0),
        status=status,
    )
    info = WorkloadInfo(workload)
    info.cluster_queue = fields.get("queue", OWN)
    refresh_order(info, gates, None)
    return info


def usage_in(candidates: dict[str, Any]) -> Callable[[WorkloadInfo], float] | None:
    """What the LocalQueue of each candidate has used, where the case says it."""
    if not any("usage" in fields for fields in candidates.values()):
        return None
    return lambda info: float(candidates[info.workload.name]["usage"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_order(case: dict[str, Any]) -> None:
    gates = Gates(**case.get("gates", {}))
    for given in permutations(case["candidates"].items()):
        candidates = [candidate(name, fields, gates) for name, fields in given]
        candidates.sort(key=victim_key(usage_in(case["candidates"]), OWN))
        assert [info.workload.name for info in candidates] == case["want"]
