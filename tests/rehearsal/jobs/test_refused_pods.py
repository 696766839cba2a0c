"""Which operations of `pulumi up` wait in vain for pods that nothing here can run, and when that is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kueue_rehearsal.jobs.refused_pods import (
    ASK_SECONDS,
    PATIENCE_SECONDS,
    REPLACEMENT_SECONDS,
    RefusedPod,
    RefusedPods,
    RefusedPodsError,
    blocked,
)
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.pulumi_events import Operation

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
SERVICE = "kubernetes:core/v1:Service"
RELEASE = "kubernetes:helm.sh/v3:Release"
SKIP = {"pulumi.com/skipAwait": "true"}
ROW: dict[str, Any] = {
    "cluster": "solo",
    "kind": "Deployment",
    "namespace": "shop",
    "name": "web",
    "labels": {"app": "web", "pod-template-hash": "a"},
    "message": "no program stands in for image nginx:1",
    "since": 100.0,
    "release": {"namespace": "helm", "name": "shop"},
    "curable": False,
}
POD = RefusedPod.parse(ROW)
BEGAN = 99.0


def operation(kind: str, inputs: dict[str, Any], op: str = "create", since: float = BEGAN) -> Operation:
    return Operation(op, kind, "", inputs, since)


def named(name: str = "web", namespace: str = "shop", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, **more}}


def service(selector: dict[str, str], namespace: str = "shop") -> dict[str, Any]:
    return {**named("front", namespace), "spec": {"selector": selector}}


@pytest.mark.parametrize(
    ("waiting", "fix"),
    [
        (
            operation(DEPLOYMENT, named()),
            'leave it out of the stack, or give it the annotation pulumi.com/skipAwait: "true"',
        ),
        (
            operation(DEPLOYMENT, named(), op="update"),
            'leave it out of the stack, or give it the annotation pulumi.com/skipAwait: "true"',
        ),
        (
            operation(RELEASE, {"name": "shop", "namespace": "helm"}),
            "leave Helm release helm/shop out of the stack, or set its skipAwait",
        ),
        (
            operation(SERVICE, service({"app": "web"})),
            "Service shop/front waits for it too: leave it out of the stack, or give it the annotation "
            'pulumi.com/skipAwait: "true"',
        ),
    ],
)
def test_what_waits_for_the_pod_and_how_it_would_not(waiting: Operation, fix: str) -> None:
    assert blocked(POD, waiting) == fix


@pytest.mark.parametrize(
    "other",
    [
        operation(DEPLOYMENT, named(annotations=SKIP)),
        operation(DEPLOYMENT, named("other")),
        operation(DEPLOYMENT, named(namespace="other")),
        operation(DEPLOYMENT, named(), op="delete"),
        operation(DEPLOYMENT, named(), op="same"),
        operation("kubernetes:apps/v1:StatefulSet", named()),
        operation(RELEASE, {"name": "shop", "namespace": "helm", "skipAwait": True}),
        operation(RELEASE, {"name": "kueue", "namespace": "helm"}),
        operation(SERVICE, service({"app": "other"})),
        operation(SERVICE, service({})),
        operation(SERVICE, service({"app": "web"}, namespace="other")),
        operation("gcp:container/cluster:Cluster", {"name": "web"}),
        operation("kubernetes:core/v1:Secret", {"metadata": "[secret]"}),
    ],
)
def test_nothing_else_is_ended_because_of_it(other: Operation) -> None:
    assert blocked(POD, other) is None


class Supervisor:
    """Plays the client of one."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows, self.asked, self.gone = rows, 0, False

    def refused_pods(self) -> Sequence[dict[str, Any]]:
        self.asked += 1
        if self.gone:
            raise RehearsalError("nobody answers")
        return self.rows


class Watched:
    """A watch with a clock that is set by hand."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.clock, self.supervisor = 100.0, Supervisor(rows)
        client: Any = self.supervisor
        self.watch = RefusedPods(client, now=lambda: self.clock)

    def at(self, seconds: float, *under_way: Operation) -> str | None:
        """What it says at that time, if it ends the run."""
        self.clock = seconds
        try:
            self.watch(under_way)
        except RefusedPodsError as output:
            return str(output)
        return None


def test_the_run_is_ended_a_moment_after_the_pod_was_refused_and_all_are_named_once() -> None:
    second = {**ROW, "name": "api", "release": None, "since": 101.9}
    watched = Watched(ROW, ROW, second)
    both = operation(DEPLOYMENT, named()), operation(DEPLOYMENT, named("api"))
    assert watched.at(100.0 + PATIENCE_SECONDS - 0.1, *both) is None
    output = watched.at(100.0 + PATIENCE_SECONDS + ASK_SECONDS, *both)
    fix = 'leave it out of the stack, or give it the annotation pulumi.com/skipAwait: "true"'
    assert output == (
        f"solo: Deployment shop/web: no program stands in for image nginx:1; {fix}\n"
        f"solo: Deployment shop/api: no program stands in for image nginx:1; {fix}\n"
        "pulumi up was ended: these pods will never become ready"
    )


def test_a_pod_from_before_may_be_about_to_be_replaced() -> None:
    watched = Watched(ROW)
    update = operation(DEPLOYMENT, named(), op="update", since=200.0)
    assert watched.at(200.0 + REPLACEMENT_SECONDS - 0.1, update) is None
    assert watched.at(200.0 + REPLACEMENT_SECONDS + ASK_SECONDS, update) is not None


def test_what_is_cured_on_this_machine_needs_no_other_advice() -> None:
    watched = Watched({**ROW, "message": "127.70.0.2: port 8443 is taken; stop it", "curable": True})
    output = watched.at(110.0, operation(DEPLOYMENT, named()))
    assert output is not None
    assert output.splitlines()[0] == "solo: Deployment shop/web: 127.70.0.2: port 8443 is taken; stop it"


def test_a_refused_pod_that_nothing_waits_for_is_no_failure() -> None:
    watched = Watched(ROW)
    assert watched.at(200.0, operation(RELEASE, {"name": "kueue", "namespace": "kueue-system"})) is None
    assert [str(pod) for pod in watched.watch.ask()] == [
        "solo: Deployment shop/web: no program stands in for image nginx:1"
    ]


def test_the_supervisor_is_asked_now_and_then_and_only_while_something_is_under_way() -> None:
    watched = Watched()
    for seconds in (200.0, 200.1, 200.2, 200.0 + ASK_SECONDS):
        watched.at(seconds, operation(DEPLOYMENT, named()))
    assert watched.supervisor.asked == 2
    watched.at(300.0)
    assert watched.supervisor.asked == 2


def test_a_supervisor_that_does_not_answer_is_somebody_elses_news() -> None:
    watched = Watched(ROW)
    watched.supervisor.gone = True
    assert watched.at(200.0, operation(DEPLOYMENT, named())) is None
    assert watched.watch.ask() == []
