"""Names that are made of others, and have to fit: shortened, with a digest so that they stay apart."""

from __future__ import annotations

import hashlib
from typing import Final

_DIGEST_LENGTH: Final = 6


def with_digest(wanted: str, distinct: str, longest: int) -> str:
    """The beginning of `wanted` and a digest of `distinct`: `longest` characters at most."""
    digest = hashlib.sha256(distinct.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{wanted[: longest - _DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
