"""Versions such as `0.19.2`, `0.20.0-rc.1` or `0.19.2+ours`: compared, and cut to their minor release."""

from __future__ import annotations

import re


def numbers_of(version: str) -> tuple[int, ...]:
    """The numbers by which versions compare; what follows a hyphen or a plus is ignored."""
    return tuple(int(part) for part in re.split("[-+]", version, maxsplit=1)[0].split("."))


def minor_of(version: str) -> str:
    """The minor release: `0.19` of 0.19.2."""
    return ".".join(version.split(".")[:2])
