"""Names for resources that were given none, as Pulumi's own providers make them."""

from __future__ import annotations

import random
from typing import Final

NAME_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Characters of the end of a made-up name."""
RANDOM_CHARACTERS: Final = 8
"""Characters that a made-up name has at its end."""


def generated_name(urn_name: str, random_seed: bytes) -> str:
    """The name for an object that was given none: the resource's name and eight characters.

    The same seed gives the same name, so that a preview shows the name the update will use; an empty seed gives any.
    """
    # Names, not secrets: with a seed they must come out the same.
    chooser = random.Random(random_seed) if random_seed else random.SystemRandom()  # noqa: S311
    return f"{urn_name}-{''.join(chooser.choices(NAME_ALPHABET, k=RANDOM_CHARACTERS))}"
