"""What `plan` may make of a fleet: which numbers and machines may change, within which limits, for how much money."""

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.base import AtLeastOne, Count, RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED, OUT_OF_RANGE, WRONG_ORDER
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.problem import Problem

MOST_LEVELS: Final = 10_000
"""How many levels may be tried."""


class MayChange(RuledModel):
    """Values of the file that `plan` changes together: whole numbers within limits, or texts such as machine types."""

    paths: ListOfText[Text]
    """Where they are, `nodePools[l4].nodeCount`; `PATH*8` is eight times the number, for GPUs of nodes with eight."""
    least: Count | None = None
    """The lowest number to try, in the unit of the file, such as nodes or GPUs."""
    most: Count | None = None
    """The highest number to try, in the unit of the file, such as nodes or GPUs."""
    step: AtLeastOne = 1
    """How much larger each number is than the one before, in the same unit; default 1."""
    values: ListOfText[Text] = ()
    """Texts to try in place of numbers, with that of the file; in any order."""

    def own_problems(self) -> Iterator[Problem]:
        """It says where, and either limits or texts."""
        if not self.paths:
            yield NEEDED.at("paths", "is empty", "write the path of a number of the file")
        yield from self.listed_once("paths", "path")
        yield from self.listed_once("values", "value")
        if self.values:
            for name in ("least", "most"):
                if getattr(self, name) is not None:
                    yield EXCLUDED.at(name, "is set, and values are", "remove one of the two")
        elif self.least is None or self.most is None:
            yield NEEDED.at("", "has no limits", "set least and most, or values")
        elif self.least > self.most:
            yield WRONG_ORDER.at("least", f"{self.least} is more than most, {self.most}", "write the lower number here")
        elif (self.most - self.least) // self.step >= MOST_LEVELS:
            yield OUT_OF_RANGE.at("most", f"gives more than {MOST_LEVELS:,} levels", "write less, or a larger step")

    @property
    def levels(self) -> tuple[str, ...] | range:
        """What is tried."""
        return tuple(self.values) or range(self.least or 0, (self.most or 0) + 1, self.step)


class PlanLimits(SpecModel):
    """What `kueue-fleet plan` may change of this file, and what the fleet may cost then."""

    may_change: ListOf[MayChange] = ()
    """Values that `plan` changes, those of an entry together; `--may-change` replaces the list for one run."""
    budget: AtLeastOne | None = None
    """The price of a month that it may have, in USD; `--budget` replaces it for one run; default: no limit."""
