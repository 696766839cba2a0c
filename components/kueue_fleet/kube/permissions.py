"""Which permission a request needs, for the count of requests: verb and resource as RBAC names them.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

RequestListener = Callable[[str, str, int], None]
"""Called with every request: the verb, the resource such as `workloads.kueue.x-k8s.io/status`, and the HTTP
status; status 0: no answer."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def permission(method: str, path: str, params: Mapping[str, str]) -> tuple[str, str]:
    """Verb and resource of a request. A path outside of any resource is itself the resource."""
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
