"""`simulate --max-wait`: waiting times that a pipeline fails on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from kueue_fleet.cli import console

if TYPE_CHECKING:
    from kueue_fleet.cli.waiting_budget import Budget
    from kueue_fleet.simulation.result import Result

OVER_BUDGET: Final = 3
"""Exit code of a simulation in which jobs wait longer than they may; 1 is for input that is wrong."""


def parse(texts: Sequence[str]) -> list[Budget]:
    """What --max-wait says, each. Raises CommandError."""
    from kueue_fleet.cli.waiting_budget import BudgetError, parse_budget

    try:
        return [parse_budget(text) for text in texts]
    except BudgetError as wrong:
        raise console.CommandError(f"--max-wait {wrong}", exit_code=2) from None


def check_queues(budgets: Sequence[Budget], queues: Collection[str]) -> None:
    """Raise CommandError for a budget of a queue to which no job comes."""
    from kueue_fleet.cli.waiting_budget import without_jobs

    for budget in budgets:
        if budget.queue not in queues:
            raise console.CommandError(f"--max-wait {without_jobs(budget, queues)}", exit_code=2)


def enforce(budgets: Sequence[Budget], result: Result, *, quiet: bool) -> None:
    """Print how RESULT compares with each budget, unless QUIET. Raises CommandError when one is not kept."""
    from kueue_fleet.cli.waiting_budget import BudgetError, check_budgets

    if not budgets:
        return
    try:
        findings = check_budgets(budgets, result)
    except BudgetError as wrong:
        raise console.CommandError(f"--max-wait {wrong}") from None
    if not quiet:
        console.line()
        for finding in findings:
            if finding.kept:
                console.line(str(finding))
    broken = [str(finding) for finding in findings if not finding.kept]
    if broken:
        raise console.CommandError("jobs wait longer than they may:", OVER_BUDGET, broken)
