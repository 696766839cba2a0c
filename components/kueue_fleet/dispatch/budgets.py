"""Teams that have used up their budgets: what their jobs may still have, and until when.

What is used grows by what runs, and is counted in steps: so it can be kept, and the next leader counts on from what
the cluster still says. A job that was let in is not taken back, and what runs goes on: a budget is exceeded by what the
last jobs use.

Jobs give their quota back while they wait, as others could use it. A check that is Retry does not do that: Kueue keeps
the quota until the time of the retry has come (kueue@v0.19.2 pkg/controller/core/workload_controller.go, Reconcile: it
returns for requeueAt before it evicts). So the check is Rejected, for which Kueue deactivates the Workload at once, and
the controller activates it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import OVER_BUDGET_BY_LABEL, OVER_BUDGET_UNTIL_LABEL
from kueue_fleet.dispatch.fallback import REQUEUE_SECONDS
from kueue_fleet.dispatch.fleet_checks import CheckDecision, format_time
from kueue_fleet.settings.budgets import Period, TeamBudget

OVER_BUDGET_CONDITION: Final = "kueue-fleet.dev/OverBudget"
"""Condition of a Workload that Kueue has deactivated for its team's budget, and that is to be active again later."""


@dataclass(frozen=True, slots=True)
class TeamRun:
    """A job that holds GPUs or TPU chips: how many GPUs, what all cost for an hour, from when to when."""

    team: str
    gpus: int
    usd_per_hour: float
    begin: float
    end: float | None
    """In seconds, as `begin`; None: it still does."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a team used since its week or month began; `since` is later where what was before is not known."""

    begin: float
    since: float
    gpu_hours: float = 0.0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Exemption:
    """The labels of a Workload that may go over its team's budget: who allowed it, and the last day."""

    by: str = ""
    until: str = ""

    def holds(self, now: float) -> bool:
        """Whether both are there, and the day is not over."""
        try:
            end = datetime.combine(date.fromisoformat(self.until) + timedelta(days=1), datetime.min.time(), UTC)
        except (ValueError, OverflowError):
            return False
        return bool(self.by) and now < end.timestamp()


@dataclass(frozen=True, slots=True)
class Over:
    """A team that has used up its budget: in which words, and until when."""

    text: str
    until: float


class Ledger:
    """What teams used; counted up to `until`, None before the first time. `period_of`: begin and end of a period."""

    def __init__(
        self, budgets: Mapping[str, TeamBudget], period_of: Callable[[float, Period], tuple[float, float]]
    ) -> None:
        self._budgets, self._period_of = budgets, period_of
        self.until: float | None = None
        self.used: dict[str, Used] = {}

    def count(self, runs: Iterable[TeamRun], now: float) -> None:
        """Count what ran since the last time; at the first time, since the week or month began."""
        for team, budget in self._budgets.items():
            begin, _ = self._period_of(now, budget.per)
            if team not in self.used or self.used[team].begin != begin:
                # Of a team that is new, what it used before is in no count.
                is_known = self.until is not None and (team in self.used or self.until <= begin)
                self.used[team] = Used(begin, begin if is_known or self.until is None else self.until)
        for run in runs:
            team_use = self.used[run.team]
            since = max(run.begin, team_use.since if self.until is None else max(self.until, team_use.since))
            hours = max(0.0, min(now if run.end is None else run.end, now) - since) / 3600
            if hours:
                more = replace(team_use, gpu_hours=team_use.gpu_hours + run.gpus * hours)
                self.used[run.team] = replace(more, usd=team_use.usd + run.usd_per_hour * hours)
        self.until = now if self.until is None else max(self.until, now)

    def over(self, team: str, now: float) -> Over | None:
        """Whether the team has used up an amount of its budget, by what is counted; None: it has not."""
        budget, team_use = self._budgets[team], self.used.get(team)
        begin, end = self._period_of(now, budget.per)
        if team_use is None or team_use.begin != begin:
            return None
        for of, amount, limit in (
            ("GPU hours", team_use.gpu_hours, budget.gpu_hours),
            ("USD", team_use.usd, budget.usd),
        ):
            if limit is not None and amount >= limit:
                since = f", counted since {format_time(team_use.since)}" if team_use.since > begin else ""
                return Over(f"Team {team} has used {amount:,.0f} of {limit:,} {of} per {budget.per}{since}", end)
        return None

    def wire(self) -> dict[str, Any]:
        """What is to be kept of it."""
        use_data = {team: [value.begin, value.since, value.gpu_hours, value.usd] for team, value in self.used.items()}
        return {"until": self.until, "used": use_data}

    def read(self, ledger_data: Mapping[str, Any]) -> None:
        """Go on from what was kept. Raises ValueError where it is not what `wire` gave."""
        try:
            team_use = {team: Used(*map(float, value)) for team, value in ledger_data["used"].items()}
            self.until, self.used = (
                float(ledger_data["until"]),
                {team: team_use[team] for team in team_use.keys() & self._budgets},
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a ledger: {error!r}") from None


@dataclass(frozen=True, slots=True)
class BudgetDecision:
    """The state of the check. A job that is rejected is to be active again at `until`. With Retry it is queued again
    at once, and may have the flavors `allowed` then."""

    check: CheckDecision
    until: float | None = None
    allowed: tuple[str, ...] | None = None

    @property
    def again(self) -> float | None:
        """Seconds after which a retry begins."""
        return REQUEUE_SECONDS if self.check.state is CheckState.RETRY else None


def decide_budget(
    over: Over | None,
    exemption: Exemption,
    interruptible: tuple[str, ...],
    allowed_flavors: tuple[str, ...] | None,
    now: float,
) -> BudgetDecision:
    """Whether a job with GPUs or TPUs passes.

    Args:
        over: its team's budget, if that is used up.
        exemption: the job's labels.
        interruptible: the flavors that are left to it; none: it waits.
        allowed: those that it may have so far; None: all.
        now: in the same seconds.
    """
    if over is None:
        return _ready("Within the budget")
    if exemption.holds(now):
        return _ready(f"{over.text}; {exemption.by} allowed it until {exemption.until}")
    if interruptible and allowed_flavors is not None and set(allowed_flavors) <= set(interruptible):
        return _ready(f"{over.text}; it may have interruptible flavors")
    flavors_left = tuple(name for name in interruptible if allowed_flavors is None or name in allowed_flavors)
    if flavors_left:
        text = f"{over.text}; it may have {', '.join(flavors_left)} until {format_time(over.until)}"
        return BudgetDecision(CheckDecision(CheckState.RETRY, text), over.until, flavors_left)
    both_labels = f"{OVER_BUDGET_BY_LABEL} and {OVER_BUDGET_UNTIL_LABEL}"
    wrong = f"; its labels {both_labels} are not a name and a day that is not over" if exemption != Exemption() else ""
    text = f"{over.text}{wrong}; it waits until {format_time(over.until)}, or until somebody allows it by {both_labels}"
    return BudgetDecision(CheckDecision(CheckState.REJECTED, text), over.until)


def _ready(message: str) -> BudgetDecision:
    return BudgetDecision(CheckDecision(CheckState.READY, message))
