"""Ports on the loopback address."""

from __future__ import annotations

import socket

import pytest

from kueue_rehearsal.control_planes import ports
from kueue_rehearsal.control_planes.ports import FIRST_PORT, LAST_PORT, Ports, is_free
from kueue_rehearsal.paths import RehearsalError


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_a_port_with_a_listener_is_not_free(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener:
        assert not is_free(port)
    assert is_free(port)


def test_a_port_whose_server_has_just_ended_is_free(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener, socket.create_connection(("127.0.0.1", port)) as client:
        served, _ = listener.accept()
        # The server closes first, so its end of the connection stays in TIME_WAIT.
        served.close()
        assert client.recv(1) == b""
    assert is_free(port)


def test_ports_are_given_out_once_and_below_the_ephemeral_range() -> None:
    giver = Ports()
    given = [giver.take() for _ in range(50)]
    assert len(set(given)) == 50
    assert all(FIRST_PORT <= port <= LAST_PORT < 32768 for port in given)


def test_a_claimed_port_that_is_taken_is_named_with_its_owner(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener, pytest.raises(RehearsalError, match=f"port {port} of etcd is taken by another program; end that"):
        Ports().claim(port, "etcd")


def test_no_free_port_at_all_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(RehearsalError, match="no free port among 200 tried"):
        Ports().take()
