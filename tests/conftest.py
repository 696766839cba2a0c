from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A busy machine is slow, which says nothing about the code. A failure prints how to get it again.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A shell starts background jobs, such as a CI's, with Ctrl-C ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
