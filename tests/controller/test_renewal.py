"""The controller's renewal of tokens: each by itself, with metrics, and no token in a log."""

from __future__ import annotations

import pytest
from tests.kube.token_apis import FIRST_TOKEN, PLACE, SECRET_PATH, TokenManager, TokenWorker

from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.controller.renewal import TokenRenewal

NOW = 1_800_000_000.0


def renewal(manager: TokenManager, worker: TokenWorker, metrics: Metrics) -> TokenRenewal:
    other = PLACE.model_copy(update={"worker": "worker-b", "secret": "worker-b-2026-11"})
    workers = {"worker-a": worker, "worker-b": TokenWorker(NOW)}
    return TokenRenewal((other, PLACE), 3600.0, manager, workers, metrics, lambda: NOW)


async def test_a_token_that_cannot_be_renewed_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    metrics, manager = Metrics(), TokenManager()
    await renewal(manager, TokenWorker(NOW), metrics).look()
    assert manager.token != FIRST_TOKEN
    text = metrics.text().decode()
    expires = 'kueue_fleet_token_expires_timestamp_seconds{account="multikueue-manager",cluster="worker-a"}'
    assert f"{expires} {NOW + 3600:.9}" in text.replace("e+09", "e+09")
    failures = 'kueue_fleet_token_failures_total{account="multikueue-manager",cluster="worker-b"} 1.0'
    assert failures in text
    assert "token not renewed" in caplog.text
    assert manager.token not in caplog.text


async def test_nothing_is_written_twice(caplog: pytest.LogCaptureFixture) -> None:
    manager, worker = TokenManager(), TokenWorker(NOW)
    one = renewal(manager, worker, Metrics())
    await one.look()
    await one.look()
    assert [path for path, _ in manager.applied] == [SECRET_PATH]
    assert FIRST_TOKEN not in caplog.text
