"""Who looks at the page for teams, and with whose rights it reads for them.

Nothing of a request but what is named here reaches the API server, so that no viewer can impersonate anybody.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp import web
from google.auth import exceptions, jwt

from kueue_fleet.objects.fleet_page import VIEWER

IAP_HEADER: Final = "X-Goog-IAP-JWT-Assertion"
"""Where IAP says who a viewer is, signed."""
_ISSUER: Final = "https://cloud.google.com/iap"
_KEYS: Final = "https://www.gstatic.com/iap/verify/public_key"
_KEYS_SECONDS: Final = 3600.0
_NEW_KEYS_SECONDS: Final = 60.0
"""How often the keys are asked for again because a signature is by an unknown one."""
_SKEW_SECONDS: Final = 30
_TOKEN: Final = re.compile(r"Bearer ([A-Za-z0-9._~+/=-]{1,16384})")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks. `key` tells viewers apart; a token cannot be had from it."""

    key: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """Of requests to the API server."""
    by_account: bool = False
    """Whether they are made with the token of the page's own account, which impersonates."""


class RefusedError(Exception):
    """A request whose sender is not known, or is not let in; `status` is that of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class TokenSignIn:
    """Viewers give their own token, which is sent on: the API server says what they may see."""

    async def viewer(self, request: web.Request) -> Viewer:
        """Who sends a request. Raises RefusedError: it gives no such token, or one that is not for it."""
        match = _TOKEN.fullmatch(request.headers.get("Authorization", ""))
        if match is None:
            raise RefusedError(401, "give your token of the cluster")
        return Viewer(hashlib.sha256(match[1].encode()).hexdigest(), (("Authorization", f"Bearer {match[1]}"),))


class IapSignIn:
    """IAP has signed viewers in, and says so in a signed header; they are impersonated as members of teams.

    `users` are the members by address, `groups` who is in the groups that are members. `keys` is the address of the
    keys of the signatures. Source: https://cloud.google.com/iap/docs/signed-headers-howto.
    """

    def __init__(
        self, audience: str, users: Sequence[str], groups: Mapping[str, Sequence[str]], keys: str = _KEYS
    ) -> None:
        self._audience, self._address = audience, keys
        self._users = {name.lower(): name for name in users}
        self._groups = {name: {member.lower() for member in members} for name, members in groups.items()}
        self._keys: Mapping[str, Any] = {}
        self._read_at = float("-inf")

    async def viewer(self, request: web.Request) -> Viewer:
        """Who sends a request. Raises RefusedError: it gives no such token, or one that is not for it."""
        if not self._audience:
            raise RefusedError(403, "fleetPage.iap.audience is not set, so the page refuses everybody")
        user = await self._verified(request.headers.get(IAP_HEADER, ""))
        groups = [name for name, members in self._groups.items() if user in members]
        if user not in self._users and not groups:
            raise RefusedError(403, "you are a member of no team of this fleet")
        acts_as = (
            ("Impersonate-User", self._users.get(user, VIEWER)),
            *(("Impersonate-Group", name) for name in groups),
        )
        return Viewer(user, acts_as, by_account=True)

    async def _verified(self, assertion: str) -> str:
        """The address of the viewer. Raises RefusedError."""
        try:
            header = jwt.decode_header(assertion)  # type: ignore[no-untyped-call]
            if header.get("alg") != "ES256":
                raise RefusedError(401, "not signed as IAP does")
            keys = await self._known_keys(str(header.get("kid")))
            claims = jwt.decode(  # type: ignore[no-untyped-call]
                assertion, certs=keys, audience=self._audience, clock_skew_in_seconds=_SKEW_SECONDS
            )
        except (ValueError, exceptions.GoogleAuthError):
            raise RefusedError(401, "not signed by IAP for this page") from None
        address = claims.get("email")
        if claims.get("iss") != _ISSUER or not isinstance(address, str):
            raise RefusedError(401, "not signed by IAP for this page")
        return address.lower()

    async def _known_keys(self, key_id: str) -> Mapping[str, Any]:
        age = time.monotonic() - self._read_at
        if age > _KEYS_SECONDS or (key_id not in self._keys and age > _NEW_KEYS_SECONDS):
            timeout = aiohttp.ClientTimeout(total=10)
            try:
                async with aiohttp.ClientSession(timeout=timeout) as session, session.get(self._address) as answer:
                    answer.raise_for_status()
                    self._keys = await answer.json(content_type=None)
            except (aiohttp.ClientError, TimeoutError, ValueError) as failed:
                if not self._keys:
                    raise RefusedError(503, f"IAP's keys cannot be read: {type(failed).__name__}") from None
            self._read_at = time.monotonic()
        if key_id not in self._keys:
            raise RefusedError(401, "signed by an unknown key")
        return {key_id: self._keys[key_id]}


SignIn = TokenSignIn | IapSignIn
"""How viewers say who they are."""
