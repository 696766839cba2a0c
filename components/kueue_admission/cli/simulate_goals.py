"""The goals of a simulation: `--max-wait` as one of them, and the exit code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from kueue_admission.cli import console
from kueue_admission.kernel import suggest
from kueue_admission.read.goals import Goal, Standing
from kueue_admission.simulate.distributions import as_seconds

if TYPE_CHECKING:
    from kueue_admission.read.goals import Judged

MISSED: Final = 3
"""Exit code where a goal is missed; 1 is for input that is wrong."""
_STYLES: Final = {Standing.MISSED: "red", Standing.AT_RISK: "yellow", Standing.NOT_KNOWN: "yellow"}


def parse_goal(text: str) -> Goal:
    """`QUEUE=SECONDS`: what 95 % of the jobs of a ClusterQueue may wait. Raises CommandError."""
    queue, _, number = text.rpartition("=")
    seconds = as_seconds(number)
    if not queue or seconds is None:
        fix = "write a ClusterQueue and a number, such as gpu=600"
        raise console.mistyped(f"--max-wait {text}: is not QUEUE=SECONDS; {fix}")
    return Goal(f"clusterQueues[{queue}]", "wait", seconds, queue)


def check_queues(goals: Sequence[Goal], queues: Collection[str]) -> None:
    """Raise CommandError for a --max-wait of a queue that is not among those with jobs."""
    for goal in goals:
        if goal.queue not in queues:
            fix = suggest.instead(goal.queue, sorted(name for name in queues if name), "queues with jobs")
            option_text = f"--max-wait {goal.queue}={goal.limit:g}"
            raise console.mistyped(f"{option_text}: no job comes to this ClusterQueue; {fix}")


def line(verdict: Judged) -> console.Styled:
    """A goal and how it is with it, in colour where it is not met."""
    return styled(f"goal, {verdict.standing}: {verdict}", verdict.standing)


def styled(text: str, standing: Standing) -> console.Styled:
    """A line about a goal."""
    return console.Styled(text, _STYLES.get(standing, ""))


def enforce(verdicts: Sequence[Judged], *, quiet: bool) -> None:
    """Print how it is with each goal, unless QUIET. Raises CommandError when one is missed."""
    other_goals = [goal for goal in verdicts if goal.standing is not Standing.MISSED]
    if other_goals and not quiet:
        console.line()
        for goal in other_goals:
            console.line(line(goal))
    if missed_goals := [str(goal) for goal in verdicts if goal.standing is Standing.MISSED]:
        raise console.CommandError("goals are missed:", MISSED, missed_goals)
