"""A kubeconfig: which cluster is meant, and the credential for it.

What the stand-in cannot honour (a proxy, an auth provider, impersonation) is refused, never left out silently.
Source: client-go tools/clientcmd.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kueue_fleet.rehearsal.standins.gke_auth import is_loopback
from kueue_fleet.rehearsal.standins.plugin_errors import PluginError

EXEC_TIMEOUT_SECONDS: Final = 60
"""Longest that an exec plugin takes."""
EXPIRY_MARGIN_SECONDS: Final = 60
"""How long before its end a token is no longer used."""
REFUSED_CLUSTER_FIELDS: Final = ("proxy-url",)
"""Fields of a cluster in a kubeconfig that are refused."""
REFUSED_USER_FIELDS: Final = ("auth-provider", "as", "as-uid", "as-groups", "username")
"""Fields of a user in a kubeconfig that are refused."""


class KubeconfigError(PluginError):
    """The kubeconfig cannot be used; the text never holds a credential."""


def load_kubeconfig(path_or_contents: str) -> dict[str, Any]:
    """The kubeconfig as plain data; `path_or_contents` is a path when such a file exists.

    Raises KubeconfigError when it is neither JSON nor YAML of the right shape.
    """
    text = path_or_contents
    if "\n" not in text and "{" not in text:
        path = Path(text).expanduser()
        if not path.is_file():
            raise KubeconfigError(f"kubeconfig: no file at {path}; give a kubeconfig's contents or an existing path")
        text = path.read_text(encoding="utf-8")
    try:
        loaded = json.loads(text)
    except ValueError:
        loaded = _load_yaml(text)
    if not isinstance(loaded, dict) or not isinstance(loaded.get("clusters", []), list):
        raise KubeconfigError("kubeconfig: not a kubeconfig (an object with clusters, contexts and users); check it")
    return loaded


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise KubeconfigError(f"kubeconfig: neither JSON nor YAML{where}; check its contents") from None


def _named(config: Mapping[str, Any], section: str, name: str, key: str) -> dict[str, Any]:
    for entry in config.get(section) or []:
        if entry.get("name") == name:
            return dict(entry.get(key) or {})
    raise KubeconfigError(f"kubeconfig: no entry {name!r} in {section}; add it or name another")


def active_cluster(config: Mapping[str, Any], context: str | None, cluster: str | None) -> dict[str, Any]:
    """The cluster entry in use, `{}` when there is none: what the real provider compares to decide on a replacement.

    Source: getActiveClusterFromConfig in pulumi-kubernetes provider/pkg/provider/util.go.
    """
    if not config.get("clusters"):
        return {}
    try:
        chosen = _named(config, "contexts", context or config.get("current-context") or "", "context")
        return _named(config, "clusters", cluster or chosen.get("cluster", ""), "cluster")
    except KubeconfigError:
        return {}


@dataclass
class ClusterAccess:
    """Where the API server is, and how to prove who we are. Raises KubeconfigError when a part cannot be honoured."""

    cluster: dict[str, Any]
    user: dict[str, Any]
    namespace: str
    _exec_token: str | None = None
    _exec_expiry: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self.cluster["server"])

    def ssl_context(self) -> ssl.SSLContext:
        """A context that trusts the cluster's own CA and presents the user's certificate, where there is one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif data := self.cluster.get("certificate-authority-data"):
            context.load_verify_locations(cadata=base64.b64decode(data).decode())
        elif path := self.cluster.get("certificate-authority"):
            context.load_verify_locations(cafile=path)
        else:
            context.load_default_certs()
        self._load_client_certificate(context)
        return context

    def _load_client_certificate(self, context: ssl.SSLContext) -> None:
        if path := self.user.get("client-certificate"):
            context.load_cert_chain(path, self.user.get("client-key"))
        elif data := self.user.get("client-certificate-data"):
            with tempfile.NamedTemporaryFile() as pem:
                pem.write(base64.b64decode(data) + b"\n" + base64.b64decode(self.user.get("client-key-data", "")))
                pem.flush()
                context.load_cert_chain(pem.name)

    def authorization(self, *, renew: bool = False) -> str | None:
        """The Authorization header; None with a client certificate alone. `renew` asks the exec plugin again."""
        if token := self.user.get("token"):
            return f"Bearer {token}"
        if path := self.user.get("tokenFile"):
            return f"Bearer {Path(path).read_text(encoding='utf-8').strip()}"
        if plugin := self.user.get("exec"):
            with self._lock:
                if renew or self._exec_token is None or time.time() > self._exec_expiry - EXPIRY_MARGIN_SECONDS:
                    self._exec_token, self._exec_expiry = self._run_exec_plugin(plugin)
                return f"Bearer {self._exec_token}"
        return None

    def _run_exec_plugin(self, plugin: Mapping[str, Any]) -> tuple[str, float]:
        command = str(plugin.get("command", ""))
        spec: dict[str, Any] = {"interactive": False}
        if plugin.get("provideClusterInfo"):
            known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data")
            spec["cluster"] = {key: self.cluster[key] for key in known if key in self.cluster}
        if plugin.get("interactiveMode") == "Always":
            raise KubeconfigError(f"kubeconfig: {command} wants a terminal (interactiveMode: Always); set IfAvailable")
        info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": spec}
        environment = dict(os.environ, KUBERNETES_EXEC_INFO=json.dumps(info))
        environment.update({item["name"]: item["value"] for item in plugin.get("env") or []})
        try:
            done = subprocess.run(
                [command, *(plugin.get("args") or [])],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=EXEC_TIMEOUT_SECONDS,
            )
        except FileNotFoundError:
            hint = plugin.get("installHint") or "install it or put its folder on PATH"
            raise KubeconfigError(f"kubeconfig: exec: executable {command} not found; {hint}") from None
        except subprocess.TimeoutExpired:
            raise KubeconfigError(f"kubeconfig: {command} gave no answer in {EXEC_TIMEOUT_SECONDS} s") from None
        if done.returncode:
            raise KubeconfigError(f"kubeconfig: {command} failed: {done.stderr.strip()[-500:]}")
        return self._parse_exec_credential(command, done.stdout, str(plugin.get("apiVersion")))

    @staticmethod
    def _parse_exec_credential(command: str, output: str, api_version: str) -> tuple[str, float]:
        try:
            credential = json.loads(output)
            status = credential["status"]
            given_version = credential["apiVersion"]
        except (ValueError, KeyError, TypeError):
            raise KubeconfigError(f"kubeconfig: {command} printed no ExecCredential; check the command") from None
        if given_version != api_version:
            raise KubeconfigError(
                f"kubeconfig: {command} answered in {given_version}, the kubeconfig asks for {api_version}; "
                "make them equal"
            )
        if "token" not in status:
            raise KubeconfigError(f"kubeconfig: {command} gave no token; the stand-in takes no other exec credential")
        expiry = float("inf")
        if stamp := status.get("expirationTimestamp"):
            expiry = datetime.fromisoformat(stamp).timestamp()
        return status["token"], expiry


