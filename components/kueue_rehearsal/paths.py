"""Where a rehearsal keeps what it writes: one cache folder for all, one state folder for each stack.

Nothing outside these two folders is ever written. This module only names places; it creates none of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STATE_DIR_VARIABLE = "KUEUE_FLEET_STATE_DIR"
"""Environment variable with another state folder."""
CACHE_DIR_VARIABLE = "KUEUE_FLEET_CACHE_DIR"
"""Environment variable with another cache folder."""

# sun_path of a Unix socket address holds 108 bytes with the closing zero (unix(7)).
_SOCKET_PATH_BYTES = 107
_STACK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class RehearsalError(Exception):
    """Something about this machine stops the rehearsal; the text is one sentence with what to do."""


def _base_dir(variable: str, xdg_variable: str, fallback: str, environ: Mapping[str, str]) -> Path:
    base_folder = environ.get(variable)
    if base_folder:
        return Path(base_folder).expanduser().absolute()
    xdg = environ.get(xdg_variable, "")
    # The XDG specification says that relative paths must be ignored.
    if xdg.startswith("/"):
        return Path(xdg) / "kueue-fleet"
    try:
        return Path.home() / fallback / "kueue-fleet"
    except RuntimeError:
        raise RehearsalError(
            f"this user has no home folder: set {STATE_DIR_VARIABLE} and {CACHE_DIR_VARIABLE}"
        ) from None


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of all rehearsals: KUEUE_FLEET_STATE_DIR, else $XDG_STATE_HOME/kueue-fleet (~/.local/state)."""
    return _base_dir(STATE_DIR_VARIABLE, "XDG_STATE_HOME", ".local/state", environ)


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """What can be made again at a cost: KUEUE_FLEET_CACHE_DIR, else $XDG_CACHE_HOME/kueue-fleet (~/.cache)."""
    return _base_dir(CACHE_DIR_VARIABLE, "XDG_CACHE_HOME", ".cache", environ)


def engines_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the built engines, shared by all rehearsals."""
    return cache_dir(environ) / "engines"


@dataclass(frozen=True, slots=True)
class RehearsalPaths:
    """Every place in the state folder of one rehearsal."""

    root: Path

    @property
    def socket(self) -> Path:
        """The supervisor's HTTP API; only its owner may open it."""
        return self.root / "supervisor.sock"

    @property
    def lock(self) -> Path:
        """Held with flock by the running supervisor, and contains its pid."""
        return self.root / "supervisor.lock"

    @property
    def command_lock(self) -> Path:
        """Held with flock by the command that changes the rehearsal."""
        return self.root / "command.lock"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor itself says."""
        return self.root / "supervisor.log"

    @property
    def clusters_file(self) -> Path:
        """What a restarted supervisor must know: clusters, their ports and numbers."""
        return self.root / "clusters.json"

    @property
    def reservations(self) -> Path:
        """The machine reservations that the stack has made."""
        return self.root / "reservations.json"

    @property
    def simulation(self) -> Path:
        """How the simulated cloud behaves, as the stack's config says; read again when it changes."""
        return self.root / "simulation.json"

    @property
    def frameworks_elsewhere(self) -> Path:
        """Kueue's frameworks whose operators are in the clusters without the fleet, as JSON."""
        return self.root / "frameworks-elsewhere.json"

    @property
    def submitted(self) -> Path:
        """The files of jobs that were submitted, one a line."""
        return self.root / "submitted-jobs"

    @property
    def pki(self) -> Path:
        """The rehearsal's certificate authority, all certificates, and the admin token."""
        return self.root / "pki"

    @property
    def ca_certificate(self) -> Path:
        """PEM of the authority that signs all servers of this rehearsal."""
        return self.pki / "ca.crt"

    @property
    def admin_token(self) -> Path:
        """The bearer token that every API server of this rehearsal accepts as system:masters."""
        return self.pki / "admin.token"

    @property
    def token_webhook(self) -> Path:
        """The kubeconfig by which API servers ask whose a Google account's token is."""
        return self.pki / "token-webhook.kubeconfig"

    @property
    def etcd(self) -> Path:
        """etcd's own files."""
        return self.root / "etcd"

    @property
    def clusters(self) -> Path:
        """A working folder for each cluster."""
        return self.root / "clusters"

    def cluster(self, name: str) -> Path:
        """The working folder of one cluster: its config files, and a log for each of its processes."""
        return self.clusters / name

    @property
    def bin(self) -> Path:
        """Stand-in executables; first on the PATH of Pulumi."""
        return self.root / "bin"

    @property
    def project(self) -> Path:
        """The copy of the Pulumi project that the rehearsal runs."""
        return self.root / "project"

    @property
    def pulumi_backend(self) -> Path:
        """Pulumi's state, as a file backend."""
        return self.root / "pulumi"

    @property
    def pulumi_home(self) -> Path:
        """PULUMI_HOME: nothing of the user's own is used."""
        return self.root / "pulumi-home"

    @property
    def passphrase(self) -> Path:
        """Encrypts the secrets in the rehearsal's Pulumi state."""
        return self.root / "pulumi.passphrase"

    @property
    def kubeconfig(self) -> Path:
        """A context for each cluster, under the cluster's name."""
        return self.root / "kubeconfig"


def rehearsal_paths(stack: str, environ: Mapping[str, str] = os.environ) -> RehearsalPaths:
    """The places of the rehearsal of `stack`.

    Raises RehearsalError when the name cannot be a folder, or the folder is too deep for a Unix socket.
    """
    if not _STACK_NAME.fullmatch(stack):
        raise RehearsalError(
            f"stack {stack!r}: not a stack name; use letters, digits, '_', '-' and '.', not beginning with '-' or '.'"
        )
    paths = RehearsalPaths(state_dir(environ) / "rehearsals" / stack)
    check_socket_path(paths)
    return paths


def check_socket_path(paths: RehearsalPaths) -> None:
    """Raises RehearsalError when the socket's path is longer than a Unix socket's path can be (107 bytes)."""
    length = len(os.fsencode(paths.socket))
    if length > _SOCKET_PATH_BYTES:
        raise RehearsalError(
            f"{paths.socket}: a socket's path may have {_SOCKET_PATH_BYTES} bytes, this one has {length}; "
            f"set {STATE_DIR_VARIABLE} to a shorter folder"
        )
