"""Nearest names, for messages about names that do not exist.

In: what was written and what exists. Out: the instruction half of a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LISTED = 8
"""How many names a message lists at most; a longer list is not read."""


def nearest(written: str, known: Iterable[str]) -> str | None:
    """The known name most like `written`, ignoring case, hyphens and underscores; None if none is near."""
    plain = {_plain(name): name for name in known}
    close = get_close_matches(_plain(written), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def instead(written: str, known: Iterable[str], what: str) -> str:
    """What to write instead: the nearest known name, else the list of `what` (a plural) that exist."""
    names = list(dict.fromkeys(known))
    near = nearest(written, names)
    if near:
        return f"did you mean {near}?"
    if not names:
        return f"there are no {what} yet: add one"
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return f"use one of the {what}: {listed}"


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
