"""A small client of the Kubernetes REST API: discovery of single kinds, the six verbs, watch of one object.

Lean on purpose: the `kubernetes` package costs 0.2 s of CPU and 25 MiB in each of a fleet's provider processes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet_offline.kubeconfig import ClusterAccess

JSON: Final = "application/json"
"""Content type of plain objects."""
JSON_PATCH: Final = "application/json-patch+json"
"""Content type of a JSON patch."""
APPLY_PATCH: Final = "application/apply-patch+yaml"
"""Content type of server-side apply."""
REQUEST_TIMEOUT_SECONDS: Final = 60.0
"""Longest that an answer takes."""
CONNECT_TIMEOUT_SECONDS: Final = 10.0
"""Longest that a connection takes."""
MAX_CONNECTIONS: Final = 32
"""Connections to one API server at a time."""
WATCH_RESTART_SECONDS: Final = 5
"""How long one watch lasts: also how long a cancelled wait may take to notice."""
USER_AGENT: Final = "pulumi-resource-kubernetes-standin"
"""How the stand-in calls itself."""

Manifest = dict[str, Any]
"""An object of Kubernetes as plain data."""


class ApiError(PluginError):
    """The API server refused; `reason` is its own word (NotFound, AlreadyExists, Conflict, Invalid...)."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = dict(details or {})

    @property
    def is_not_found(self) -> bool:
        """Whether the object, its namespace or its kind is not there."""
        return self.code == 404


class NoMatchError(PluginError):
    """The API server has no such kind (yet)."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class UnreachableError(PluginError):
    """No answer from the API server."""


@dataclass(frozen=True, slots=True)
class ResourceType:
    """Where the objects of one kind live."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str | None) -> str:
        """The URL path of the collection, or of one object."""
        root = "/apis/" if "/" in self.api_version else "/api/"
        parts = f"{root}{self.api_version}"
        if self.namespaced:
            parts += f"/namespaces/{quote(namespace or 'default')}"
        parts += f"/{self.plural}"
        return f"{parts}/{quote(name)}" if name else parts


