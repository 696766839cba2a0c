"""What the core raises: input that is wrong, a feature it does not model, and broken invariants of its own."""

from __future__ import annotations

from collections.abc import Iterable

from kueue_admission.kernel.form_rules import NOT_MODELLED
from kueue_admission.kernel.problem import Problem


class AdmissionError(Exception):
    """Anything the admission core raises on purpose."""


class ObjectError(AdmissionError):
    """Objects that cannot be read. `problems` has every one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(map(str, self.problems)))


class NotModelledError(AdmissionError):
    """A feature of Kueue that the core does not model, so that it refuses to guess what Kueue would decide.

    `feature` is Kueue's name for it, `place` the object and field that ask for it.
    """

    def __init__(self, feature: str, place: str) -> None:
        self.problem = NOT_MODELLED.at(
            place, f"{feature} is not modelled", "remove it, or look at docs/fidelity.md for what is"
        )
        super().__init__(str(self.problem))
        self.feature = feature
        self.place = place


class InvariantError(AdmissionError):
    """The core broke an invariant. Always a bug; the message has what is needed to reproduce it."""
