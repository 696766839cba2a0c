"""Stand-in for `pulumi-analyzer-policy-python`: becomes the policy SDK's own server for the pack."""

from __future__ import annotations

import os
import sys


def main(version: str, arguments: list[str]) -> int:
    """Replaces this process; after the engine's address and the pack come options that `pulumi.policy` cannot read."""
    os.execv(sys.executable, [sys.executable, "-u", "-m", "pulumi.policy", *arguments[:2]])  # noqa: S606 (no shell)
