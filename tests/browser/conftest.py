"""The browser of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from needed_programs import CHROMIUM, needed


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Containers run tests as root, where Chromium has no sandbox; what it shows is ours.
        started = driver.chromium.launch(executable_path=needed(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()
