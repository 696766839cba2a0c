"""Input that cannot be simulated."""

from __future__ import annotations

from collections.abc import Iterable

from kueue_admission.kernel.problem import Problem


class SimulationError(ValueError):
    """Input with mistakes; `problems` has every one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(map(str, self.problems)))
