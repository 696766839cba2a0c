"""`simulate --max-wait`: how long jobs may wait in a queue, and whether a simulation stays within that."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kueue_admission.cli import console
from kueue_admission.forms import suggest
from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.distributions import as_seconds
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result

PERCENTILE: Final = 0.95
"""The share of a queue's jobs that must not wait longer than the budget."""
OVER_BUDGET: Final = 3
"""Exit code of a simulation in which jobs wait longer than they may; 1 is for input that is wrong."""


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
    """Jobs that count: it is known whether they waited longer."""
    longer: int
    """How many of them waited longer, those that were never admitted among them."""
    never: int
    """How many were not admitted."""
    not_known: int
    """Of how many of those it is not known whether they are."""
    p95: float
    """What 95 % of them did not exceed, in seconds; infinite if more than 5 % were never admitted."""

    @property
    def kept(self) -> bool:
        """Whether the budget is kept."""
        return self.p95 <= self.budget.seconds

    def __str__(self) -> str:
        longer, never = self.longer - self.not_known, self.never - self.not_known
        endless = "without end" if never else "for a time that is not known"
        text = f"clusterQueues[{self.budget.queue}]: of {self.jobs} jobs 95 % waited "
        text += endless if math.isinf(self.p95) else f"at most {self.p95:.1f} s"
        if self.kept or not longer:
            text += f"; the budget is {self.budget.seconds:g} s"
        else:
            text += f", over the budget of {self.budget.seconds:g} s, which {longer} exceeded"
        if never and not self.kept:
            text += f", {never} of them without end"
        return f"{text}; of {self.not_known} it is not known whether they start" if self.not_known else text


def parse_budget(text: str) -> Budget:
    """`QUEUE=SECONDS`. Raises CommandError."""
    queue, _, number = text.rpartition("=")
    seconds = as_seconds(number)
    if not queue or seconds is None:
        fix = "write a ClusterQueue and a number, such as gpu=600"
        raise console.mistyped(f"--max-wait {text}: is not QUEUE=SECONDS; {fix}")
    return Budget(queue, seconds)


def check_queues(budgets: Sequence[Budget], queues: Collection[str]) -> None:
    """Raise CommandError for a budget of a queue that is not among those with jobs."""
    for budget in budgets:
        if budget.queue not in queues:
            raise console.mistyped(_without_jobs(budget, queues))


def _without_jobs(budget: Budget, queues: Iterable[str]) -> str:
    fix = suggest.instead(budget.queue, sorted(name for name in queues if name), "queues with jobs")
    return f"--max-wait {budget.queue}={budget.seconds:g}: no job comes to this ClusterQueue; {fix}"


def check_budgets(budgets: Sequence[Budget], result: Result) -> list[Finding]:
    """A finding for each budget, in their order. Raises CommandError for a queue without jobs."""
    queues: dict[str, list[Record]] = {}
    for record in result.records:
        queues.setdefault(record.cluster_queue, []).append(record)
    end = math.inf if result.end.reason in (EndReason.NOTHING_MORE, EndReason.REPEATS) else result.end.at
    findings = []
    for budget in budgets:
        if budget.queue not in queues:
            raise console.CommandError(_without_jobs(budget, queues))
        findings.append(_finding(budget, queues[budget.queue], end))
    return findings


def _finding(budget: Budget, records: Iterable[Record], end: float) -> Finding:
    waits, never, not_known = [], 0, 0
    for record in records:
        if record.first_admitted_at is not None:
            waits.append(record.first_admitted_at - record.arrived_at)
        elif end - record.arrived_at > budget.seconds:
            waits.append(math.inf)
            never += 1
            not_known += bool(record.not_known)
        # Else it came too late in the simulation for anybody to know.
    ordered = sorted(waits)
    p95 = ordered[math.ceil(PERCENTILE * len(ordered)) - 1] if ordered else 0.0
    return Finding(budget, len(ordered), sum(wait > budget.seconds for wait in waits), never, not_known, p95)


def enforce(budgets: Sequence[Budget], result: Result, *, quiet: bool) -> None:
    """Print how RESULT compares with each budget, unless QUIET. Raises CommandError when one is not kept."""
    if not budgets:
        return
    findings = check_budgets(budgets, result)
    if not quiet:
        console.line()
        for finding in findings:
            if finding.kept:
                console.line(str(finding))
    broken = [str(finding) for finding in findings if not finding.kept]
    if broken:
        raise console.CommandError("jobs wait longer than they may:", OVER_BUDGET, broken)
