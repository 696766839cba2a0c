"""The kubeconfig of a rehearsal: one context a cluster, named as the cluster is in the fleet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kueue_rehearsal.private_files import write_private


def rehearsal_kubeconfig(clusters: Sequence[Mapping[str, str]], token: str, current: str) -> dict[str, Any]:
    """A kubeconfig for CLUSTERS (as the supervisor describes them: name, endpoint, caCertificate) with this token.

    Unlike the one that the components write, it needs no credential plugin on PATH, so that kubectl, kueuectl and k9s
    work as they are.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [
            {
                "name": cluster["name"],
                "cluster": {
                    "server": f"https://{cluster['endpoint']}",
                    "certificate-authority-data": cluster["caCertificate"],
                },
            }
            for cluster in clusters
        ],
        "users": [{"name": "rehearsal-admin", "user": {"token": token}}],
        "contexts": [
            {"name": cluster["name"], "context": {"cluster": cluster["name"], "user": "rehearsal-admin"}}
            for cluster in clusters
        ],
    }


def write_kubeconfig(file: Path, content: Mapping[str, Any]) -> None:
    """Write CONTENT to FILE at once, readable by its owner alone: it holds a credential."""
    write_private(file, yaml.safe_dump(dict(content), sort_keys=False).encode())
