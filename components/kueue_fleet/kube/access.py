"""How to reach an API server: a kubeconfig with a token or an exec plugin, or the account of the pod."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kueue_admission.forms.yaml_text import load_yaml
from kueue_fleet.kube.exec_plugin import ExecError, ExecPlugin, read_exec

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server."""

    server: str
    authority: str | None = field(repr=False)
    token: str = field(repr=False)
    """Empty where the plugin was not asked yet."""
    tls_server_name: str | None = None
    plugin: ExecPlugin | None = None
    """What gives the tokens; None: they are in files, which may change at any time."""
    expires: float = math.inf
    """When the plugin's token expires, in seconds since 1970."""

    @property
    def place(self) -> tuple[str, str | None, str | None]:
        """The server and how it proves itself, without the token."""
        return self.server, self.authority, self.tls_server_name


class AccessError(Exception):
    """Credentials that cannot be used; the message never has any of them."""


async def get_access(kubeconfig: Path | None, known: Access | None = None, context: str = "") -> Access:
    """The access that a kubeconfig gives now, with a token of its plugin if it has one.

    The token of `known`, if that is of the same plugin: it is not asked again. Raises AccessError.
    """
    access = read_access(kubeconfig, context=context)
    if access.plugin is None:
        return access
    if known is not None and known.plugin == access.plugin:
        return replace(access, token=known.token, expires=known.expires)
    try:
        token, expires = await access.plugin.token()
    except ExecError as error:
        raise AccessError(f"{kubeconfig} gives no token: {error}") from None
    return replace(access, token=token, expires=expires)


def read_access(kubeconfig: Path | None, environ: Mapping[str, str] = os.environ, context: str = "") -> Access:
    """The access that a kubeconfig gives by a token, a token file or an exec plugin; None: the account of the pod.

    `context` is another than the current one.

    Raises AccessError.
    """
    try:
        if kubeconfig is None:
            host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
            host = f"[{host}]" if ":" in host else host
            token = (_ACCOUNT / "token").read_text().strip()
            return Access(f"https://{host}:{port}", (_ACCOUNT / "ca.crt").read_text(), token)
        document = load_yaml(kubeconfig.read_text(encoding="utf-8"), str(kubeconfig))
        place = _named(document["contexts"], context or document["current-context"])["context"]
        cluster = _named(document["clusters"], place["cluster"])["cluster"]
        user = _named(document["users"], place["user"])["user"]
        plugin = None
        if "token" in user:
            token = user["token"]
        elif "exec" in user:
            token, plugin = "", read_exec(user, cluster, kubeconfig.absolute().parent)
        else:
            token = Path(user["tokenFile"]).read_text().strip()
        # GKE's DNS endpoints have a certificate of a public authority.
        authority: str | None = None
        if "certificate-authority-data" in cluster:
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        elif "certificate-authority" in cluster:
            authority = Path(cluster["certificate-authority"]).read_text()
        return Access(cluster["server"].rstrip("/"), authority, token, cluster.get("tls-server-name"), plugin)
    except ExecError as error:
        raise AccessError(f"{kubeconfig} cannot be used: {error}") from None
    except (OSError, KeyError, TypeError, ValueError, StopIteration) as error:
        where = str(kubeconfig) if kubeconfig else "the account of the pod"
        text = f"{where} cannot be used: {type(error).__name__}; give a kubeconfig with a token or an exec plugin"
        raise AccessError(text) from None


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)
