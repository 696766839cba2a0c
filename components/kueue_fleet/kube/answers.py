"""What API servers answer, and the content types that they are sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

Json = dict[str, Any]
"""An object as the API server sends it."""

APPLY_PATCH: Final = "application/apply-patch+yaml"
"""Content type of server-side apply."""
JSON_PATCH: Final = "application/json-patch+json"
"""Content type of a JSON patch."""
MERGE_PATCH: Final = "application/merge-patch+json"
"""Content type of a JSON merge patch."""
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
"""Content type of a strategic merge patch."""


class ApiError(Exception):
    """The API server refused a request, or could not be reached (`status` 0).

    `reason` is the API's own word for it. `retry_after`: seconds after which the server wants to be asked again; None
    if it does not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{message} ({status} {reason})" if status else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def asks_for_list(self) -> bool:
        """The resource version is too old, or newer than any that the server has: list again.

        Source: kubernetes@v1.36.3 staging/src/k8s.io/apiserver/pkg/storage/errors.go (NewTooLargeResourceVersionError).
        """
        return self.status == 410 or (self.status == 504 and self.message.startswith("Too large resource version"))

    @property
    def is_not_found(self) -> bool:
        """There is no such object, or no such kind."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """The object changed meanwhile, or exists already."""
        return self.status == HTTPStatus.CONFLICT


class AcceptedRefusals:
    """A block that refusals with these HTTP statuses end, without being errors."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = statuses

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        return isinstance(error, ApiError) and error.status in self._statuses


def version_number(version: object) -> int:
    """A resource version; 0 where it is none. API servers compare those of one kind as numbers."""
    return int(version) if isinstance(version, str) and version.isascii() and version.isdigit() else 0


def read_object(text: bytes) -> Json:
    """What an API server sent. Raises ApiError for anything but an object, such as the page of a proxy."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ApiError(0, "", "the answer is not an object in JSON, as API servers send it")
    return data


def refusal(status: int, text: bytes, after: str | None = None) -> ApiError:
    """The error that an answer stands for; `after` is its header Retry-After."""
    seconds = float(after) if after is not None and after.isascii() and after.isdigit() else None
    try:
        body = read_object(text)
        return ApiError(status, str(body.get("reason", "")), str(body.get("message", "")), seconds)
    except ApiError:
        return ApiError(status, "", text[:500].decode(errors="replace").strip(), seconds)


async def watch_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Json]]:
    """The events of a watch, as type and object. Raises ApiError where the server ends it with one."""
    lines = EventLines()
    async for chunk in chunks:
        for event in lines.of(chunk):
            yield event


class EventLines:
    """The events of a watch, from the chunks in which they come.

    One event is one line; lines of CustomResourceDefinitions exceed what StreamReader.readline accepts.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def of(self, chunk: bytes) -> Iterator[tuple[str, Json]]:
        """Those that end in this chunk, as type and object. Raises ApiError where the server ends it with one."""
        self._rest += chunk
        while (end := self._rest.find(b"\n")) >= 0:
            event = json.loads(bytes(self._rest[:end]))
            del self._rest[: end + 1]
            if event["type"] == "ERROR":
                status = event["object"]
                raise ApiError(status.get("code", 500), status.get("reason", ""), status.get("message", ""))
            yield event["type"], event["object"]


def object_key(item: Mapping[str, Any]) -> str:
    """`namespace/name` of an object, `name` of one without a namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
