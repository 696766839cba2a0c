"""The lab's certificates, tried out by real TLS handshakes."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kueue_rehearsal.control_planes.certificates import (
    KeyPair,
    RehearsalAuthority,
    admin_token,
    current_time,
    service_account_key,
)
from kueue_rehearsal.paths import RehearsalError

HOSTS = ("127.0.0.1", "localhost", "kubernetes.default.svc")


@pytest.fixture
def authority(tmp_path: Path) -> RehearsalAuthority:
    return RehearsalAuthority.open(tmp_path / "pki", current_time())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def handshake(authority: RehearsalAuthority, server: KeyPair, client: KeyPair | None, hostname: str) -> x509.Name:
    """The client's name as the server sees it, after a mutual TLS handshake. Raises ssl.SSLError."""
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(server.certificate, server.key)
    server_side.load_verify_locations(authority.certificate_file)
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side = ssl.create_default_context(cafile=str(authority.certificate_file))
    if client is not None:
        client_side.load_cert_chain(client.certificate, client.key)
    near, far = socket.socketpair()
    near.settimeout(10)
    far.settimeout(10)
    seen: list[bytes | None] = []
    failures: list[ssl.SSLError] = []

    def serve() -> None:
        try:
            with server_side.wrap_socket(far, server_side=True) as secured:
                seen.append(secured.getpeercert(binary_form=True))
                secured.send(b"!")
        except ssl.SSLError as error:
            failures.append(error)
        finally:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client_side.wrap_socket(near, server_hostname=hostname) as secured:
            secured.recv(1)
    finally:
        near.close()
        thread.join()
    if failures:
        raise failures[0]
    assert seen[0] is not None
    return x509.load_der_x509_certificate(seen[0]).subject


@pytest.mark.parametrize("host", HOSTS)
def test_server_and_client_certificates_are_accepted(authority: RehearsalAuthority, host: str) -> None:
    server = authority.server("server", HOSTS, current_time())
    client = authority.client("client", "someone", ["system:masters"], current_time())
    subject = handshake(authority, server, client, host)
    assert subject.rfc4514_string() == "CN=someone,O=system:masters"


def test_another_host_name_is_refused(authority: RehearsalAuthority) -> None:
    server = authority.server("server", HOSTS, current_time())
    client = authority.client("client", "someone", [], current_time())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(authority, server, client, "example.com")


def test_a_certificate_of_another_lab_is_refused(authority: RehearsalAuthority, tmp_path: Path) -> None:
    stranger = RehearsalAuthority.open(tmp_path / "other", current_time())
    server = authority.server("server", HOSTS, current_time())
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        handshake(authority, server, stranger.client("client", "someone", [], current_time()), "localhost")


def test_what_is_there_is_used_again(authority: RehearsalAuthority) -> None:
    now = current_time()
    pair = authority.server("server", HOSTS, now)
    before = pair.certificate.read_bytes()
    again = RehearsalAuthority.open(authority.folder, now)
    assert again.certificate == authority.certificate
    assert again.server("server", HOSTS, now).certificate.read_bytes() == before


def test_other_hosts_and_a_near_end_need_a_new_certificate(authority: RehearsalAuthority) -> None:
    now = current_time()
    pair = authority.server("server", HOSTS, now)
    first = pair.certificate.read_bytes()
    authority.server("server", (*HOSTS, "more"), now)
    second = pair.certificate.read_bytes()
    authority.server("server", (*HOSTS, "more"), now + timedelta(days=340))
    third = pair.certificate.read_bytes()
    assert len({first, second, third}) == 3


def test_a_damaged_leaf_is_made_again(authority: RehearsalAuthority) -> None:
    now = current_time()
    pair = authority.server("server", HOSTS, now)
    pair.key.write_bytes(pair.key.read_bytes()[:40])
    authority.server("server", HOSTS, now)
    assert b"END EC PRIVATE KEY" in pair.key.read_bytes()


@pytest.mark.parametrize("victim", ["ca.crt", "ca.key"])
def test_a_damaged_authority_is_one_sentence(authority: RehearsalAuthority, victim: str) -> None:
    (authority.folder / victim).write_text("")
    with pytest.raises(RehearsalError, match=r"cannot be read .*run `rehearse down`"):
        RehearsalAuthority.open(authority.folder, current_time())


def test_a_key_of_another_authority_is_noticed(authority: RehearsalAuthority, tmp_path: Path) -> None:
    other = RehearsalAuthority.open(tmp_path / "other", current_time())
    (authority.folder / "ca.key").write_bytes((other.folder / "ca.key").read_bytes())
    with pytest.raises(RehearsalError, match=r"ca\.key does not belong to ca\.crt"):
        RehearsalAuthority.open(authority.folder, current_time())


def test_an_authority_whose_time_is_over(tmp_path: Path) -> None:
    RehearsalAuthority.open(tmp_path, datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(RehearsalError, match="ended on 2029-12-29"):
        RehearsalAuthority.open(tmp_path, datetime(2031, 1, 1, tzinfo=UTC))


def test_keys_and_tokens_are_for_their_owner_only(authority: RehearsalAuthority, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        pair = authority.server("server", HOSTS, current_time())
        token = admin_token(tmp_path / "deep" / "token")
        key = service_account_key(tmp_path)
    finally:
        os.umask(before)
    assert [mode(path) for path in (pair.key, tmp_path / "deep" / "token", key)] == [0o600] * 3
    assert len(base64.urlsafe_b64decode(token + "=")) == 32
    assert admin_token(tmp_path / "deep" / "token") == token
    assert service_account_key(tmp_path).read_bytes() == key.read_bytes()
