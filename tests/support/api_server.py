"""A plain client of one API server for the tests in tests/engines; connections are kept, as tests ask often."""

from __future__ import annotations

import json
import ssl
from functools import cache
from typing import Any

import urllib3

ANSWER_SECONDS = 30.0
"""How long a request may take."""


class ApiServer:
    """An API server whose certificate is of `authority`, in PEM."""

    def __init__(self, url: str, authority: str) -> None:
        self._url = url
        context = ssl.create_default_context(cadata=authority)
        self._pool = urllib3.PoolManager(ssl_context=context, maxsize=8, retries=False, timeout=ANSWER_SECONDS)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str,
        content_type: str = "application/json",
        user: str = "",
    ) -> tuple[int, str]:
        """Status and text of the answer; without a token if that is empty. Raises OSError if there is none.

        With `user`, the owner of the token acts as that user, who has no groups but that of all users.
        """
        headers = {"Content-Type": content_type, **({"Authorization": f"Bearer {token}"} if token else {})}
        if user:
            headers["Impersonate-User"] = user
        sent = None if body is None else json.dumps(body)
        try:
            answer = self._pool.request(method, self._url + path, body=sent, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise OSError(f"{method} {self._url}{path}: {error}") from error
        return answer.status, answer.data.decode()


@cache
def api_server(url: str, authority: str) -> ApiServer:
    """The client of the API server at `url`; one for each, however often it is asked for."""
    return ApiServer(url, authority)
