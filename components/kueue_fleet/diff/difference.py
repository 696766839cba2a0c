"""One difference between two fleets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

DRAIN: Final = "drain it first: docs/tasks/drain-a-worker.md"
"""What to do before a worker loses queues."""
Area = Literal["consequences", "cost", "clusters", "capacity", "quota", "settings"]
"""Under which heading a difference is printed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One change."""

    area: Area
    """consequences (what applying the change does to what runs); cost; clusters; capacity (node pools); quota; settings
    (all the rest)."""
    path: str
    """Where it is in the file, as in error messages."""
    text: str
    """What changes, for people."""
    whole: bool = False
    """Whether it says all there is to say about the path."""

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def consequence(path: str, text: str, *, whole: bool = False) -> Difference:
    """What applying a change does to what runs."""
    return Difference("consequences", path, text, whole)
