"""One next step for a workload on a manager and its workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kueue_admission.explain import Explanation, render_clusters, render_short
from kueue_admission.explain.answer import CheckStanding, Link
from kueue_admission.explain.together import next_step_of_all
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER


def on(cluster: str, state: str, reason: str, **changes: Any) -> Explanation:
    result: dict[str, Any] = {"message": "", "headline": "", "next_step": f"do {cluster}", **changes}
    return Explanation("ns/a", cluster, state, reason, **result)


def copy(cluster: str, state: str, reason: str, **changes: Any) -> Explanation:
    return on(cluster, state, reason, is_copy=True, **changes)


OFFERED = on(
    "hub",
    "QuotaReserved",
    "UnsatisfiedAdmissionChecks",
    checks=(CheckStanding("multikueue", MULTIKUEUE_CONTROLLER, "Pending", "", ""),),
)
CASES: dict[str, tuple[list[Explanation], str]] = {
    "the manager has no quota": (
        [on("hub", "Pending", "WaitingForQuota"), on("eu", "Pending", "Misconfigured", is_there=False)],
        "On hub: do hub",
    ),
    "the nearest of two workers": (
        [OFFERED, copy("eu", "Pending", "Misconfigured"), copy("us", "Pending", "WaitingForQuota")],
        "On us: do us",
    ),
    "two workers with the same step": (
        [OFFERED, copy("eu", "Pending", "Suspended", next_step="start"), copy("us", "Pending", "X", next_step="start")],
        "On eu, us: start",
    ),
    "it runs on a worker": (
        [
            on("hub", "Admitted", "Admitted"),
            copy("eu", "Pending", "WaitingForQuota"),
            copy("us", "Admitted", "Admitted"),
        ],
        "On us: do us",
    ),
    "a worker is given first": ([copy("us", "Pending", "Suspended"), OFFERED], "On us: do us"),
    "it never fits": (
        [on("hub", "QuotaReserved", "X", is_unplaceable=True, checks=OFFERED.checks), copy("eu", "Pending", "Y")],
        "On hub: do hub",
    ),
}

CASES["no worker has its queue"] = (
    [replace(OFFERED, local_queue="gpu"), on("eu", "Absent", "", is_there=False)],
    "On eu: create LocalQueue ns/gpu, which no worker that was given has.",
)
CASES["the manager does not reach its workers"] = (
    [
        replace(OFFERED, links=(Link("MultiKueueCluster", "eu", "ClientConnectionFailed", "", "look"),)),
        on("eu", "Pending", "PendingEvaluation", is_there=False),
    ],
    "On hub: do hub",
)


@pytest.mark.parametrize(("explanations", "step"), CASES.values(), ids=CASES)
def test_the_step(explanations: list[Explanation], step: str) -> None:
    assert next_step_of_all(explanations) == step


def test_a_copy_that_nobody_made() -> None:
    step = next_step_of_all([OFFERED, on("eu", "Pending", "PendingEvaluation", is_there=False)])
    assert step.startswith("None of the other clusters given has a copy of it")


def test_every_text_has_it_once() -> None:
    for text in (
        render_clusters(CASES["the nearest of two workers"][0]),
        render_short(CASES["it runs on a worker"][0]),
    ):
        assert text.count("Next step:") == 1
