"""An API server in memory: server-side apply as far as the controller uses it, lists and watches."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping
from typing import Any

from kueue_fleet.kube.answers import ApiError, Json, object_key
from kueue_fleet.kube.api import Identity, Opened, nothing


class FakeApi:
    """Objects by list path and key. `applied` and `created` have every body that was accepted, `deleted` key and uid.

    `silent`: no watch is answered; `short`: every watch ends at once; `refusal`: the answer to every watch.
    """

    def __init__(self) -> None:
        self.lists: dict[str, dict[str, Json]] = {}
        self.applied: list[tuple[str, Json, str]] = []
        self.created: list[tuple[str, Json]] = []
        self.deleted: list[tuple[str, str]] = []
        self.failures: list[ApiError] = []
        self.version = 100
        self.oldest = 0
        self.requests: list[str] = []
        self.cluster = "one"
        self.silent = self.short = False
        self.refusal: ApiError | None = None
        self._log: list[tuple[int, str, str, Json]] = []
        self._changed = asyncio.Event()
        self._broken = 0
        self._owned: dict[tuple[str, str], set[str]] = {}
        """Types of the conditions that each field manager applied, which go when it applies without them."""

    def put(self, path: str, item: Json) -> Json:
        """Make or change an object, as somebody else."""
        self.version += 1
        item = copy.deepcopy(item)
        item["metadata"]["resourceVersion"] = str(self.version)
        key = object_key(item)
        kind = "MODIFIED" if key in self.lists.setdefault(path, {}) else "ADDED"
        self.lists[path][key] = item
        self._tell(path, kind, item)
        return item

    def remove(self, path: str, key: str) -> None:
        self.version += 1
        item = self.lists[path].pop(key)
        item["metadata"]["resourceVersion"] = str(self.version)
        self._tell(path, "DELETED", item)

    def _tell(self, path: str, kind: str, item: Json) -> None:
        self._log.append((self.version, path, kind, copy.deepcopy(item)))
        self._changed.set()

    def drop_watches(self) -> None:
        """Every watch that runs ends with an error."""
        self._broken += 1
        self._changed.set()

    def _fail(self, what: str) -> None:
        self.requests.append(what)
        if self.failures:
            raise self.failures.pop(0)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        self._fail(f"GET {path}")
        if path not in self.lists and any(
            path.startswith(f"{known.rpartition('/')[0]}/namespaces/") for known in self.lists
        ):
            return copy.deepcopy(self._find(path)[2])
        items = sorted(self.lists.get(path, {}).items())
        limit, start = int((params or {}).get("limit", 1000)), int((params or {}).get("continue", 0))
        page = [copy.deepcopy(item) for _, item in items[start : start + limit]]
        for item in page:
            # As the real server: items of a list do not say what they are.
            item.pop("kind", None)
            item.pop("apiVersion", None)
        metadata: Json = {"resourceVersion": str(self.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        return {"kind": "ThingList", "apiVersion": "v1", "items": page, "metadata": metadata}

    async def identity(self) -> Identity:
        return Identity(self.cluster, str(self.version))

    async def create(self, path: str, body: Json) -> Json:
        self._fail(f"POST {path}")
        self.created.append((path, body))
        return body

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        self._fail(f"PATCH {path}")
        list_path, _, item = self._find(path)
        expected = body["metadata"].get("resourceVersion")
        if expected and expected != item["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        self.applied.append((path, body, manager))
        changed = copy.deepcopy(item)
        if not path.endswith("/status"):
            changed["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
            changed.update({field: body[field] for field in ("data", "spec") if field in body})
            return self.put(list_path, changed)
        status: dict[str, Any] = changed.setdefault("status", {})
        before = self._owned.get((path, manager), set())
        mine = self._owned[path, manager] = {one["type"] for one in body["status"].get("conditions", [])}
        kept = [one for one in status.get("conditions", []) if one["type"] not in before - mine]
        if "conditions" in status:
            status["conditions"] = kept
        for field, value in body["status"].items():
            if field in ("conditions", "admissionChecks"):
                by = "type" if field == "conditions" else "name"
                merged = {one[by]: one for one in status.get(field, [])}
                for one in value:
                    merged[one[by]] = {**merged.get(one[by], {}), **one}
                status[field] = list(merged.values())
            else:
                status[field] = value
        return self.put(list_path, changed)

    async def delete(self, path: str, uid: str = "") -> Json:
        self._fail(f"DELETE {path}")
        list_path, key, item = self._find(path)
        if uid and uid != item["metadata"].get("uid"):
            raise ApiError(409, "Conflict", "it is another object")
        self.deleted.append((key, uid))
        self.remove(list_path, key)
        return item

    def _find(self, path: str) -> tuple[str, str, Json]:
        parts = path.removesuffix("/status").split("/")
        name = parts[-1]
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
        list_path = "/".join(part for part in parts[:-1] if part not in ("namespaces", namespace) or not namespace)
        key = f"{namespace}/{name}" if namespace else name
        if key not in self.lists.get(list_path, {}):
            raise ApiError(404, "NotFound", f"{key} not found")
        return list_path, key, self.lists[list_path][key]

    async def watch(self, path: str, version: str, opened: Opened = nothing) -> AsyncIterator[tuple[str, Json]]:
        if self.silent:
            await asyncio.Event().wait()
        self._fail(f"WATCH {path}")
        if self.refusal is not None:
            raise self.refusal
        if int(version) < self.oldest:
            raise ApiError(410, "Expired", "too old resource version")
        opened()
        if self.short:
            return
        broken, seen = self._broken, int(version)
        while True:
            for at, where, kind, item in list(self._log):
                if at > seen and where == path:
                    seen = at
                    yield kind, copy.deepcopy(item)
            if self._broken != broken:
                raise ApiError(0, "", "watch dropped")
            self._changed.clear()
            await self._changed.wait()
