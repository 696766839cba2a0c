"""Stand-in for Google's credential plugins: prints the rehearsal's credential as an ExecCredential.

For the user, as `gke-gcloud-auth-plugin`, the administrator's token of that rehearsal; in a pod, as `gcp-auth-plugin`,
a short-lived token of the Google account that the pod acts as. For servers on loopback only; it never answers for a
real cluster. Standard library only, as every client starts it again.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kueue_rehearsal.standins.google_tokens import TOKEN_SECONDS, make_token

STATE_VARIABLE = "KUEUE_FLEET_REHEARSAL"
"""Environment variable with the state folder of the rehearsal."""
ACCOUNT_VARIABLE = "KUEUE_FLEET_GOOGLE_ACCOUNT"
"""In a pod: address of the Google account that it acts as; empty: of none."""
INFO_VARIABLE = "KUBERNETES_EXEC_INFO"
"""Environment variable with which kubectl says whom it asks about."""
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Versions of the exec plugin's API that are spoken."""
TOKEN_FILE = "pki/admin.token"  # noqa: S105  (the name of a file)
"""Where a control plane's token is, below its folder."""


class CredentialError(Exception):
    """No credential is given; the text says why and what to do."""


def is_loopback(server: str) -> bool:
    """Whether the server's address is on this machine only; a name that merely looks like such an address is not."""
    try:
        host = urlsplit(server).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def credential(info_text: str | None, state: str | None, account: str | None = None, now: float = 0) -> dict[str, Any]:
    """The ExecCredential for what a client asks; `account` is that of a pod, None: of the user.

    Raises CredentialError.
    """
    if not state:
        raise CredentialError(f"{STATE_VARIABLE} is not set; this stand-in works only inside a rehearsal")
    try:
        info = json.loads(info_text or "")
        api_version, cluster = info["apiVersion"], info.get("spec", {}).get("cluster") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CredentialError(f"{INFO_VARIABLE} holds no ExecCredential; let a Kubernetes client start this") from None
    if api_version not in API_VERSIONS:
        raise CredentialError(f"apiVersion {api_version} is unknown; use {' or '.join(API_VERSIONS)}")
    server = cluster.get("server")
    if not server:
        raise CredentialError("the client does not name the server; set provideClusterInfo: true in the kubeconfig")
    if not is_loopback(server):
        raise CredentialError(
            f"{server} is not a cluster of this rehearsal; install the real gke-gcloud-auth-plugin for GKE clusters"
        )
    try:
        token = Path(state, TOKEN_FILE).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CredentialError(f"no token of a rehearsal in {state} ({error.strerror}); start the rehearsal") from None
    if account is None:
        return {"apiVersion": api_version, "kind": "ExecCredential", "status": {"token": token}}
    if not account:
        raise CredentialError(
            "the pod acts as no Google account; annotate its ServiceAccount with iam.gke.io/gcp-service-account"
        )
    expires = int(now) + TOKEN_SECONDS
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
    status = {"token": make_token(token, account, expires), "expirationTimestamp": stamp}
    # The real one knows one version only.
    return {"apiVersion": API_VERSIONS[1], "kind": "ExecCredential", "status": status}


def main(version: str, arguments: list[str]) -> int:
    """Prints the credential, or on standard error why there is none; the exit code follows."""
    if "--version" in arguments:
        print(f"gke-gcloud-auth-plugin {version}+standin")
        return 0
    try:
        exec_credential = credential(
            os.environ.get(INFO_VARIABLE),
            os.environ.get(STATE_VARIABLE),
            os.environ.get(ACCOUNT_VARIABLE),
            time.time(),
        )
        print(json.dumps(exec_credential))
    except CredentialError as error:
        print(f"gke-gcloud-auth-plugin (stand-in): {error}", file=sys.stderr)
        return 1
    return 0
