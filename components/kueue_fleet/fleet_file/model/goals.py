"""What a queue or a team is to get: waits, a share, GPU hours. `kueue_admission.read.goals` judges them."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from kueue_admission.kernel.base import AtLeastOne, DnsSubdomain, RuledModel
from kueue_admission.kernel.duration import Duration, OptionalDurationField
from kueue_admission.kernel.form_rules import NEEDED, OUT_OF_RANGE, WRONG_ORDER
from kueue_admission.kernel.given import NOT_GIVEN
from kueue_admission.kernel.problem import Problem

_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class WaitGoal(RuledModel):
    """How long jobs may wait from arrival to first admission."""

    p50: OptionalDurationField = NOT_GIVEN
    """Longest wait of half of the jobs."""
    p90: OptionalDurationField = NOT_GIVEN
    """Of 90 %."""
    p95: OptionalDurationField = NOT_GIVEN
    """Of 95 %."""
    p99: OptionalDurationField = NOT_GIVEN
    """Of 99 %."""
    priority_class: DnsSubdomain | None = None
    """Only jobs with the priority of this class; default: all."""

    @property
    def quantiles(self) -> dict[float, Duration]:
        """What is given, by the part of 1 that it is about."""
        lengths = {share: getattr(self, name) for name, share in _QUANTILES.items()}
        return {share: length for share, length in lengths.items() if length is not None}

    def own_problems(self) -> Iterator[Problem]:
        """It says a time; more of the jobs do not wait shorter."""
        lengths = {name: getattr(self, name) for name in _QUANTILES if getattr(self, name) is not None}
        if not lengths:
            yield NEEDED.at("", "has no time", "set p50, p90, p95 or p99")
        for name, length in lengths.items():
            if length.nanoseconds < 10**9:
                yield OUT_OF_RANGE.at(name, f"{length} is less than a second", "write 1s or longer")
        for (low, less), (high, more) in pairwise(lengths.items()):
            if less.nanoseconds > more.nanoseconds:
                wrong = f"{less} is more than {high}, {more}, which holds for these jobs too"
                yield WRONG_ORDER.at(low, wrong, f"write {more} or less, or a longer {high}")


class Goals(RuledModel):
    """What the jobs of a queue or a team are to get. `simulate`, `replay`, `plan` and `status` judge by it."""

    wait: WaitGoal | None = None
    """Longest time from arrival to first admission."""
    share: Annotated[AtLeastOne, Field(le=100)] | None = None
    """Percent of the GPU hours in use, at least, counted while some of its jobs wait for their first admission."""
    gpu_hours_per_week: AtLeastOne | None = None
    """Least GPU hours in a week, in each week in which its jobs request as many."""

    def own_problems(self) -> Iterator[Problem]:
        """It says something."""
        if self.wait is None and self.share is None and self.gpu_hours_per_week is None:
            yield NEEDED.at("", "has no goal", "set wait, share or gpuHoursPerWeek, or remove it")


class WaitLimit(NamedTuple):
    """What a part of a queue's jobs, or of those of a priority class, wait at most."""

    queue: str
    priority_class: str
    quantile: float
    seconds: float


def wait_limits(goals: Mapping[str, Goals]) -> list[WaitLimit]:
    """Of the goals of queues, by the queue."""
    return [
        WaitLimit(queue, of_it.wait.priority_class or "", quantile, length.seconds)
        for queue, of_it in goals.items()
        if of_it.wait is not None
        for quantile, length in of_it.wait.quantiles.items()
    ]
