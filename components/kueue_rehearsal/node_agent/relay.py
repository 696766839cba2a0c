"""Connections to a Service's address and port, handed on to the pod behind it and the port that it listens on.

What kube-proxy does on a node, for the few Services that the API server itself calls. Without it the port in every
client configuration has to be changed, and each change of a CRD costs the API server a second of work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

log = logging.getLogger(__name__)

Endpoint = tuple[str, int]
"""Address and port."""
_CHUNK_BYTES = 64 * 1024


class Relays:
    """Listeners, each handing its connections on to another endpoint."""

    def __init__(self) -> None:
        self._open: dict[Endpoint, tuple[Endpoint, asyncio.Server]] = {}

    async def keep(self, endpoints: Mapping[Endpoint, Endpoint]) -> None:
        """Listen on exactly the endpoints WANTED, each for the endpoint it is mapped to.

        Raises:
            OSError: a port cannot be listened on.
        """
        for endpoint, (target, server) in list(self._open.items()):
            if endpoints.get(endpoint) != target:
                del self._open[endpoint]
                server.close()
        for (ip, port), target in endpoints.items():
            if (ip, port) not in self._open:
                server = await asyncio.start_server(partial(_hand_on, target), ip, port)
                self._open[ip, port] = (target, server)
                log.info("%s:%d leads to %s:%d", ip, port, *target)

    async def close(self) -> None:
        """Stop listening."""
        await self.keep({})


async def _hand_on(target: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        target_reader, target_writer = await asyncio.open_connection(*target)
    except OSError:
        # Nothing listens there: the caller sees its connection closed, as it would at a pod that is not ready.
        writer.close()
        return
    await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
    target_writer.close()
    writer.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(_CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
        sink.write_eof()
    except OSError:
        # One side reset the connection: so does the relay to the other.
        sink.transport.abort()
