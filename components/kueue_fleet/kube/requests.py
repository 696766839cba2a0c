"""One request to an API server on the official client, for commands that need no event loop."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kueue_fleet.kube.answers import ApiError, EventLines, Json, read_object, refusal
from kueue_fleet.kube.kubeconfig import AccessError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

REQUEST_SECONDS: Final = 30
"""Longest that a request takes, unless its caller says otherwise."""
READ_SECONDS: Final = 10
"""Longest that a command waits for what it only reads."""
_SILENCE_SECONDS: Final = 90
"""Longest that a watch may be silent: the API server sends a bookmark about once a minute."""
_CHUNK: Final = 1 << 20
_CONNECT_SECONDS: Final = 5
"""Longest until a connection stands: TCP asks again after 1 s and 3 s where a packet is lost."""

_QUOTA_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between tries to create something."""

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
    something else than an API server does.

    What is created while others create in its namespace is refused where the count of a ResourceQuota changed
    meanwhile, and is sent again. Source: kubernetes@v1.36.3
    staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (checkQuotas).
    """
    pauses = iter(_QUOTA_PAUSES)
    while True:
        try:
            return read_object(b"".join(_chunks(client, method, path, body, params, kind, seconds)))
        except ApiError as refused:
            pause = next(pauses, None) if method == "POST" and refused.reason == "Conflict" else None
            if pause is None:
                raise
            time.sleep(pause)


def api_path(api_version: str) -> str:
    """The path of the resources of an `apiVersion`."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def read_log(client: ApiClient, path: str, params: Mapping[str, str], seconds: float) -> str:
    """The log of a pod, as text. Raises ApiError as `request` does."""
    log = b"".join(_chunks(client, "GET", path, None, params, "application/json", seconds))
    return log.decode(errors="replace")


def watch(client: ApiClient, path: str, version: str, seconds: int) -> Iterator[tuple[str, Json]]:
    """The changes of a list after a version, as type and object, for so many seconds.

    Raises ApiError if the server refuses, is silent for long, or ends the watch with an error.
    """
    params = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
    lines = EventLines()
    for chunk in _chunks(client, "GET", path, None, params, "application/json", _SILENCE_SECONDS):
        yield from lines.of(chunk)


def _chunks(
    client: ApiClient,
    method: str,
    path: str,
    body: Json | None,
    params: Mapping[str, str] | None,
    kind: str,
    seconds: float,
) -> Iterator[bytes]:
    """What is answered, as it comes; at most so many seconds without anything."""
    from urllib3.exceptions import HTTPError

    parts = client.param_serialize(
        method,
        path,
        query_params=list((params or {}).items()),
        header_params={"Accept": "application/json", "Content-Type": kind},
        body=body,
        # Of the official client; a `CommandClient` has its credential in the headers of each request.
        auth_settings=["BearerToken"],
    )
    try:
        answer = client.call_api(*parts, _request_timeout=(min(seconds, _CONNECT_SECONDS), seconds))
        if answer.status >= 400:
            raise refusal(answer.status, answer.read())  # type: ignore[no-untyped-call]
        yield from answer.response.stream(_CHUNK)
    except HTTPError as failed:
        why = getattr(failed, "reason", failed)
        reason = _PYTHON.sub("", str(why.args[-1] if why.args else why)).rstrip(".")
        raise ApiError(0, "", f"no answer: {reason}") from None
    except AccessError as refused:
        raise ApiError(0, "", str(refused)) from None
