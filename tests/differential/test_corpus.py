"""The core decides every scenario of the corpus as Kueue did; how a mismatch is found, shown and made small."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.differential import corpus
from tests.differential.compare import mismatch
from tests.differential.generate import scenario
from tests.differential.shrink import shrunk
from tests.differential.trace import Log, Trace

from drawn import some_of

Json = dict[str, Any]

LEAST_SCENARIOS = 5100
LEAST_OF_A_FEATURE = 20


@cache
def records() -> list[tuple[Json, Json]]:
    return corpus.load()


def test_every_answer_is_kueues() -> None:
    """All of them with `make properties`."""
    asked = some_of(records(), "latest")
    banners = [banner for case, answer in asked if (banner := mismatch(case, answer)) is not None]
    assert not banners, f"{len(banners)} of {len(asked)} scenarios differ\n\n" + "\n\n".join(banners[:3])


def test_the_corpus_is_large_and_covers_every_feature() -> None:
    counts = corpus.counts(records())
    assert len(records()) >= LEAST_SCENARIOS
    assert {name: counts[name] for name in EVERY_FEATURE if counts[name] < LEAST_OF_A_FEATURE} == {}


EVERY_FEATURE = (
    "setting classical", "setting fair", "setting fair-final", "setting fair-initial", "setting topology",
    "setting pods-ready", "setting limits", "setting usage", "LimitRanges", "overhead of a RuntimeClass",
    "decided Misconfigured",
    "hierarchical cohorts", "borrowing or lending limits", "several flavors", "several resource groups",
    "both fungibility preferences", "taints", "node selectors or affinity", "StrictFIFO", "BestEffortFIFO",
    "borrowWithinCohort", "several pod sets", "partial admission", "decided with fewer pods", "admission checks",
    "checks for some flavors", "topology required", "topology preferred", "topology unconstrained", "topology slices",
    "event submit", "event finish", "event delete", "event quota", "event stop", "event hold", "event check",
    "event reclaim", "event priority", "event release", "event unready",
    "cycle assumed", "cycle NoFit", "cycle PendingPreemption", "cycle PreemptionNoCandidates",
    "cycle FailedAfterNomination",
    "decided InClusterQueue", "decided InCohortReclamation", "decided InCohortFairSharing",
    "decided InCohortReclaimWhileBorrowing", "decided ClusterQueueStopped", "decided LocalQueueStopped",
    "decided AdmissionCheck", "decided WaitingForQuota", "decided ExceedsMaxQuota",
    "decided NoMatchingFlavor", "decided TopologyPlacementFailed", "decided WaitingForPreemptedWorkloads",
    "decided Reserved", "decided Admitted", "decided Deactivated", "decided PodsReadyTimeout",
)  # fmt: skip


def test_the_generator_is_a_function_of_its_seed() -> None:
    assert scenario(3, 4, "classical") == scenario(3, 4, "classical")
    assert scenario(3, 4, "classical") != scenario(3, 5, "classical")
    assert scenario(3, 4, "fair")["setting"] == "fair"


def an_admission() -> tuple[Json, Json, str]:
    """A scenario, a copy of its answer, and a workload that is admitted in its first round."""
    for case, answer in records():
        for name, state in answer["rounds"][0]["changes"].items():
            if state.startswith("Admitted"):
                return case, copy.deepcopy(answer), name
    raise AssertionError("nobody was ever admitted")


def test_a_mismatch_names_the_scenario_and_both_answers() -> None:
    case, wrong, name = an_admission()
    wrong["rounds"][0]["changes"][name] = "Pending WaitingForQuota"
    banner = mismatch(case, wrong)
    assert banner is not None
    assert f"scenario {case['name']}, round 0" in banner
    assert f"{name}: core 'Admitted" in banner
    assert "Kueue 'Pending WaitingForQuota'" in banner


def test_another_outcome_of_one_cycle_is_a_mismatch() -> None:
    case, wrong, _ = an_admission()
    cycle = next(item for item in wrong["rounds"][0]["trace"] if item[0] == "c")
    cycle[3][0][1] = "NoFit"
    banner = mismatch(case, wrong)
    assert banner is not None
    assert "cycle 1, core" in banner


def test_another_usage_of_a_local_queue_is_a_mismatch() -> None:
    """But for the first sample, of which the core cannot know since when it counts."""

    def samples(answer: Json) -> list[Any]:
        return [item for one in answer["rounds"] for item in one["trace"] if item[0] == "t" and item[3].get("cpu")]

    for case, answer in records():
        if len({item[2] for item in samples(answer)}) < len(samples(answer)):
            wrong = copy.deepcopy(answer)
            samples(wrong)[-1][3]["cpu"] = "90"
            assert "usage differs" in (mismatch(case, wrong) or "")
            return
    raise AssertionError("no usage was sampled twice")


def test_a_cycle_that_kueue_did_not_run_is_a_mismatch() -> None:
    case, wrong, _ = an_admission()
    wrong["rounds"][0]["trace"] = [item for item in wrong["rounds"][0]["trace"] if item[0] != "c"]
    assert mismatch(case, wrong) is not None


def test_a_scenario_shrinks_to_what_matters() -> None:
    case = scenario(7, 1, "classical")
    name = next(iter(case["workloads"]))
    small = shrunk(case, lambda cases: [name in one["workloads"] for one in cases])
    assert list(small["workloads"]) == [name]
    assert small["steps"] == []
    assert len(small["queues"]) == 1


def test_the_log_is_read_from_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "manager.log"
    path.write_text("before\n")
    log = Log(path)
    with path.open("a") as text:
        text.write(json.dumps({"ts": "2026-01-01T00:00:01.5Z", "msg": "Obtained heads", "schedulingCycle": 7}) + "\n")
        text.write(json.dumps({"ts": "2026-01-01T00:00:02Z", "msg": "of no interest"}) + "\n")
        text.write('{"ts": "unfinished')
    (line,) = log.read()
    assert (line.text, line.data["schedulingCycle"], line.at % 60) == ("Obtained heads", 7, 1.5)
    assert list(log.read()) == []


def test_equal_cycles_in_a_row_are_one_item_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "manager.log"
    path.write_text("")
    log = Log(path)
    trace = Trace(lambda name: False)
    for number in (4, 5, 6):
        with path.open("a") as text:
            text.write(
                json.dumps({"ts": f"2026-01-01T00:00:0{number}Z", "msg": "Obtained heads", "schedulingCycle": number})
                + "\n"
            )
        (line,) = log.read()
        trace.cycle(line).order.append("w01")
        trace.cycle(line).outcomes["w01"] = "NoFit"
        assert trace.complete(number) is (number == 4)
    (item,) = trace.take(line.at - 2, first_cycle=4)
    assert item == ["c", 0, 1, [["w01", "NoFit"]], 3, 2000]
