"""How to reach an API server: a kubeconfig with a token, or the account of the pod."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kueue_fleet.fleet_file.yaml_text import load_yaml

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server."""

    server: str
    authority: str | None = field(repr=False)
    token: str = field(repr=False)
    tls_server_name: str | None = None

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """The server and how it proves itself, without the token."""
        return self.server, self.authority, self.tls_server_name


class AccessError(Exception):
    """Credentials that cannot be used; the message never has any of them."""


def read_access(kubeconfig: Path | None, environ: Mapping[str, str] = os.environ) -> Access:
    """The access that a kubeconfig gives, with a token or a token file; None: the account of the pod.

    Raises AccessError.
    """
    try:
        if kubeconfig is None:
            host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
            host = f"[{host}]" if ":" in host else host
            token = (_ACCOUNT / "token").read_text().strip()
            return Access(f"https://{host}:{port}", (_ACCOUNT / "ca.crt").read_text(), token)
        document = load_yaml(kubeconfig.read_text(encoding="utf-8"), str(kubeconfig))
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        token = user["token"] if "token" in user else Path(user["tokenFile"]).read_text().strip()
        # GKE's DNS endpoints have a certificate of a public authority.
        authority: str | None = None
        if "certificate-authority-data" in cluster:
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        elif "certificate-authority" in cluster:
            authority = Path(cluster["certificate-authority"]).read_text()
        return Access(cluster["server"].rstrip("/"), authority, token, cluster.get("tls-server-name"))
    except (OSError, KeyError, TypeError, ValueError, StopIteration) as error:
        where = str(kubeconfig) if kubeconfig else "the account of the pod"
        raise AccessError(f"{where} cannot be used: {type(error).__name__}; give a kubeconfig with a token") from None


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)