def cluster_access(config: Mapping[str, Any], context: str | None, cluster: str | None) -> ClusterAccess:
    """The access that `config` describes, with the provider's overrides.

    Raises KubeconfigError for a missing entry, for a field the stand-in does not honour, and for a server that is not
    on loopback: a rehearsal must never act on a real cluster.
    """
    name = context or config.get("current-context") or ""
    if not name:
        raise KubeconfigError("kubeconfig: no current-context; set it, or the provider's context")
    chosen = _named(config, "contexts", name, "context")
    entry = _named(config, "clusters", cluster or chosen.get("cluster", ""), "cluster")
    user = _named(config, "users", chosen["user"], "user") if chosen.get("user") else {}
    for fields, holder, label in ((REFUSED_CLUSTER_FIELDS, entry, "cluster"), (REFUSED_USER_FIELDS, user, "user")):
        for refused in fields:
            if holder.get(refused):
                raise KubeconfigError(f"kubeconfig: {label}.{refused} is not honoured by the stand-in; leave it out")
    if not entry.get("server"):
        raise KubeconfigError("kubeconfig: the cluster has no server; set it")
    if not is_loopback(str(entry["server"])):
        raise KubeconfigError(
            f"kubeconfig: {entry['server']} is not on this machine; the stand-in acts on loopback servers only, "
            "use the real pulumi-resource-kubernetes for it"
        )
    return ClusterAccess(cluster=entry, user=user, namespace=chosen.get("namespace") or "")
