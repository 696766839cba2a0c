"""Programs that some tests use and `make test` installs only where it may: as root on Debian.

A fixture asks for one by `needed`. Where the program is missing its tests do not run, and the last lines say which did
not and how to get the program; in CI, where all tests run, they fail.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class NeededProgram:
    """A program under any of its names; `variable` may name another one."""

    names: tuple[str, ...]
    purpose: str
    remedy: str
    variable: str

    def path(self) -> str:
        """Where it is. Raises RuntimeError with how to get it."""
        named = os.environ.get(self.variable)
        result = [shutil.which(name) for name in ([named] if named else self.names)]
        for path in result:
            if path is not None:
                return path
        names = ", ".join(self.names)
        missing = f"{self.variable}={named} is not a program" if named else f"none of {names} is on PATH"
        remedy = f"install one ({self.remedy}), or set {self.variable} to its path"
        raise RuntimeError(f"these tests {self.purpose}, and {missing}; {remedy}")


CHROMIUM = NeededProgram(
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "look at the report in a browser",
    "Debian: apt-get install chromium; macOS: brew install --cask google-chrome",
    "KUEUE_FLEET_BROWSER",
)
BUILDAH = NeededProgram(
    ("buildah",), "build the controller's image", "Debian: apt-get install buildah", "KUEUE_FLEET_BUILDAH"
)
KUBECTL = NeededProgram(
    ("kubectl",), "ask as users do", "Debian: apt-get install kubernetes-client", "KUEUE_FLEET_KUBECTL"
)


def needed(program: NeededProgram) -> str:
    """Where the program is. Without it the test is left out, and in CI it fails with how to get it."""
    try:
        return program.path()
    except RuntimeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
