"""A rehearsal's certificate authority, the certificates it signs, and its secrets.

Everything is written into one folder, keys and tokens with mode 0600, each file whole or not at all. A rehearsal
that is started again finds what it made before; certificates that end soon are signed again, the authority stays.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.private_files import write_private

# Clocks of this machine only, so an hour is for suspended machines.
_BACKDATE = timedelta(hours=1)
_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 365
_RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class RehearsalAuthority:
    """Signs the certificates of one rehearsal."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def open(cls, folder: Path, now: datetime) -> RehearsalAuthority:
        """The authority in `folder`, made when there is none.

        Raises RehearsalError when its files are damaged or its time is over.
        """
        pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        if not pair.certificate.exists() and not pair.key.exists():
            cls._create(pair, now)
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
            key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
        except (OSError, ValueError) as error:
            raise RehearsalError(
                f"{folder}: the rehearsal's certificate authority cannot be read ({error}); "
                "run `rehearse down` and start it again"
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise RehearsalError(f"{folder}: ca.key does not belong to ca.crt; run `rehearse down` and start it again")
        if certificate.not_valid_after_utc <= now:
            raise RehearsalError(
                f"{folder}: the rehearsal's certificate authority ended on {certificate.not_valid_after_utc:%Y-%m-%d}; "
                "run `rehearse down` and start it again"
            )
        return cls(folder, certificate, key)

    @staticmethod
    def _create(pair: KeyPair, now: datetime) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kueue-fleet rehearsal")])
        certificate = (
            _builder(name, name, key, now, _AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(pair.key, key_pem(key))
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    @property
    def certificate_file(self) -> Path:
        """PEM of the authority's own certificate."""
        return self.folder / "ca.crt"

    def server(self, name: str, hosts: Sequence[str], now: datetime) -> KeyPair:
        """A server's certificate for these DNS names and IP addresses; usable as a client's too, as etcd needs."""
        return self._issue(
            name, name, (), hosts, (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH), now
        )

    def client(self, name: str, user: str, groups: Sequence[str], now: datetime) -> KeyPair:
        """A client's certificate: `user` is its common name, `groups` its organizations."""
        return self._issue(name, user, groups, (), (ExtendedKeyUsageOID.CLIENT_AUTH,), now)

    def _issue(
        self,
        name: str,
        common_name: str,
        organizations: Sequence[str],
        hosts: Sequence[str],
        usages: Sequence[x509.ObjectIdentifier],
        now: datetime,
    ) -> KeyPair:
        pair = KeyPair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        alternatives = [_general_name(host) for host in hosts]
        if self._still_good(pair, alternatives, now):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        builder = (
            _builder(subject, self.certificate.subject, key, now, _LEAF_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        write_private(pair.key, key_pem(key))
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return pair

    def _still_good(self, pair: KeyPair, alternatives: Sequence[x509.GeneralName], now: datetime) -> bool:
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
            key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
            certificate.verify_directly_issued_by(self.certificate)
        except (OSError, ValueError, TypeError, InvalidSignature):
            return False
        try:
            names = list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound:
            names = []
        return (
            names == list(alternatives)
            and key.public_key() == certificate.public_key()
            and certificate.not_valid_after_utc - now > _RENEW_BEFORE
        )


def service_account_key(folder: Path) -> Path:
    """The key that signs service-account tokens, made when there is none."""
    path = folder / "service-accounts.key"
    if not path.exists():
        write_private(path, key_pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def admin_token(path: Path) -> str:
    """The rehearsal's admin token (256 random bits), made when there is none."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32).encode())
    return path.read_text().strip()


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM (SEC 1, which kube-apiserver reads), not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def current_time() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 -- the rehearsal has a clock: it signs with the time of this machine


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + timedelta(days=days))
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
