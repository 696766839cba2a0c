"""How long jobs may wait in a queue, and whether a simulation stays within that.

Deterministic, no I/O; the command prints the findings and sets the exit code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kueue_fleet.kueue_api import suggest
from kueue_fleet.simulation.clock import EndReason
from kueue_fleet.simulation.records import Record
from kueue_fleet.simulation.result import Result

PERCENTILE: Final = 0.95
"""The share of a queue's jobs that must not wait longer than the budget."""


class BudgetError(ValueError):
    """A budget that cannot be read, or that is for a queue without jobs."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The longest wait of a ClusterQueue's jobs, in seconds, from arrival to first admission."""

    queue: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A budget and how the simulation compares with it."""

    budget: Budget
    jobs: int
    """Jobs that count: those of which it is known whether they waited longer."""
    longer: int
    """How many of them waited longer, those that were never admitted among them."""
    never: int
    """How many were not admitted."""
    p95: float
    """What 95 % of them did not exceed, in seconds; infinite if more than 5 % were never admitted."""

    @property
    def kept(self) -> bool:
        """Whether the budget is kept."""
        return self.p95 <= self.budget.seconds

    def __str__(self) -> str:
        wait = "without end" if math.isinf(self.p95) else f"at most {self.p95:.1f} s"
        text = f"clusterQueues[{self.budget.queue}]: of {self.jobs} jobs 95 % waited {wait}"
        if self.kept:
            return f"{text}; the budget is {self.budget.seconds:g} s"
        never = f", {self.never} of them without end" if self.never else ""
        return f"{text}, over the budget of {self.budget.seconds:g} s, which {self.longer} exceeded{never}"


def parse_budget(text: str) -> Budget:
    """`QUEUE=SECONDS`. Raises BudgetError."""
    queue, _, number = text.rpartition("=")
    try:
        seconds = float(number)
    except ValueError:
        seconds = math.nan
    if not queue or not 0 <= seconds < math.inf:
        raise BudgetError(f"{text}: is not QUEUE=SECONDS; write a ClusterQueue and a number, such as gpu=600")
    return Budget(queue, seconds)


def without_jobs(budget: Budget, queues: Iterable[str]) -> str:
    """Why there is nothing to compare the budget with; `queues` are those with jobs."""
    known = sorted(name for name in queues if name)
    fix = suggest.instead(budget.queue, known, "queues with jobs")
    return f"{budget.queue}={budget.seconds:g}: no job comes to this ClusterQueue; {fix}"


def check_budgets(budgets: Sequence[Budget], result: Result) -> list[Finding]:
    """A finding for each budget, in their order. Raises BudgetError for a queue without jobs."""
    queues: dict[str, list[Record]] = {}
    for record in result.records:
        queues.setdefault(record.cluster_queue, []).append(record)
    end = math.inf if result.end.reason in (EndReason.NOTHING_MORE, EndReason.REPEATS) else result.end.at
    findings = []
    for budget in budgets:
        if budget.queue not in queues:
            raise BudgetError(without_jobs(budget, queues))
        findings.append(_finding(budget, queues[budget.queue], end))
    return findings


def _finding(budget: Budget, records: Iterable[Record], end: float) -> Finding:
    waits, never = [], 0
    for record in records:
        if record.first_admitted_at is not None:
            waits.append(record.first_admitted_at - record.arrived_at)
        elif end - record.arrived_at > budget.seconds:
            waits.append(math.inf)
            never += 1
        # Else it came too late in the simulation for anybody to know.
    ordered = sorted(waits)
    p95 = ordered[math.ceil(PERCENTILE * len(ordered)) - 1] if ordered else 0.0
    return Finding(budget, len(ordered), sum(wait > budget.seconds for wait in waits), never, p95)
