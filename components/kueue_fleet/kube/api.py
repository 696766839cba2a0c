"""What follows and writes objects needs of an API server, whichever client sends the requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kueue_fleet.kube.answers import Json

NAMESPACES: Final = "/api/v1/namespaces"
"""Where API servers have the list of namespaces."""
PROVISIONING_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
"""Where they have the list of ProvisioningRequests."""
KUBE_SYSTEM: Final = {"fieldSelector": "metadata.name=kube-system"}
"""Of the list of namespaces, the one whose uid says which cluster it is."""

RequestListener = Callable[[str, str, int], None]
"""Called with every request: the verb, the resource such as `workloads.kueue.x-k8s.io/status`, and the HTTP
status; status 0: no answer."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Identity:
    """A cluster at a moment: the uid of its namespace kube-system, which is made once in a cluster's life, and the
    resource version that it has got to."""

    uid: str
    version: str


Opened = Callable[[], None]
"""Called when a server has begun a watch."""


def nothing() -> None:
    """Ignores the call."""


class ListAndWatch(Protocol):
    """What following a list needs of an API server."""

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        """The object or list at `path`. Raises ApiError."""
        ...

    async def identity(self) -> Identity:
        """Which cluster this is, and how far it has got. Raises ApiError."""
        ...

    def watch(self, path: str, version: str, opened: Opened = nothing) -> AsyncIterator[tuple[str, Json]]:
        """Changes after a version, until the server ends the watch; `opened` is called once it begins one.

        Raises ApiError.
        """
        ...


class Api(ListAndWatch, Protocol):
    """What the controller needs of an API server."""

    async def create(self, path: str, body: Json) -> Json:
        """A new object in the list at `path`. Raises ApiError."""
        ...

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        """Server-side apply as a field manager, taking over contested fields. Raises ApiError."""
        ...

    async def delete(self, path: str, uid: str = "") -> Json:
        """Delete the object at `path` after all that it owns; with a `uid` only that one. Raises ApiError."""
        ...


async def ask_identity(api: ListAndWatch) -> Identity:
    """Which cluster a server is of. Raises ApiError."""
    # A list, since that needs no other permission than to follow namespaces.
    page = await api.get(NAMESPACES, KUBE_SYSTEM)
    uids = [str(item["metadata"].get("uid", "")) for item in page.get("items") or ()]
    return Identity(uids[0] if uids else "", str(page["metadata"].get("resourceVersion", "")))


def permission(method: str, path: str, params: Mapping[str, str]) -> tuple[str, str]:
    """Verb and resource of a request. A path outside of any resource is itself the resource.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
    """
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if parts[0] not in ("api", "apis") or not rest:
        return method.lower(), path
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = f"{rest[0]}.{group}" if group else rest[0]
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    if method != "GET":
        return _VERBS[method], resource
    if params.get("watch"):
        return "watch", resource
    return "get" if len(rest) > 1 else "list", resource


def ignore(verb: str, resource: str, status: int) -> None:
    """Counts nothing."""
    del verb, resource, status
