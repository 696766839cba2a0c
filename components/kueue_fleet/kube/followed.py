"""A list of an API server that a watch keeps up to date, for commands that need no event loop."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kueue_fleet.kube.answers import ApiError, Json, object_key
from kueue_fleet.kube.lists import list_of
from kueue_fleet.kube.requests import READ_SECONDS, request, watch

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

T = TypeVar("T")
_PAGE: Final = "1000"
"""Objects in one answer: each has its own time limit."""
_WATCH_SECONDS: Final = 300
"""After which it is listed again: a server that was restored or replaced meanwhile would say nothing."""


class FollowedList(Generic[T]):
    """The objects at `path`, listed by the first call and then followed, as `read_item` reads each."""

    def __init__(self, client: ApiClient, path: str, read_item: Callable[[Json], T]) -> None:
        self._client, self._path, self._read_item = client, path, read_item
        self._known: dict[str, T] | None = None
        """None: it has to be listed."""
        self._lock = Lock()

    def objects(self) -> list[T]:
        """Those that are there now. Raises ApiError where they have to be listed, and cannot."""
        with self._lock:
            if self._known is not None:
                return list(self._known.values())
        known_objects, version = self._listed()
        with self._lock:
            self._known = known_objects
        Thread(target=self._follow, args=(known_objects, version), daemon=True).start()
        return list(known_objects.values())

    def forget(self) -> None:
        """List again with the next call."""
        with self._lock:
            self._known = None

    def _listed(self) -> tuple[dict[str, T], str]:
        known_objects: dict[str, T] = {}
        params = {"limit": _PAGE}
        while True:
            page = request(self._client, "GET", self._path, params=params, seconds=READ_SECONDS)
            known_objects |= {object_key(item): self._entry(item) for item in list_of(page)}
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return known_objects, str(metadata.get("resourceVersion", ""))
            params["continue"] = metadata["continue"]

    def _follow(self, known_items: dict[str, T], version: str) -> None:
        """Until the watch ends; then the list has to be read again, unless it was already."""
        try:
            for kind, item in watch(self._client, self._path, version, _WATCH_SECONDS):
                with self._lock:
                    if self._known is not known_items:
                        return
                    if kind == "DELETED":
                        known_items.pop(object_key(item), None)
                    elif kind != "BOOKMARK":
                        known_items[object_key(item)] = self._entry(item)
        except (ApiError, ValueError, LookupError, TypeError):
            pass  # Refused, broken off, or not what API servers send: the next list says what is wrong.
        finally:
            with self._lock:
                if self._known is known_items:
                    self._known = None

    def _entry(self, item: Json) -> T:
        item["metadata"].pop("managedFields", None)  # As large as the rest, and of interest to no reader.
        return self._read_item(item)
