"""When objects are ready: the rules, and what waiting does when time is over."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.offline.fake_api import FakeApi

from kueue_fleet_offline.kube_awaits import (
    RULES,
    AwaitError,
    NeverReadyError,
    Waiter,
    annotated_rule,
    condition_rule,
    timeout_seconds,
)


def _object(kind: str = "Thing", api_version: str = "x/v1", **parts: Any) -> dict[str, Any]:
    metadata = {"name": "a", "generation": 2, "uid": "u", **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _waiting(*states: dict[str, Any] | None) -> tuple[Waiter, list[str]]:
    api = FakeApi()
    api.states = list(states)
    return Waiter(api, threading.Event()), []


def _condition(status: str = "True", kind: str = "Active", **rest: Any) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, **rest}]}


@pytest.mark.parametrize(
    ("expression", "status", "ready"),
    [
        ("condition=Active", _condition(), True),
        ("condition=active", _condition(), True),
        ("condition=Active", _condition("False", reason="NotFound"), False),
        ("condition=Active=False", _condition("False"), True),
        ("condition=Active", {}, False),
        ("condition=Active", _condition(observedGeneration=1), False),
        ("condition=Active", _condition(observedGeneration=2), True),
        ("condition=Active", {"observedGeneration": 1, **_condition()}, False),
    ],
)
def test_a_condition_counts_when_it_is_of_the_latest_generation(
    expression: str, status: dict[str, Any], ready: bool
) -> None:
    assert (condition_rule(expression)(_object(status=status)) is None) is ready


def test_what_is_missing_says_why() -> None:
    text = condition_rule("condition=Active")(_object(status=_condition("False", reason="FlavorNotFound", message="m")))
    assert text == 'Waiting for condition "Active=True" (now False: FlavorNotFound m)'


def test_all_expressions_of_a_list_must_be_met() -> None:
    rule = annotated_rule('["condition=Active", "jsonpath={.spec.size}=2"]')
    assert rule(_object(status=_condition(), spec={"size": 2})) is None
    assert rule(_object(status=_condition(), spec={"size": 1})) == "Waiting for jsonpath={.spec.size}=2"


ROLLED_OUT = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        (ROLLED_OUT, True),
        ({**ROLLED_OUT, "observedGeneration": 1}, False),
        ({**ROLLED_OUT, "availableReplicas": 1}, False),
        ({**ROLLED_OUT, "replicas": 3}, False),
        ({}, False),
    ],
)
def test_a_deployment_is_ready_when_it_is_rolled_out(status: dict[str, Any], ready: bool) -> None:
    deployment = _object("Deployment", "apps/v1", spec={"replicas": 2}, status=status)
    assert (RULES["apps/v1", "Deployment"](deployment) is None) is ready


def test_a_deployment_without_progress_will_not_be_ready() -> None:
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    status = {"observedGeneration": 2, "conditions": [condition]}
    with pytest.raises(NeverReadyError, match="no progress in time"):
        RULES["apps/v1", "Deployment"](_object("Deployment", "apps/v1", spec={}, status=status))


@pytest.mark.parametrize(
    ("secret", "ready"),
    [
        ({"type": "Opaque"}, True),
        ({"type": "kubernetes.io/service-account-token"}, False),
        ({"type": "kubernetes.io/service-account-token", "data": {"token": "dA=="}}, True),
    ],
)
def test_only_a_service_accounts_token_is_waited_for(secret: dict[str, Any], ready: bool) -> None:
    assert (RULES["v1", "Secret"](_object("Secret", "v1", **secret)) is None) is ready


def test_a_failed_job_will_not_be_ready() -> None:
    with pytest.raises(NeverReadyError, match="BackoffLimitExceeded"):
        RULES["batch/v1", "Job"](_object("Job", status=_condition(kind="Failed", reason="BackoffLimitExceeded")))


WAIT = {"annotations": {"pulumi.com/waitFor": "condition=Active"}}


def test_waiting_ends_with_the_state_that_is_ready_and_tells_each_step_once() -> None:
    first, last = _object(metadata=WAIT), _object(metadata=WAIT, status=_condition())
    waiter, told = _waiting(first, first, last)
    assert waiter.until_ready(first, first, 0, told.append) == last
    assert told == ['Waiting for condition "Active=True"']


def test_skip_await_waits_for_nothing() -> None:
    inputs = _object(metadata={"annotations": {**WAIT["annotations"], "pulumi.com/skipAwait": "true"}})
    waiter, told = _waiting()
    assert waiter.until_ready(inputs, inputs, 0, told.append) == inputs


@pytest.mark.parametrize(("states", "words"), [((), "timed out after 5 s"), ((None,), "was deleted")])
def test_waiting_that_fails_keeps_the_last_state(states: tuple[None, ...], words: str) -> None:
    live = _object(metadata=WAIT)
    waiter, told = _waiting(*states)
    with pytest.raises(AwaitError, match=words) as caught:
        waiter.until_ready(live, live, 5, told.append)
    assert caught.value.last == live


def test_a_deletion_is_over_when_the_object_is_gone_or_is_another_one() -> None:
    live = _object()
    for end in (None, _object(metadata={"uid": "another"})):
        waiter, told = _waiting(live, end)
        waiter.until_gone(live, live, 0, told.append)


def test_a_deletion_that_hangs_names_the_finalizers() -> None:
    live = _object(metadata={"finalizers": ["kueue.x-k8s.io/resource-in-use"]})
    waiter, told = _waiting(live)
    with pytest.raises(AwaitError, match=r"finalizers might be preventing deletion \(kueue.x-k8s.io/resource-in-use"):
        waiter.until_gone(live, live, 5, told.append)
    assert told == ["Waiting for deletion (finalizers: kueue.x-k8s.io/resource-in-use)"]


def test_the_time_to_wait_is_the_resources_the_annotations_or_the_kinds() -> None:
    annotated = _object(metadata={"annotations": {"pulumi.com/timeoutSeconds": "7"}})
    assert timeout_seconds(3, annotated, 600) == 3
    assert timeout_seconds(0, annotated, 600) == 7
    assert timeout_seconds(0, _object(), 600) == 600
