"""Input that cannot be simulated."""

from __future__ import annotations

from collections.abc import Iterable


class SimulationError(ValueError):
    """Input with mistakes; `problems` has every one, each as `where: wrong; fix`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(self.problems))
