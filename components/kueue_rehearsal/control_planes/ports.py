"""Free ports on 127.0.0.1, below those that Linux gives to outgoing connections."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable

from kueue_rehearsal.paths import RehearsalError

HOST = "127.0.0.1"
"""Where everything listens."""
# net.ipv4.ip_local_port_range begins at 32768: a port below it is not taken between the look and the use by a client.
FIRST_PORT, LAST_PORT = 20000, 32000
_ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Go's listeners do: connections of a server that has just ended do not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


class Ports:
    """Gives out ports, each once."""

    def __init__(self, taken_ports: Iterable[int] = ()) -> None:
        self._given = set(taken_ports)

    def take(self) -> int:
        """A port that is free now, and that this object has not given out before.

        Raises RehearsalError when none is found.
        """
        for _ in range(_ATTEMPTS):
            port = random.randint(FIRST_PORT, LAST_PORT)  # noqa: S311 -- only to keep out of each other's way
            if port not in self._given and is_free(port):
                self._given.add(port)
                return port
        raise RehearsalError(
            f"no free port among {_ATTEMPTS} tried between {FIRST_PORT} and {LAST_PORT} on {HOST}; "
            "end whatever listens on them"
        )

    def claim(self, port: int, owner: str) -> None:
        """Takes the port that `owner` had before.

        Raises RehearsalError when another program listens on it now.
        """
        if not is_free(port):
            raise RehearsalError(
                f"port {port} of {owner} is taken by another program; end that program "
                f"(`ss -ltnp sport = :{port}` names it), or run `rehearse down` and start it again"
            )
        self._given.add(port)

    def release(self, port: int) -> None:
        """The port may be given out again."""
        self._given.discard(port)
