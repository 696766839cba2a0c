"""The scenarios that are kept, each with the answer of the real Kueue.

The file is made by `PYTHONPATH=tests python -m differential record` (see `differential.__main__`); one line of JSON has
`case`, `made` (per workload: the second of its creation, the rank of its uid), `clock` (the second of each round),
`times` (of reservations and evictions) and `rounds` (changes of states, and the order in which quota was reserved).
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "corpus"


def load() -> list[tuple[Json, Json]]:
    """Every scenario with Kueue's answer."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            for line in lines:
                answer = json.loads(line)
                found.append((answer.pop("case"), answer))
    return found


def save(path: Path, records: list[tuple[Json, Json]]) -> None:
    """Writes scenarios and answers in their order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", preset=9) as lines:
        for case, answer in records:
            lines.write(json.dumps({"case": case, **answer}, separators=(",", ":")) + "\n")


def features(case: Json, answer: Json) -> set[str]:
    """What a scenario exercises: of its objects, and of what Kueue decided."""
    queues = case["queues"].values()
    workloads = [*case["workloads"].values(), *(step[2] for step in case["steps"] if step[0] == "submit")]
    pod_sets = [pod_set for workload in workloads for pod_set in workload["podSets"].values()]
    quotas = [quota for q in queues for group in q["groups"] for flavor in group.values() for quota in flavor.values()]
    states = [state for one in answer["rounds"] for state in one["changes"].values()]
    decided = " ".join(states)
    given = {
        "fair sharing": case["fair"],
        "hierarchical cohorts": len(case["cohorts"]) > 1,
        "borrowing or lending limits": any("/" in quota for quota in quotas),
        "several flavors": any(len(q["groups"][0]) > 1 for q in queues),
        "several resource groups": any(len(q["groups"]) > 1 for q in queues),
        "both fungibility preferences": any("preference" in q["flavorFungibility"] for q in queues),
        "taints": any("nodeTaints" in flavor for flavor in case["flavors"].values()),
        "node selectors or affinity": any({"nodeSelector", "affinity"} & set(p.get("pod", {})) for p in pod_sets),
        "StrictFIFO": any(q["queueingStrategy"] == "StrictFIFO" for q in queues),
        "BestEffortFIFO": any(q["queueingStrategy"] == "BestEffortFIFO" for q in queues),
        "borrowWithinCohort": any("borrowWithinCohort" in q["preemption"] for q in queues),
        "several pod sets": any(len(workload["podSets"]) > 1 for workload in workloads),
        "partial admission": any("min" in p for p in pod_sets),
        "admission checks": any("checks" in q for q in queues),
    }
    found = {name for name, is_there in given.items() if is_there}
    found |= {f"step {step[0]}" for step in case["steps"]}
    tokens = (
        "InClusterQueue", "InCohortReclamation", "InCohortFairSharing", "InCohortReclaimWhileBorrowing",
        "ClusterQueueStopped", "AdmissionCheck", "WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor",
        "WaitingForPreemptedWorkloads", "Reserved", "Admitted", "Deactivated",
    )  # fmt: skip
    return found | {f"decided {token}" for token in tokens if token in decided}


def counts(records: list[tuple[Json, Json]]) -> Counter[str]:
    """In how many scenarios each feature is."""
    return Counter(name for case, answer in records for name in features(case, answer))
