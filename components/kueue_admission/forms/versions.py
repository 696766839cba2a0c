"""Versions such as `0.19.2` or `0.20.0-rc.1`, without a leading v: compared, and cut to their minor release."""

from __future__ import annotations


def numbers_of(version: str) -> tuple[int, ...]:
    """The numbers by which versions compare; what follows a hyphen is ignored."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def minor_of(version: str) -> str:
    """The minor release: `0.19` of 0.19.2."""
    return ".".join(version.split(".")[:2])
