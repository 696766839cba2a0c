"""Credentials from a program that a kubeconfig names, as kubectl and client-go get them.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
"""

from __future__ import annotations

import base64
import json
import math
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from subprocess import DEVNULL, PIPE
from typing import Any, Final

from kueue_fleet.kube.kubeconfig import Entry

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Versions of ExecCredential that are understood."""
EXEC_SECONDS: Final = 20.0
"""Longest that a plugin may take which does not use the terminal."""
_SHOWN: Final = 300
_MODES: Final = ("Never", "IfAvailable", "Always")
_CLUSTER_FIELDS: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
_OWN_CONFIG: Final = "client.authentication.k8s.io/exec"
"""Extension of a cluster that its plugins are given."""


class ExecError(Exception):
    """The plugin gave no credential; the message has nothing of what it printed on standard output."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a plugin gave: a token, a certificate with its key, or both."""

    token: str = field(repr=False)
    certificate: tuple[str, str] | None = field(repr=False)
    expires: float
    """In seconds since 1970, or infinity."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    command: str
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    """What it gets to know of the cluster; None: nothing (`provideClusterInfo: false`)."""
    mode: str = "IfAvailable"
    """Whether it asks on the terminal."""
    hint: str = "install it"
    """What to do where there is no such program."""

    def credential(self, *, interactive: bool = False) -> Credential:
        """Run the plugin. `interactive`: there is a terminal that it may use. Raises ExecError."""
        if self.mode == "Always" and not interactive:
            raise ExecError(
                f"{self.command} needs a terminal (interactiveMode: Always); set it to Never or IfAvailable"
            )
        asks = interactive and self.mode != "Never"
        spec = {"interactive": asks, **({"cluster": dict(self.cluster)} if self.cluster is not None else {})}
        info = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})
        environment = {**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": info}
        try:
            done = subprocess.run(
                (self.command, *self.arguments),
                stdin=None if asks else DEVNULL,
                stdout=PIPE,
                stderr=None if asks else PIPE,
                env=environment,
                timeout=None if asks else EXEC_SECONDS,
                check=False,
            )
        except OSError as error:
            raise ExecError(f"{self.command} cannot be run: {error.strerror}; {self.hint}") from None
        except subprocess.TimeoutExpired:
            raise ExecError(f"{self.command} gave no answer within {EXEC_SECONDS:g} s") from None
        if done.returncode:
            output = " ".join((done.stderr or b"").decode(errors="replace").split())[-_SHOWN:]
            raise ExecError(f"{self.command} failed with exit code {done.returncode}: {output or 'it said nothing'}")
        return self._read(done.stdout)

    def _read(self, output: bytes) -> Credential:
        try:
            credential = json.loads(output)
            version, status = credential["apiVersion"], credential["status"]
            expires = status.get("expirationTimestamp")
            until = datetime.fromisoformat(expires).timestamp() if expires else math.inf
            token, *pair = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExecError(f"{self.command} printed no ExecCredential; check the command") from None
        if version != self.api_version:
            raise ExecError(
                f"{self.command} answered in {version}, but the kubeconfig has {self.api_version}; make them equal"
            )
        if not all(isinstance(text, str) and text.isascii() for text in (token, *pair)):
            raise ExecError(f"{self.command} printed no ExecCredential; check the command")
        if not (token or all(pair)) or bool(pair[0]) != bool(pair[1]):
            raise ExecError(f"{self.command} gave neither a token nor a certificate with its key; check the command")
        return Credential(token, (pair[0], pair[1]) if all(pair) else None, until)


def read_exec(user: Entry, cluster: Entry, authority: str | None) -> ExecPlugin:
    """The `exec` section of a kubeconfig's user; a command with a slash is relative to the kubeconfig's folder.

    `authority` is the cluster's. Raises ExecError for what is not supported, AccessError where it is another thing.
    """
    fields = user.fields["exec"]
    if not isinstance(fields, Mapping):
        raise user.error("exec", "has no fields")
    section = replace(user, path=f"{user.path}.exec", fields=fields)
    command, version, mode = section.text("command"), section.text("apiVersion"), section.text("interactiveMode")
    if not command:
        raise section.error("command", "is missing", "name a program")
    if version not in EXEC_VERSIONS:
        raise ExecError(f"apiVersion {version} of {command} is unknown; use {' or '.join(EXEC_VERSIONS)}")
    if mode and mode not in _MODES:
        raise section.error("interactiveMode", f"{mode} is unknown", f"use {', '.join(_MODES)}")
    variables = section.fields.get("env") or []
    try:
        environment = {str(variable["name"]): str(variable["value"]) for variable in variables}
    except (KeyError, TypeError):
        raise section.error("env", "is not a list of names and values") from None
    return ExecPlugin(
        os.path.normpath(section.folder / command) if "/" in command else command,
        version,
        section.texts("args"),
        environment,
        _cluster_info(cluster, authority) if section.flag("provideClusterInfo") else None,
        mode or "IfAvailable",
        " ".join(section.text("installHint").split()) or "install it",
    )


def _cluster_info(cluster: Entry, authority: str | None) -> Mapping[str, Any]:
    info = {name: cluster.fields[name] for name in _CLUSTER_FIELDS if name in cluster.fields}
    if authority and "certificate-authority-data" not in info:
        info["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    for extension in cluster.fields.get("extensions") or []:
        if isinstance(extension, Mapping) and extension.get("name") == _OWN_CONFIG:
            info["config"] = extension.get("extension")
    return info
