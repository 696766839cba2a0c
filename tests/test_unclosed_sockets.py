"""Which unclosed sockets fail a test: those that somebody could have closed."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What pytest would fail this test for."""
    result: list[BaseException] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: result.append(unraisable.exc_value))
    return result


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection: the client's end and the server's."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        client = socket.create_connection(server.getsockname())
        yield client, server.accept()[0]


def test_the_peer_is_gone_before_the_handshake(
    reported: list[BaseException], connected: tuple[socket.socket, socket.socket]
) -> None:
    """Python 3.11's ssl raises then, and leaves the socket open that it has made (`SSLSocket._create`)."""
    client, far = connected
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets the connection.
    far.close()
    with pytest.raises(ConnectionResetError):
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
    gc.collect()
    assert reported == []


def test_a_connection_is_left_open(
    reported: list[BaseException], connected: tuple[socket.socket, socket.socket]
) -> None:
    client, far = connected
    with closing(far):
        left: Any = ssl.create_default_context().wrap_socket(client, do_handshake_on_connect=False, server_hostname="x")
        del left
        gc.collect()
    assert [type(item) for item in reported] == [ResourceWarning]
