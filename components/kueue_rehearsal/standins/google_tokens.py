"""Access tokens of Google accounts in a rehearsal: short-lived, and good for its own API servers only.

Standard library only, as the stand-in of Google's credential plugin makes them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

TOKEN_SECONDS = 600
"""How long a token lives; Google's live for an hour."""
_PREFIX = "ya29.rehearsal."


def make_token(key: str, address: str, expires: int) -> str:
    """A token of the account with that address, which cannot be made without `key`."""
    body = base64.urlsafe_b64encode(json.dumps({"email": address, "exp": expires}).encode()).decode()
    return f"{_PREFIX}{body}.{_mark(key, body)}"


def token_account(key: str, token: str, now: float) -> str | None:
    """The address of the account that a token is of; None for a token that is over, or was not made with `key`."""
    body, _, mark = token.removeprefix(_PREFIX).partition(".")
    if not token.startswith(_PREFIX) or not hmac.compare_digest(mark.encode(), _mark(key, body).encode()):
        return None
    try:
        token_data = json.loads(base64.urlsafe_b64decode(body))
    except (ValueError, binascii.Error):
        return None
    return str(token_data["email"]) if now < token_data["exp"] else None


def _mark(key: str, body: str) -> str:
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()
