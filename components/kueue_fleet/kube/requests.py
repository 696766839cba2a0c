"""One request to an API server on the official client, for commands that need no event loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kueue_fleet.kube.answers import ApiError, Json, read_object, refusal

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

REQUEST_SECONDS: Final = 30
"""Longest that a request takes, unless its caller says otherwise."""
READ_SECONDS: Final = 10
"""Longest that a command waits for what it only reads."""
_CONNECT_SECONDS: Final = 5
"""Longest until a connection stands: TCP asks again after 1 s and 3 s where a packet is lost."""

_PYTHON: Final = re.compile(r"^\w+\(host=[^)]*\): |\[(Errno|SSL)[^]]*\] | \(_ssl\.c:\d+\)")
"""What only people who program in Python understand of an error of urllib3."""


def request(
    client: ApiClient,
    method: str,
    path: str,
    body: Json | None = None,
    params: Mapping[str, str] | None = None,
    kind: str = "application/json",
    seconds: float = REQUEST_SECONDS,
) -> Json:
    """What an API server answers. Raises ApiError if it refuses, does not answer within `seconds`, or
    something else than an API server does."""
    return read_object(_answer(client, method, path, body, params, kind, seconds))


def read_log(client: ApiClient, path: str, params: Mapping[str, str], seconds: float) -> str:
    """The log of a pod, as text. Raises ApiError as `request` does."""
    return _answer(client, "GET", path, None, params, "application/json", seconds).decode(errors="replace")


def _answer(
    client: ApiClient,
    method: str,
    path: str,
    body: Json | None,
    params: Mapping[str, str] | None,
    kind: str,
    seconds: float,
) -> bytes:
    from urllib3.exceptions import HTTPError

    parts = client.param_serialize(
        method,
        path,
        query_params=list((params or {}).items()),
        header_params={"Accept": "application/json", "Content-Type": kind},
        body=body,
        auth_settings=["BearerToken"],
    )
    try:
        answer = client.call_api(*parts, _request_timeout=(min(seconds, _CONNECT_SECONDS), seconds))
        text: bytes = answer.read()  # type: ignore[no-untyped-call]
    except HTTPError as failed:
        why = getattr(failed, "reason", failed)
        reason = _PYTHON.sub("", str(why.args[-1] if why.args else why)).rstrip(".")
        raise ApiError(0, "", f"no answer: {reason}") from None
    if answer.status >= 400:
        raise refusal(answer.status, text)
    return text