class KubeApi:
    """One API server."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        url = urlsplit(access.server)
        self._prefix = url.path.rstrip("/")
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=REQUEST_TIMEOUT_SECONDS)
        options: dict[str, Any] = {"maxsize": MAX_CONNECTIONS, "retries": False, "timeout": timeout}
        self._pool: urllib3.HTTPConnectionPool
        if url.scheme == "https":
            context = access.ssl_context()
            if name := access.cluster.get("tls-server-name"):
                options.update(server_hostname=name, assert_hostname=name)
            if access.cluster.get("insecure-skip-tls-verify"):
                options["cert_reqs"] = "CERT_NONE"
            self._pool = urllib3.HTTPSConnectionPool(
                url.hostname or "", url.port or 443, ssl_context=context, **options
            )
        else:
            self._pool = urllib3.HTTPConnectionPool(url.hostname or "", url.port or 80, **options)
        self._types: dict[tuple[str, str], ResourceType] = {}
        self._types_lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Manifest:
        """The decoded answer. Raises ApiError when the server refuses, UnreachableError when it does not answer."""
        response = self._send(method, path, query, body, content_type)
        data = response.data
        if response.status >= 400:
            raise _api_error(response.status, data)
        return json.loads(data) if data else {}

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        *,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        target = f"{self._prefix}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(2):
            headers = {"Accept": JSON, "User-Agent": USER_AGENT}
            if data is not None:
                headers["Content-Type"] = content_type
            if authorization := self._access.authorization(renew=attempt > 0):
                headers["Authorization"] = authorization
            try:
                response = self._pool.urlopen(
                    method, target, body=data, headers=headers, preload_content=not stream, redirect=False
                )
            except urllib3.exceptions.HTTPError as error:
                raise UnreachableError(f"{self._access.server} gave no answer: {error}") from error
            if response.status != 401 or not self._access.user.get("exec"):
                break
        return response

    def version(self) -> Manifest:
        """The server's version; the cheapest question that needs a valid credential."""
        return self.request("GET", "/version")

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Where objects of this kind live. Raises NoMatchError; asks again each time it was not there."""
        key = (api_version, kind)
        with self._types_lock:
            if key not in self._types:
                self._discover(api_version)
            found = self._types.get(key)
        if found is None:
            raise NoMatchError(api_version, kind)
        return found

    def _discover(self, api_version: str) -> None:
        root = "/apis/" if "/" in api_version else "/api/"
        try:
            listing = self.request("GET", f"{root}{api_version}")
        except ApiError as error:
            if error.is_not_found or error.code == 503:
                return
            raise
        for entry in listing.get("resources", []):
            if "/" not in entry["name"]:
                found = ResourceType(api_version, entry["kind"], entry["name"], entry["namespaced"])
                self._types[api_version, entry["kind"]] = found

    def forget_types(self) -> None:
        """Asks the server again for every kind, after a CustomResourceDefinition changed."""
        with self._types_lock:
            self._types.clear()

    def type_of(self, manifest: Manifest) -> ResourceType:
        """Where `manifest` lives. Raises NoMatchError."""
        return self.resource_type(manifest["apiVersion"], manifest["kind"])

    def get(self, manifest: Manifest) -> Manifest:
        """The live object of the same kind, namespace and name. Raises ApiError NotFound, NoMatchError."""
        return self.request("GET", self._object_path(manifest))

    def _object_path(self, manifest: Manifest) -> str:
        metadata = manifest["metadata"]
        return self.type_of(manifest).path(metadata.get("namespace", ""), metadata["name"])

    def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool) -> Manifest:
        """The created object; unknown fields are refused. Raises ApiError AlreadyExists and others, NoMatchError."""
        found = self.type_of(manifest)
        path = found.path(manifest["metadata"].get("namespace", ""), None)
        return self.request("POST", path, query=_write_options(field_manager, dry_run), body=manifest)

    def apply(self, manifest: Manifest, *, field_manager: str, force: bool, dry_run: bool) -> Manifest:
        """The object after server-side apply; unknown fields are refused. Raises ApiError Conflict and others."""
        query = _write_options(field_manager, dry_run) | {"force": "true" if force else "false"}
        return self.request("PATCH", self._object_path(manifest), query=query, body=manifest, content_type=APPLY_PATCH)

    def replace(self, manifest: Manifest, *, field_manager: str, dry_run: bool) -> Manifest:
        """The object after a PUT; `manifest` carries the resourceVersion it replaces."""
        query = _write_options(field_manager, dry_run)
        return self.request("PUT", self._object_path(manifest), query=query, body=manifest)

    def patch_json(self, manifest: Manifest, operations: list[Manifest]) -> Manifest:
        """The object after a JSON patch."""
        return self.request("PATCH", self._object_path(manifest), body=operations, content_type=JSON_PATCH)

    def delete(self, manifest: Manifest, *, propagation: str) -> Manifest:
        """Asks for the deletion; the object may still be there afterwards. `propagation` is Kubernetes' own word."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        return self.request("DELETE", self._object_path(manifest), body=options)

    def list(self, api_version: str, kind: str, namespace: str, *, label_selector: str) -> list[Manifest]:
        """The objects of a kind in a namespace that carry the labels."""
        path = self.resource_type(api_version, kind).path(namespace, None)
        items = self.request("GET", path, query={"labelSelector": label_selector}).get("items", [])
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def watch(self, manifest: Manifest, deadline: float, stop: threading.Event) -> Iterator[Manifest | None]:
        """The states of one object from now until `deadline` (monotonic seconds); None when it is gone.

        Ends when the time is over or `stop` is set. A state may come twice.
        """
        metadata = manifest["metadata"]
        path = self.type_of(manifest).path(metadata.get("namespace", ""), None)
        while not stop.is_set() and (left := deadline - time.monotonic()) > 0:
            try:
                current = self.get(manifest)
            except ApiError as error:
                if not error.is_not_found:
                    raise
                yield None
                stop.wait(min(left, 1.0))
                continue
            yield current
            seconds = max(1, min(WATCH_RESTART_SECONDS, int(left)))
            query = {
                "watch": "true",
                "fieldSelector": f"metadata.name={metadata['name']}",
                "resourceVersion": current["metadata"]["resourceVersion"],
                "timeoutSeconds": str(seconds),
            }
            yield from self._watch_once(path, query, stop)

    def _watch_once(self, path: str, query: Mapping[str, str], stop: threading.Event) -> Iterator[Manifest | None]:
        response = self._send("GET", path, query, None, JSON, stream=True)
        try:
            if response.status >= 400:
                raise _api_error(response.status, response.read())
            for event in _watch_events(response):
                if stop.is_set() or event["type"] in ("ERROR", "BOOKMARK"):
                    return
                yield None if event["type"] == "DELETED" else event["object"]
        except urllib3.exceptions.HTTPError:
            # The server ended the stream; the caller reads the object again.
            return
        finally:
            response.close()


def _watch_events(response: urllib3.BaseHTTPResponse) -> Iterator[Manifest]:
    pending = b""
    while chunk := response.read1(65536):
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if line:
                yield json.loads(line)


def _write_options(field_manager: str, dry_run: bool) -> dict[str, str]:
    options = {"fieldManager": field_manager, "fieldValidation": "Strict"}
    return options | {"dryRun": "All"} if dry_run else options


def _api_error(code: int, data: bytes) -> ApiError:
    try:
        status = json.loads(data)
        return ApiError(code, status.get("reason", ""), status.get("message", ""), status.get("details"))
    except (ValueError, AttributeError):
        return ApiError(code, "", f"HTTP {code}: {data[:200].decode(errors='replace')}")
