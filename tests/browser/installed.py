"""The browser that the tests drive: one that is installed. Without one the tests fail, and say how to get it."""

from __future__ import annotations

import os
import shutil

VARIABLE = "KUEUE_FLEET_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str:
    """The program. Raises RuntimeError where there is none, with how to get one."""
    named = os.environ.get(VARIABLE)
    found = [shutil.which(name) for name in ([named] if named else NAMES)]
    for path in found:
        if path is not None:
            return path
    missing = f"{VARIABLE}={named} is not a program" if named else f"none of {', '.join(NAMES)} is on PATH"
    raise RuntimeError(
        f"these tests look at the report in a browser, and {missing}; install one "
        f"(Debian: apt-get install chromium; macOS: brew install --cask google-chrome), or set {VARIABLE} to its path"
    )
