"""Codes of the messages of others that people meet, with what causes each and what to do: `known_messages.csv`.

The command line prints the code behind a message, and docs/troubleshooting.md has it beside cause and remedy. Our own
problems are not looked for: each carries its `Rule`.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """One row of the table. Texts are Markdown, with links as seen from docs/."""

    code: str
    """`KF` and three digits; the first digit stands for the section."""
    pattern: str
    """What is searched in a text, as a regular expression. Empty: what is seen is not a message."""
    seen: str
    """The message, or what else is seen."""
    why: str
    """The cause."""
    remedy: str
    """What to do."""


@cache
def known_messages() -> tuple[KnownMessage, ...]:
    """All of them, in the order of the page."""
    text = (get_data(__package__, "known_messages.csv") or b"").decode()
    return tuple(KnownMessage(**row) for row in csv.DictReader(line for line in text.splitlines() if line[:1] != "#"))


def code_of(text: str) -> str | None:
    """The code of the first known message that is found in `text`; None for other texts."""
    return next((each.code for each in known_messages() if each.pattern and re.search(each.pattern, text)), None)


def with_code(text: str) -> str:
    """The text, and behind it the code of its message, if it has one: `... [KF105]`."""
    code = code_of(text)
    return text if code is None else f"{text} [{code}]"
