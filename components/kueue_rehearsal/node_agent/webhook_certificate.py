"""A serving certificate for a webhook whose program does not make its own on this machine."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_DAYS = 30


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A key, its certificate, and the authority that a client must trust; all PEM."""

    ca: bytes
    certificate: bytes
    key: bytes


def service_certificate(service: str, namespace: str, now: datetime.datetime) -> ServingCertificate:
    """A certificate for `service.namespace.svc`, signed by an authority whose key is thrown away."""
    dns_name = f"{service}.{namespace}.svc"
    begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(days=_VALID_DAYS)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{service}-ca")])
    ca = (
        x509.CertificateBuilder(ca_name, ca_name, ca_key.public_key(), x509.random_serial_number(), begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_name[:64])])
    certificate = (
        x509.CertificateBuilder(ca_name, subject, key.public_key(), x509.random_serial_number(), begin, end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns_name)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return ServingCertificate(
        ca=ca.public_bytes(pem),
        certificate=certificate.public_bytes(pem),
        key=key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def is_usable(certificate: bytes, service: str, namespace: str, now: datetime.datetime) -> bool:
    """Whether the PEM certificate serves `service.namespace.svc` for another day at least."""
    try:
        parsed_certificate = x509.load_pem_x509_certificate(certificate)
        names = parsed_certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    dns_names = names.get_values_for_type(x509.DNSName)
    return (
        f"{service}.{namespace}.svc" in dns_names
        and parsed_certificate.not_valid_after_utc > now + datetime.timedelta(days=1)
    )
