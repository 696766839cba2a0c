"""How many inotify instances Linux gives a user; tests on control planes need more than its default of 128.

Each cluster takes 9 to 13, see `kueue_rehearsal.machine`. Where Kueue gets none it ends, and starts again after a
delay that grows to five minutes.
"""

from __future__ import annotations

from kueue_rehearsal.machine import INOTIFY_LIMIT, INOTIFY_LIMIT_FILE

ENOUGH = 512
"""For four processes, each with up to eight clusters."""


def raise_limit() -> str:
    """Raises it where that is allowed, until the machine starts again; what to tell of that, empty for nothing."""
    limit = int(INOTIFY_LIMIT_FILE.read_text())
    if limit >= ENOUGH:
        return ""
    try:
        INOTIFY_LIMIT_FILE.write_text(str(ENOUGH))
    except OSError:
        remedy = f"run `sudo sysctl {INOTIFY_LIMIT}={ENOUGH}`, or the tests in one process"
        return f"{INOTIFY_LIMIT} is {limit}, too few for tests on many control planes at once; {remedy}"
    return f"{INOTIFY_LIMIT} was {limit}, and is {ENOUGH} until this machine starts again"
