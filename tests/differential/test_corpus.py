"""The core decides every scenario of the corpus as Kueue did; how a mismatch is found, shown and made small."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from differential import corpus
from differential.compare import mismatch
from differential.generate import scenario
from differential.shrink import shrunk

Json = dict[str, Any]


@cache
def records() -> list[tuple[Json, Json]]:
    return corpus.load()


def test_every_answer_is_kueues() -> None:
    banners = [banner for case, answer in records() if (banner := mismatch(case, answer)) is not None]
    assert not banners, f"{len(banners)} of {len(records())} scenarios differ\n\n" + "\n\n".join(banners[:3])


def test_the_corpus_covers_what_it_should() -> None:
    counts = corpus.counts(records())
    assert not [name for name in EVERY_FEATURE if not counts[name]]


EVERY_FEATURE = (
    "fair sharing", "hierarchical cohorts", "borrowing or lending limits", "several flavors", "several resource groups",
    "both fungibility preferences", "taints", "node selectors or affinity", "StrictFIFO", "BestEffortFIFO",
    "borrowWithinCohort", "several pod sets", "partial admission", "admission checks",
    "step submit", "step finish", "step delete", "step quota", "step stop", "step check", "step reclaim",
    "step priority", "decided InClusterQueue", "decided InCohortReclamation", "decided InCohortFairSharing",
    "decided InCohortReclaimWhileBorrowing",
    "decided ClusterQueueStopped", "decided AdmissionCheck",
    "decided WaitingForQuota", "decided ExceedsMaxQuota", "decided NoMatchingFlavor", "decided Reserved",
    "decided Admitted", "decided Deactivated",
)  # fmt: skip


def test_the_generator_is_a_function_of_its_seed() -> None:
    assert scenario(3, 4, fair=False) == scenario(3, 4, fair=False)
    assert scenario(3, 4, fair=False) != scenario(3, 5, fair=False)
    assert scenario(3, 4, fair=True)["fair"] is True


def test_a_mismatch_names_the_scenario_and_both_answers() -> None:
    case, answer = next(one for one in records() if "Admitted" in str(one[1]["rounds"][0]))
    wrong = copy.deepcopy(answer)
    changes = wrong["rounds"][0]["changes"]
    name = next(name for name, state in changes.items() if state.startswith("Admitted"))
    changes[name] = "Pending WaitingForQuota"
    banner = mismatch(case, wrong)
    assert banner is not None
    assert f"scenario {case['name']}, round 0" in banner
    assert "Kueue 'Pending WaitingForQuota'" in banner
    assert "core  'Admitted" in banner


def test_a_scenario_shrinks_to_what_matters() -> None:
    case = scenario(7, 1, fair=False)
    name = next(iter(case["workloads"]))
    small = shrunk(case, lambda cases: [name in one["workloads"] for one in cases])
    assert list(small["workloads"]) == [name]
    assert small["steps"] == []
    assert len(small["queues"]) == 1
