"""Renewing the tokens by which the manager reaches the workers.

Once half of a token's life is over, its Secret on the manager gets a new one by TokenRequest. The first token, which
never expires, is revoked. No message and no log contains a token.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

import yaml

from kueue_fleet.kube.answers import AcceptedRefusals, Json
from kueue_fleet.settings.tokens import KUBECONFIG_KEY, WorkerToken

TOKENS_MANAGER: Final = "kueue-fleet-tokens"
"""Field manager of the tokens in the Secrets on the manager."""
EXPIRES_ANNOTATION: Final = "kueue-fleet.dev/expires"
"""On a Secret with a kubeconfig: when its token expires."""
TAKEN_SECONDS: Final = 180.0
"""By when every reader has a new token: Kueue watches its Secrets; a mounted one is read again within two minutes.

Source: https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-as-files-from-a-pod
"""


class TokenApi(Protocol):
    """What renewing needs of an API server."""

    async def get(self, path: str) -> Json:
        """The object at `path`. Raises ApiError."""
        ...

    async def create(self, path: str, body: Json) -> Json:
        """A new object in the list at `path`. Raises ApiError."""
        ...

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        """Server-side apply as a field manager, taking over contested fields. Raises ApiError."""
        ...

    async def delete(self, path: str) -> Json:
        """Without the object at `path`. Raises ApiError."""
        ...


class TokenError(Exception):
    """No token: in a Secret's kubeconfig, or in what was to make one; the message has nothing of its contents."""


@dataclass(frozen=True, slots=True)
class TokenLife:
    """When a token was issued and when it expires, in seconds since 1970; a first token never does."""

    issued: float
    expires: float | None

    def is_due(self, now: float) -> bool:
        """Whether half of its life is over, or it has no end."""
        return self.expires is None or now >= self.issued + (self.expires - self.issued) / 2

    def replaced_all(self, now: float) -> bool:
        """Whether it expires, and every reader has it, so that the first token can go."""
        return self.expires is not None and now >= self.issued + TAKEN_SECONDS


def token_life(token: str) -> TokenLife:
    """The life of a token of a service account, as it says itself. Raises TokenError."""
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        expires = claims.get("exp")
        return TokenLife(float(claims.get("iat", 0)), None if expires is None else float(expires))
    except (IndexError, ValueError, TypeError, AttributeError):
        raise TokenError("its token is not one of a service account") from None


async def renew_token(
    manager: TokenApi, worker: TokenApi, place: WorkerToken, lifetime: float, now: float, *, at_once: bool = False
) -> TokenLife:
    """Renew a token where it is due, and revoke the first one where it was replaced; the life of the token now.

    `lifetime` is in seconds; the API server may give less. `at_once`: whether it is due or not.

    Raises:
        ApiError: a request failed; what was there still holds.
        TokenError: the Secret has no kubeconfig with a token.
    """
    path = f"/api/v1/namespaces/{place.secret_namespace}/secrets/{place.secret}"
    kubeconfig = _kubeconfig(await manager.get(path))
    user = _user(kubeconfig)
    life = token_life(user["token"])
    if at_once or life.is_due(now):
        user["token"] = await _request(worker, place, lifetime)
        life = token_life(user["token"])
        await manager.apply(path, _secret(place, kubeconfig, life), TOKENS_MANAGER)
    elif life.replaced_all(now):
        await void_first_token(worker, place)
    return life


async def void_first_token(worker: TokenApi, place: WorkerToken) -> None:
    """Delete the Secret of the first token, which revokes it; there may be none. Raises ApiError."""
    with AcceptedRefusals(HTTPStatus.NOT_FOUND):
        await worker.delete(f"/api/v1/namespaces/{place.account_namespace}/secrets/{place.first_secret}")


async def _request(worker: TokenApi, place: WorkerToken, lifetime: float) -> str:
    answer = await worker.create(
        f"/api/v1/namespaces/{place.account_namespace}/serviceaccounts/{place.account}/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": int(lifetime)},
        },
    )
    try:
        return str(answer["status"]["token"])
    except (KeyError, TypeError):
        raise TokenError("the API server gave no token") from None


def _kubeconfig(secret: Json) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", yaml.safe_load(base64.b64decode(secret["data"][KUBECONFIG_KEY])))
    except (KeyError, TypeError, ValueError, binascii.Error, yaml.YAMLError):
        raise TokenError("its Secret has no kubeconfig") from None


def _user(kubeconfig: dict[str, Any]) -> dict[str, Any]:
    """The one user of a kubeconfig of ours."""
    try:
        [entry] = kubeconfig["users"]
        user: dict[str, Any] = entry["user"]
        if not isinstance(user["token"], str):
            raise TypeError
        return user
    except (KeyError, TypeError, ValueError):
        raise TokenError("its kubeconfig has no token") from None


def _secret(place: WorkerToken, kubeconfig: dict[str, Any], life: TokenLife) -> Json:
    text = json.dumps(kubeconfig, sort_keys=True)
    expires = "" if life.expires is None else datetime.fromtimestamp(life.expires, UTC).isoformat()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": place.secret,
            "namespace": place.secret_namespace,
            "annotations": {EXPIRES_ANNOTATION: expires},
        },
        "data": {KUBECONFIG_KEY: base64.b64encode(text.encode()).decode()},
    }
