"""A simulation that is ready to start: its input is read, and nothing has happened yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kueue_admission.kernel.problem import Problem
from kueue_admission.read.goals import Goal
from kueue_admission.simulate.clock import Watch
from kueue_admission.simulate.result import Result


@dataclass(frozen=True, slots=True)
class Prepared:
    """A simulation before its start. `queues` are the ClusterQueues to which jobs come; `start` is called by `run`.

    `fleet` is its name, and `goals` are those that it has, where the input is a fleet; `warnings` are of its jobs, and
    `left_out` is what is wrong with those that are not in it.
    """

    queues: frozenset[str]
    start: Callable[[Watch | None], Result]
    fleet: str = ""
    goals: Sequence[Goal] = ()
    warnings: Sequence[Problem] = ()
    left_out: Sequence[Problem] = ()

    def run(self, watch: Watch | None = None) -> Result:
        """What happens, up to the end that was asked for, or until `watch` ends it. May be called once."""
        return self.start(watch)
