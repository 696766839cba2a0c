"""A kubeconfig as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def render_kubeconfig(
    name: str, cluster: Mapping[str, Any], user: Mapping[str, Any], *, user_name: str = "", namespace: str = ""
) -> dict[str, Any]:
    """A kubeconfig with the context `name` alone, for the user of that name unless `user_name` is another."""
    context = {"cluster": name, "user": user_name or name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": user_name or name, "user": dict(user)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
