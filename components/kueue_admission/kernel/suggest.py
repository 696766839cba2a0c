"""Nearest names, for messages about names that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from kueue_admission.kernel.form_rules import MISSPELT
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.syntax import strange_character

LISTED: Final = 8
"""How many names a message lists at most; a longer list is not read."""
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


def nearest(text: str, known_names: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name most like `text`, ignoring case, hyphens and underscores; None if none is near.

    Names that are alike anyhow, such as those of one domain, need a `likeness` nearer to 1.

    A single word is near the one name that has it: `min` is near totalMinNodeCount.
    """
    names = {plain(name): name for name in known_names}
    close = get_close_matches(plain(text), names, n=1, cutoff=likeness)
    if close:
        return names[close[0]]
    having = [name for name in names.values() if plain(text) in map(plain, _WORD.findall(name))]
    return having[0] if len(having) == 1 else None


def instead(text: str, known_names: Iterable[str], what: str) -> str:
    """What to write instead: the nearest known name, else the list of `what` (a plural) that exist."""
    names = list(dict.fromkeys(known_names))
    near = nearest(text, names)
    if near:
        strange = strange_character(text)
        return f"did you mean {near}{strange and f', without the character {strange}'}?"
    if not names:
        return f"there are no {what} yet: add one"
    name_text = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    return f"use one of the {what}: {name_text}"


def misspelt(path: str, text: str, known_names: Iterable[str], wrong: str, likeness: float = 0.6) -> Iterator[Problem]:
    """The warning about a name that is not known but near one that is; other names are possible, and say nothing."""
    names = list(known_names)
    near = None if text in names else nearest(text, names, likeness)
    if near is not None:
        yield MISSPELT.at(path, f"{text} {wrong}", f"did you mean {near}?")


def either(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def plain(name: str) -> str:
    """The name without what people write differently: case, hyphens, underscores."""
    return name.replace("-", "").replace("_", "").lower()


def with_article(name: str) -> str:
    """A, or an, NAME; the M of MPI is spoken as a letter."""
    return f"{'an' if name[:1] in 'AEIOU' or name.startswith('MPI') else 'a'} {name}"
