"""What the core raises: input that is wrong, a feature it does not model, and broken invariants of its own."""

from __future__ import annotations


class AdmissionError(Exception):
    """Anything the admission core raises on purpose."""


class ObjectError(AdmissionError):
    """Objects that cannot be read. `problems` has every one, each as `path: wrong; fix`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class NotModelledError(AdmissionError):
    """A feature of Kueue that the core does not model, so that it refuses to guess what Kueue would decide.

    `feature` is Kueue's name for it, `place` the object and field that ask for it.
    """

    def __init__(self, feature: str, place: str) -> None:
        super().__init__(f"{place}: {feature} is not modelled; remove it, or look at docs/fidelity.md for what is")
        self.feature = feature
        self.place = place


class InvariantError(AdmissionError):
    """The core broke an invariant. Always a bug; the message has what is needed to reproduce it."""
