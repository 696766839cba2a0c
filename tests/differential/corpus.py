"""The scenarios that are kept, each with the answer of the real Kueue.

The files are made by `python -m tests.differential record` (see `differential.__main__`). A line of JSON has `case`,
`made` (per workload: the second of its creation, the rank of its uid) and `rounds`; a round has its `event`, the
`trace` of what Kueue did (see `differential.trace`), its `end`, the `changes` of states, and the `times` of
reservations and evictions. Times count from the moment at which all queues opened. `asked-*` are what people reported,
by the number of the report, and the same with one thing changed; `changed-*` are the smallest that show what another
release decides differently.

A folder has the answers of another release to scenarios of the file of the same name, with `name` in place of `case`;
the name alone where the release decided as 0.19.2 did.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.differential.compare import as_answered, is_known_by
from tests.differential.settings import LATEST
from tests.differential.states import is_held
from tests.differential.steps import submitted

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "corpus"


def load(release: str = LATEST) -> list[tuple[Json, Json]]:
    """Every scenario that a release was asked, with its answer."""
    return [one for path in sorted(file_of("*", release).parent.glob("*.jsonl.xz")) for one in read(path)]


def file_of(name: str, release: str = LATEST) -> Path:
    """Where the answers of a release to the scenarios of a file are."""
    return (FOLDER if release == LATEST else FOLDER / release) / f"{name}.jsonl.xz"


def of_release(name: str, release: str) -> list[Json]:
    """The scenarios of a file, to ask a release."""
    return [case if release == LATEST else {**case, "release": release} for case, _ in read(file_of(name))]


@cache
def read(path: Path) -> list[tuple[Json, Json]]:
    """The scenarios of one file with Kueue's answers; not to be changed."""
    latest = _latest(path)
    result = []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            answer = json.loads(line)
            if latest:
                case, known = latest[answer.pop("name")]
                case = {**case, "release": path.parent.name}
                result.append((case, answer or as_answered(case, known)))
            else:
                result.append((answer.pop("case"), answer))
    return result


def _latest(path: Path) -> dict[str, tuple[Json, Json]]:
    """By name: the scenarios of the file of the same name with the answers of 0.19.2; none if the path is of these."""
    if path.parent == FOLDER:
        return {}
    return {case["name"]: (case, answer) for case, answer in read(file_of(path.name.partition(".")[0]))}


def save(path: Path, records: list[tuple[Json, Json]]) -> None:
    """Writes scenarios and answers in their order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    latest = _latest(path)
    with lzma.open(path, "wt", preset=9) as lines:
        for case, answer in records:
            line = {"case": case, **answer}
            if latest:
                is_known = is_known_by(case, answer, latest[case["name"]][1])
                line = {"name": case["name"], **({} if is_known else answer)}
            lines.write(json.dumps(line, separators=(",", ":")) + "\n")
    read.cache_clear()


def features(case: Json, answer: Json) -> set[str]:
    """What a scenario exercises: of its objects, and of what Kueue decided."""
    queues = case["queues"].values()
    workloads = [*case["workloads"].values(), *(step[2] for step in case["steps"] if step[0] == "submit")]
    pod_sets = [pod_set for workload in workloads for pod_set in workload["podSets"].values()]
    quotas = [quota for q in queues for group in q["groups"] for flavor in group.values() for quota in flavor.values()]
    states = [state for one in answer["rounds"] for state in one["changes"].values()]
    decided = " ".join(states)
    heads = [head for one in answer["rounds"] for item in one["trace"] if item[0] == "c" for head in item[3]]
    flat = [pod_set.get("topologyRequest", {}) for pod_set in pod_sets]
    given = {
        f"setting {case['setting']}": True,
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
        "checks for some flavors": any(flavors for q in queues for flavors in q.get("checks", {}).values()),
        "LimitRanges": bool(case.get("limitRanges")),
        "overhead of a RuntimeClass": any("runtimeClassName" in p.get("pod", {}) for p in pod_sets),
        "topology required": any("required" in asked for asked in flat),
        "topology preferred": any("preferred" in asked for asked in flat),
        "topology unconstrained": any("unconstrained" in asked for asked in flat),
        "topology slices": any("podSetSliceSize" in asked for asked in flat),
    }
    result = {name for name, is_there in given.items() if is_there}
    result |= {f"event {one['event'][0]}" for one in answer["rounds"] if one["event"]}
    result |= {f"cycle {outcome}" for _, outcome in heads}
    if any("main*" in state and _reduced(workload, state) for workload, state in _reservations(case, answer)):
        result.add("decided with fewer pods")
    tokens = (
        "InClusterQueue", "InCohortReclamation", "InCohortFairSharing", "InCohortReclaimWhileBorrowing",
        "ClusterQueueStopped", "LocalQueueStopped", "AdmissionCheck", "PodsReadyTimeout", "WaitingForQuota",
        "ExceedsMaxQuota", "NoMatchingFlavor", "TopologyPlacementFailed", "WaitingForPreemptedWorkloads",
        "Misconfigured", "Reserved", "Admitted", "Deactivated",
    )  # fmt: skip
    return result | {f"decided {token}" for token in tokens if token in decided}


def _reservations(case: Json, answer: Json) -> list[tuple[Json, str]]:
    known = submitted(case)
    return [
        (known[name], state) for one in answer["rounds"] for name, state in one["changes"].items() if is_held(state)
    ]


def _reduced(workload: Json, state: str) -> bool:
    """Whether a workload holds quota for fewer pods than it asked for."""
    main = workload["podSets"]["main"]
    return "min" in main and f"main*{main['count']} " not in state


def counts(records: list[tuple[Json, Json]]) -> Counter[str]:
    """In how many scenarios each feature is."""
    return Counter(name for case, answer in records for name in features(case, answer))
