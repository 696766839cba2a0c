"""What Kueue wrote on a Workload beside what the core decides: never "the next cycle admits it" against Kueue."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.build import cpu_group, job, objects, queue
from tests.explain.test_states import held

from kueue_admission.decide.model import Snapshot, WorkloadStatus
from kueue_admission.explain import Condition, explain, render_json, render_text, written_on

NOW = 1_800_000_000.0
BEFORE, JUST_NOW = "2027-01-15T07:00:00Z", "2027-01-15T07:59:58Z"


def condition(kind: str, status: str, reason: str = "Pending", message: str = "no", at: str = BEFORE) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def workload(*conditions: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "ns", "generation": generation}
    return {"kind": "Workload", "metadata": metadata, "status": {"conditions": list(conditions)}}


REFUSED = condition("QuotaReserved", "False", message="insufficient unused quota")


class TestReading:
    def test_a_refusal(self) -> None:
        assert written_on(workload(REFUSED), (), NOW) == Condition("Pending", "insufficient unused quota", True)

    @pytest.mark.parametrize(
        "conditions",
        [
            (),
            (condition("QuotaReserved", "True"),),
            (condition("QuotaReserved", "False", "PendingEvaluation"),),
            (
                condition("QuotaReserved", "False", message="it was preempted"),
                condition("Evicted", "True", message="it was preempted"),
            ),
        ],
        ids=["none", "quota", "not looked at", "the eviction again"],
    )
    def test_no_refusal(self, conditions: tuple[dict[str, Any], ...]) -> None:
        assert written_on(workload(*conditions), (), NOW) is None

    def test_of_another_generation_it_is_not_current(self) -> None:
        result = written_on(workload({**REFUSED, "observedGeneration": 1}, generation=2), (), NOW)
        assert result is not None
        assert not result.is_current

    @pytest.mark.parametrize(
        ("other", "current"),
        [
            (workload(condition("QuotaReserved", "True"), condition("Finished", "True", at=JUST_NOW)), False),
            (workload(condition("Evicted", "True"), condition("QuotaReserved", "False", at=JUST_NOW)), False),
            (workload(condition("QuotaReserved", "True"), condition("Finished", "True")), True),
            (workload(condition("QuotaReserved", "False", at=JUST_NOW)), True),
        ],
        ids=["finished just now", "stopped just now", "finished long ago", "never had quota"],
    )
    def test_quota_that_came_free_a_moment_ago(self, other: dict[str, Any], current: bool) -> None:
        result = written_on(workload(REFUSED), [other], NOW)
        assert result is not None
        assert result.is_current is current


class TestDisagreement:
    def test_is_said_and_nothing_is_promised(self) -> None:
        snapshot = Snapshot(objects(queue()), (job("a"),), NOW)
        result = explain(snapshot, "ns/a", written=Condition("WaitingForQuota", "insufficient unused quota", True))
        assert result.written is not None
        assert not result.written.agrees
        text = render_text(result)
        assert "disagrees with Kueue" in result.headline
        assert "next cycle admits" not in text
        assert "Kueue wrote another answer (WaitingForQuota): insufficient unused quota" in " ".join(text.split())
        answers = render_json([result])["explanations"]
        assert isinstance(answers, list)
        assert [answer["written"]["agrees"] for answer in answers] == [False]

    def test_an_older_word_is_shown_as_that(self) -> None:
        snapshot = Snapshot(objects(queue()), (job("a"),), NOW)
        text = render_text(explain(snapshot, "ns/a", written=Condition("Pending", "insufficient unused quota", False)))
        assert "the next cycle admits it" in text
        assert "Kueue wrote earlier (Pending): insufficient unused quota" in text

    def test_the_same_refusal_is_said_once(self) -> None:
        snapshot = Snapshot(objects(queue()), (held("r", 10), job("a")), NOW)
        message = explain(snapshot, "ns/a").message
        result = explain(snapshot, "ns/a", written=Condition("Pending", message, True))
        assert result.written is not None
        assert result.written.agrees
        assert "Kueue wrote" not in render_text(result)

    def test_another_reason_is_a_disagreement(self) -> None:
        snapshot = Snapshot(objects(queue()), (held("r", 10), job("a")), NOW)
        result = explain(snapshot, "ns/a", written=Condition("NoMatchingFlavor", "untolerated taint", True))
        assert result.written is not None
        assert not result.written.agrees


class TestWhatKueueSays:
    def test_of_a_search_that_went_on_behind_the_first_flavor(self) -> None:
        """Kueue says what it found from there on, which is another reason than that of all flavors."""
        two = queue(groups=(cpu_group(default=10, small=2),))
        snapshot = Snapshot(objects(two), (held("r", 10), job("a", 5)), NOW)
        assert explain(snapshot, "ns/a").reason == "WaitingForQuota"
        output = (
            "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor small, previously "
            "considered podsets requests (0) + current podset request (5) > maximum capacity (2)"
        )
        result = explain(snapshot, "ns/a", written=Condition("ExceedsMaxQuota", output, True))
        assert (result.reason, result.message) == ("ExceedsMaxQuota", output)
        assert result.written is not None
        assert result.written.agrees
        assert [item.flavor for item in result.flavors] == ["default", "small"]

    @pytest.mark.parametrize(
        ("cores", "strategy", "equal"),
        [(5, "BestEffortFIFO", "ns/a"), (6, "BestEffortFIFO", ""), (5, "StrictFIFO", "")],
        ids=["equal", "not equal", "StrictFIFO"],
    )
    def test_nothing_of_one_that_an_equal_one_failed_before(self, cores: int, strategy: str, equal: str) -> None:
        failed = job("a", 5, status=WorkloadStatus(evaluated="insufficient unused quota"))
        waiting = queue(queueing_strategy=strategy)
        snapshot = Snapshot(objects(waiting), (held("r", 10), failed, job("b", cores, created=1.0)), NOW)
        result = explain(snapshot, "ns/b")
        assert (result.reason, result.equal_before) == ("WaitingForQuota", equal)
        assert ("Kueue has written nothing on it" in render_text(result)) is bool(equal)
