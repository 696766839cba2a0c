"""One loopback address for each pod, unique on this machine.

Linux answers on every address of 127.0.0.0/8 without any set-up. A candidate is derived from the pod's uid and
claimed by binding one port on it for as long as the pod lives, so that the kernel keeps two rehearsals apart.
Addresses below 127.64.0.0 are left to people.
"""

from __future__ import annotations

import errno
import hashlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

# No registered service, and below the ephemeral ports of Linux (32768).
CLAIM_PORT = 29417
"""Port on which an address is held, so that no other rehearsal takes it."""
_CANDIDATES = 64


class AddressError(Exception):
    """No loopback address could be claimed; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class ClaimedAddress:
    """An address that is ours until `release`."""

    ip: str
    _socket: socket.socket

    def release(self) -> None:
        """Gives the address back."""
        self._socket.close()


def candidates(owner: str) -> Iterator[str]:
    """The addresses to try for `owner`, in order: always the same ones for the same owner, all in 127.64.0.0/10."""
    for attempt in range(_CANDIDATES):
        first, second, third = hashlib.sha256(f"{owner}/{attempt}".encode()).digest()[:3]
        # Neither .0 nor .255: programs that know nothing of CIDR take these for a network and a broadcast address.
        yield f"127.{64 + first % 64}.{second}.{1 + third % 254}"


def claim_address(owner: str) -> ClaimedAddress:
    """Claims the first free candidate of `owner`. Raises AddressError when none is free."""
    for ip in candidates(owner):
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            claim.bind((ip, CLAIM_PORT))
        except OSError as error:
            claim.close()
            if error.errno == errno.EADDRINUSE:
                continue
            raise AddressError(f"{ip}: cannot be bound ({error.strerror}); is the loopback interface up?") from error
        return ClaimedAddress(ip, claim)
    raise AddressError(
        f"no loopback address is free: port {CLAIM_PORT} is taken on {_CANDIDATES} addresses; "
        f"stop whatever listens on 0.0.0.0:{CLAIM_PORT}"
    )


def taken_ports(ip: str, ports: list[int]) -> list[int]:
    """Those of `ports` that cannot be bound on `ip`, for instance because a program listens on all addresses."""
    return [port for port in ports if not can_listen(ip, port)]


def can_listen(ip: str, port: int) -> bool:
    """Whether this process may listen on a port, which below 1024 needs root or net.ipv4.ip_unprivileged_port_start."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError:
            return False
    return True
