"""Codes of the messages of others that people meet, with what causes each and what to do: `known_messages.csv`.

The command line prints the code behind a message, and docs/troubleshooting.md has it beside cause and remedy. Our own
problems are not looked for: each carries its `Rule`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from kueue_admission.kernel.problem import Rule
from kueue_admission.kernel.tables import read_table


@dataclass(frozen=True, slots=True)
class KnownMessage(Rule):
    """One row of the table: a rule of others."""

    pattern: str = field(compare=False, default="")
    """What is searched in their texts, as a regular expression. Empty: what is seen is not a message."""


@cache
def known_messages() -> tuple[KnownMessage, ...]:
    """All of them, in the order of the page."""
    return tuple(KnownMessage(**row) for row in read_table(__package__, "known_messages.csv"))


def known_message(code: str) -> KnownMessage:
    """The message of this code, for a problem that others would report in its words."""
    return next(message for message in known_messages() if message.code == code)


def code_of(text: str) -> str | None:
    """The code of the first known message that is found in `text`; None for other texts."""
    return next(
        (message.code for message in known_messages() if message.pattern and re.search(message.pattern, text)), None
    )


def with_code(text: str, quoted: str) -> str:
    """The text, and behind it the code of what others `quoted` in it, if that has one: `... [KF105]`."""
    code = code_of(quoted)
    return text if code is None else f"{text} [{code}]"
