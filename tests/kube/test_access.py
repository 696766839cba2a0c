"""Credentials: what a token says of its lifetime."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kueue_fleet.kube.access import Lifetime, token_lifetime


def token(claims: Any) -> str:
    """A JSON web token with these claims; who signed it does not matter here."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize("audience", ["a", "ab", "abc"])
def test_a_bound_token_says_when_it_was_issued_and_when_it_ends(audience: str) -> None:
    """Whatever the padding of its text."""
    assert token_lifetime(token({"aud": audience, "iat": 1000, "exp": 4600})) == Lifetime(1000.0, 4600.0)


@pytest.mark.parametrize(
    "text", ["", "opaque", "a.b.c", "a.!.c", token([]), token({"iat": 1}), token({"iat": "x", "exp": 2})]
)
def test_any_other_token_never_ends(text: str) -> None:
    """A legacy token of a service account is one without `exp`."""
    assert token_lifetime(text) is None
