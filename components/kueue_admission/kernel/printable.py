"""Text from files and clusters as it is shown: a terminal must not run escape sequences in them."""

from __future__ import annotations


def printable(text: str) -> str:
    """TEXT on one line, every character that does not print written as its escape, such as `\\x1b` or `\\u202e`.

    Those are control characters, line breaks among them, marks that change the direction of text, characters without
    width, and blanks other than the space. A second pass changes nothing.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
