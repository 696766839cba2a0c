"""Tokens by which workers are reached: when they are renewed, and what becomes of the first one."""

from __future__ import annotations

import base64
import json

import pytest
from tests.kube.token_apis import (
    FIRST_SECRET_PATH,
    FIRST_TOKEN,
    PLACE,
    SECRET_PATH,
    TokenManager,
    TokenWorker,
    jwt,
    kubeconfig,
    secret,
)

from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.tokens import (
    EXPIRES_ANNOTATION,
    TAKEN_SECONDS,
    TOKENS_MANAGER,
    TokenError,
    renew_token,
    token_life,
)

NOW = 1_800_000_000.0
WEEK = 7 * 24 * 3600.0


async def test_the_first_token_is_replaced_at_once_by_one_that_expires() -> None:
    manager, worker = TokenManager(), TokenWorker(NOW)
    life = await renew_token(manager, worker, PLACE, WEEK, NOW)
    assert (life.issued, life.expires) == (NOW, NOW + WEEK)
    assert token_life(manager.token) == life
    assert manager.applied == [(SECRET_PATH, TOKENS_MANAGER)]
    written = manager.objects[SECRET_PATH]
    assert written["metadata"]["annotations"] == {EXPIRES_ANNOTATION: "2027-01-22T08:00:00+00:00"}
    read = json.loads(base64.b64decode(written["data"]["kubeconfig"]))
    assert read == kubeconfig(manager.token)


async def test_the_first_token_stays_valid_until_everybody_has_the_new_one() -> None:
    manager, worker = TokenManager(), TokenWorker(NOW)
    for later, there in ((0.0, True), (TAKEN_SECONDS - 1, True), (TAKEN_SECONDS, False), (TAKEN_SECONDS + 300, False)):
        await renew_token(manager, worker, PLACE, WEEK, NOW + later)
        assert (FIRST_SECRET_PATH in worker.secrets) is there, later
    assert worker.issued == 1


async def test_a_first_token_that_was_made_again_is_voided_again() -> None:
    manager, worker = TokenManager({SECRET_PATH: secret(jwt(iat=NOW, exp=NOW + WEEK))}), TokenWorker(NOW)
    await renew_token(manager, worker, PLACE, WEEK, NOW + TAKEN_SECONDS)
    assert worker.secrets == set()
    assert worker.issued == 0


@pytest.mark.parametrize(("age", "renewed"), [(0.0, 0), (WEEK / 2 - 1, 0), (WEEK / 2, 1), (WEEK * 2, 1)])
async def test_a_token_is_renewed_once_half_of_its_life_is_over(age: float, renewed: int) -> None:
    manager = TokenManager({SECRET_PATH: secret(jwt(iat=NOW - age, exp=NOW - age + WEEK))})
    worker = TokenWorker(NOW)
    await renew_token(manager, worker, PLACE, WEEK, NOW)
    assert worker.issued == renewed


async def test_what_the_api_server_gives_counts_not_what_was_asked_for() -> None:
    manager, worker = TokenManager(), TokenWorker(NOW, longest=3600)
    life = await renew_token(manager, worker, PLACE, WEEK, NOW)
    assert life.expires == NOW + 3600
    worker.now = NOW + 1800
    await renew_token(manager, worker, PLACE, WEEK, NOW + 1800)
    assert worker.issued == 2


async def test_renewing_at_once_does_not_wait_for_the_half() -> None:
    manager = TokenManager({SECRET_PATH: secret(jwt(iat=NOW - 10, exp=NOW + WEEK))})
    worker = TokenWorker(NOW)
    await renew_token(manager, worker, PLACE, WEEK, NOW, at_once=True)
    assert worker.issued == 1


async def test_a_worker_that_does_not_answer_keeps_the_token_that_it_has() -> None:
    manager, worker = TokenManager(), TokenWorker(NOW, down=True)
    with pytest.raises(ApiError):
        await renew_token(manager, worker, PLACE, WEEK, NOW)
    assert manager.token == FIRST_TOKEN
    assert manager.applied == []


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kubeconfig": "%%"},
        {"kubeconfig": base64.b64encode(b"{").decode()},
        {"kubeconfig": base64.b64encode(json.dumps(kubeconfig("very-secret")).encode()).decode()},
        {"kubeconfig": base64.b64encode(b'{"users": [{"user": {"exec": {}}}]}').decode()},
    ],
    ids=["empty", "no base64", "no YAML", "no JWT", "no token"],
)
async def test_a_secret_without_a_token_is_an_error_that_says_nothing_of_its_contents(data: dict[str, str]) -> None:
    manager = TokenManager({SECRET_PATH: {"metadata": {"name": "worker-a-2026-11"}, "data": data}})
    with pytest.raises(TokenError) as problem:
        await renew_token(manager, TokenWorker(NOW), PLACE, WEEK, NOW)
    assert "very-secret" not in str(problem.value)
