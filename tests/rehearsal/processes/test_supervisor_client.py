"""What a client of the supervisor says when things are not as they should be."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.supervisor_client import SupervisorClient, SupervisorError, SupervisorGoneError


@contextmanager
def answering(path: Path, answer: bytes | None) -> Iterator[None]:
    """A server that gives one answer, or none at all."""
    result = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                if answer is None:
                    result.wait(10)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            result.set()
            thread.join()


def response(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d Status\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(
        SupervisorGoneError, match=r"the rehearsal's supervisor is not running .*run `kueue-fleet rehearse up`"
    ):
        SupervisorClient(tmp_path / "none.sock").health()


def test_a_socket_left_by_a_dead_supervisor(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    with pytest.raises(SupervisorGoneError, match="Connection refused"):
        SupervisorClient(path).health()


def test_no_answer_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SupervisorClient(tmp_path / "s.sock")
    with (
        answering(client.socket, None),
        pytest.raises(SupervisorGoneError, match=r"has not answered GET /healthz in 0 s; see .*supervisor\.log"),
    ):
        client._request("GET", "/healthz", timeout=0.2)


def test_the_supervisors_own_sentence_is_passed_on(tmp_path: Path) -> None:
    client = SupervisorClient(tmp_path / "s.sock")
    with (
        answering(client.socket, response(409, b'{"error": "cluster a: there is one already"}')),
        pytest.raises(SupervisorError, match=r"^cluster a: there is one already$") as error,
    ):
        client.delete_cluster("a")
    assert error.value.status == 409


def test_an_error_that_is_no_json(tmp_path: Path) -> None:
    client = SupervisorClient(tmp_path / "s.sock")
    with answering(client.socket, response(500, b"oops")), pytest.raises(SupervisorError, match="oops"):
        client.health()


def test_an_answer_that_is_no_http(tmp_path: Path) -> None:
    client = SupervisorClient(tmp_path / "s.sock")
    with answering(client.socket, b"SSH-2.0\r\n\r\n"), pytest.raises(SupervisorGoneError):
        client.health()


def test_the_socket_is_named_by_the_environment() -> None:
    assert SupervisorClient.from_environment({"KUEUE_FLEET_SUPERVISOR": "/s"}).socket == Path("/s")
    with pytest.raises(RehearsalError, match=r"KUEUE_FLEET_SUPERVISOR is not set: .* in a rehearsal only"):
        SupervisorClient.from_environment({})
