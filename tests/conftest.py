from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell starts background jobs, such as a CI's, with Ctrl-C ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
