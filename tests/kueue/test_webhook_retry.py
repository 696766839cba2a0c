from __future__ import annotations

import asyncio

import pulumi
import pytest

from kueue_fleet.kueue_components import webhook_retry
from kueue_fleet.kueue_components.webhook_retry import (
    RETRY_DELAYS_SECONDS,
    retry_while_webhook_not_ready,
    webhook_not_ready,
)

NOT_READY = [
    'Internal error occurred: failed calling webhook "mresourceflavor.kb.io": failed to call webhook: Post "https://'
    'kueue-webhook-service.kueue-system.svc:443/mutate-kueue-x-k8s-io-v1beta2-resourceflavor?timeout=10s": no '
    'endpoints available for service "kueue-webhook-service"',
    'failed calling webhook "vclusterqueue.kb.io": failed to call webhook: Post "https://kueue-webhook-service.kueue-'
    'system.svc:443/validate?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused',
    'failed calling webhook "mclusterqueue.kb.io": failed to call webhook: Post "https://kueue-webhook-service": tls: '
    "failed to verify certificate: x509: certificate signed by unknown authority",
    'failed calling webhook "mclusterqueue.kb.io": Post "https://x": context deadline exceeded',
    "conversion webhook for kueue.x-k8s.io/v1beta2, Kind=ClusterQueue failed: Post https://kueue-webhook-service: EOF",
    'failed calling webhook "mclusterqueue.kb.io": service "kueue-webhook-service" not found',
]
FINAL = [
    'admission webhook "vclusterqueue.kb.io" denied the request: spec.resourceGroups: connection refused by policy',
    "ClusterQueue.kueue.x-k8s.io is invalid: spec.cohortName: Invalid value",
    'clusterqueues.kueue.x-k8s.io "gpu" not found',
    "dial tcp 203.0.113.7:443: connect: connection refused",
    "",
]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr(webhook_retry, "sleep", pause)
    return taken


@pytest.fixture
def errors_logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", logged.append)
    monkeypatch.setattr(pulumi.log, "info", lambda text: None)
    return logged


def ask(errors: list[str]) -> bool:
    args = pulumi.ErrorHookArgs(urn="urn", id="", name="l4", type="t", failed_operation="create", errors=errors)
    return asyncio.run(retry_while_webhook_not_ready(args))


@pytest.mark.parametrize("error", NOT_READY)
def test_an_unreachable_webhook_passes_by_itself(error: str) -> None:
    assert webhook_not_ready(error)


@pytest.mark.parametrize("error", FINAL)
def test_a_refusal_and_any_other_error_is_final(error: str) -> None:
    assert not webhook_not_ready(error)


def test_it_waits_longer_each_time_and_gives_up(pauses: list[float], errors_logged: list[str]) -> None:
    answers = [ask(NOT_READY[:1] * tries) for tries in range(1, len(RETRY_DELAYS_SECONDS) + 2)]
    assert answers == [True] * len(RETRY_DELAYS_SECONDS) + [False]
    assert pauses == list(RETRY_DELAYS_SECONDS)
    assert 60 <= sum(pauses) <= 120


def test_the_newest_error_decides(pauses: list[float], errors_logged: list[str]) -> None:
    assert ask([NOT_READY[0], FINAL[0]])
    assert not ask([FINAL[0], NOT_READY[0]])
    assert len(pauses) == 1


def test_no_errors_at_all_is_no_reason_to_retry(pauses: list[float], errors_logged: list[str]) -> None:
    assert not ask([])


def test_an_immutable_field_comes_with_advice(pauses: list[float], errors_logged: list[str]) -> None:
    assert not ask(["spec: Invalid value: topologyName is immutable when topologyName is set"])
    assert errors_logged == [
        "l4: Kueue does not let this field change. Give the object a new name: queues then move to it, and the old one "
        "is deleted once nothing uses it."
    ]
    assert not pauses


def test_a_component_outside_of_a_program_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_retry, "get_monitor", lambda: None)
    with pytest.raises(RuntimeError, match="outside of a Pulumi program"):
        webhook_retry.webhook_retry("ResourceFlavor", "l4")


def test_in_a_plugin_process_the_hook_is_named_after_the_root_component(monkeypatch: pytest.MonkeyPatch) -> None:
    class Monitor:
        pass

    class Hook:
        def __init__(self, name: str, callback: object) -> None:
            self.name = name

    monitor = Monitor()
    monkeypatch.setattr(webhook_retry, "get_monitor", lambda: monitor)
    monkeypatch.setattr(webhook_retry, "get_root_resource", lambda: None)
    monkeypatch.setattr(pulumi, "ErrorHook", Hook)
    binding = webhook_retry.webhook_retry("Cohort", "vision")
    assert binding.on_error is not None
    assert binding.on_error[0].name == "kueue-fleet/webhook-retry/Cohort/vision"
    assert webhook_retry.webhook_retry("Cohort", "other") is binding
