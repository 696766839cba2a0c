from __future__ import annotations

import datetime

from cryptography import x509

from kueue_rehearsal.node_agent.webhook_certificate import is_usable, service_certificate

NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)


def test_the_certificate_serves_its_service_and_is_signed_by_its_authority() -> None:
    result = service_certificate("hook", "ns", NOW)
    leaf = x509.load_pem_x509_certificate(result.certificate)
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(result.ca))
    assert is_usable(result.certificate, "hook", "ns", NOW)
    assert not is_usable(result.certificate, "hook", "other", NOW)


def test_a_certificate_about_to_expire_or_no_certificate_is_made_anew() -> None:
    result = service_certificate("hook", "ns", NOW)
    assert not is_usable(result.certificate, "hook", "ns", NOW + datetime.timedelta(days=29, hours=1))
    assert not is_usable(b"", "hook", "ns", NOW)
