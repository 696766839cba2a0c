"""Credentials from a program that a kubeconfig names, as kubectl and client-go get them.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Versions of ExecCredential that are understood."""
EXEC_SECONDS: Final = 20.0
"""Longest that a plugin may take."""
_SHOWN: Final = 300


class ExecError(Exception):
    """The plugin gave no token; the message has nothing of what it printed on standard output."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints an ExecCredential."""

    command: str
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    """What it gets to know of the cluster; None: nothing (`provideClusterInfo: false`)."""

    async def token(self) -> tuple[str, float]:
        """A token, and when it expires in seconds since 1970, or infinity. Raises ExecError."""
        spec = {"interactive": False, **({"cluster": dict(self.cluster)} if self.cluster is not None else {})}
        info = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})
        environment = {**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": info}
        try:
            process = await asyncio.create_subprocess_exec(
                self.command, *self.arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environment
            )
        except OSError as error:
            raise ExecError(f"{self.command} cannot be run: {error.strerror}; install it") from None
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                output, errors = await process.communicate()
        except TimeoutError:
            raise ExecError(f"{self.command} gave no answer within {EXEC_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            said = " ".join(errors.decode(errors="replace").split())[-_SHOWN:]
            raise ExecError(f"{self.command} failed with exit code {process.returncode}: {said or 'it said nothing'}")
        return self._read(output)

    def _read(self, output: bytes) -> tuple[str, float]:
        try:
            credential = json.loads(output)
            version, status = credential["apiVersion"], credential["status"]
            expires = status.get("expirationTimestamp")
            until = datetime.fromisoformat(expires).timestamp() if expires else math.inf
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExecError(f"{self.command} printed no ExecCredential; check the command") from None
        if version != self.api_version:
            raise ExecError(
                f"{self.command} answered in {version}, but the kubeconfig has {self.api_version}; make them equal"
            )
        token = status.get("token")
        if not isinstance(token, str) or not token:
            raise ExecError(f"{self.command} gave no token; other credentials than tokens are not supported")
        return token, until


def read_exec(user: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> ExecPlugin:
    """The `exec` section of a kubeconfig's user; a command with a slash is relative to the kubeconfig's folder.

    Raises KeyError or TypeError where it is not such a section, and ExecError for what is not supported.
    """
    section = user["exec"]
    command, version = str(section["command"]), str(section["apiVersion"])
    if version not in EXEC_VERSIONS:
        raise ExecError(f"apiVersion {version} of {command} is unknown; use {' or '.join(EXEC_VERSIONS)}")
    if section.get("interactiveMode") == "Always":
        raise ExecError(f"{command} needs a terminal (interactiveMode: Always); set it to Never or IfAvailable")
    told = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    return ExecPlugin(
        os.path.normpath(folder / command) if "/" in command else command,
        version,
        tuple(str(argument) for argument in section.get("args") or ()),
        {str(variable["name"]): str(variable["value"]) for variable in section.get("env") or ()},
        {key: cluster[key] for key in told if key in cluster} if section.get("provideClusterInfo") else None,
    )
