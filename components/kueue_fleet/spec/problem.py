"""What is wrong with a fleet, as data.

In: nothing. Out: `Problem`, one finding with its path, and `SpecError`, the exception that carries every finding of a
file at once. Finding problems is the job of the models (`wire`, `entries`) and of `check`; printing them is the job of
whoever catches the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["error", "warning"]
"""An error forbids the fleet, a warning does not."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where it is, what is wrong with the value there, and what to do about it."""

    path: str
    """Dotted path in the file's own spelling; list items by name: `clusterQueues[dws].preemption`. Empty: the whole."""
    wrong: str
    """What is wrong, with the offending value."""
    fix: str
    """What to do, as an instruction."""
    severity: Severity = "error"
    """`error` refuses the fleet; `warning` is reported and does not."""

    def __str__(self) -> str:
        text = f"{self.wrong}; {self.fix}"
        return f"{self.path}: {text}" if self.path else text

    def at(self, base: str) -> Problem:
        """The same problem seen from an enclosing object that lies at `base`."""
        return replace(self, path=join_path(base, self.path))


class SpecError(ValueError):
    """A fleet, or an object of it, that cannot be used; `problems` holds all of them, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        lines = (str(p) if p.severity == "error" else f"warning: {p}" for p in self.problems)
        super().__init__("\n".join(lines))


def join_path(base: str, rest: str) -> str:
    """`base` and `rest` as one path: `a` + `b` is `a.b`, `a` + `[0]` is `a[0]`; an empty side is left out."""
    if not base or not rest:
        return base or rest
    return f"{base}{rest}" if rest.startswith("[") else f"{base}.{rest}"


def errors_of(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Only the problems that refuse the fleet."""
    return tuple(problem for problem in problems if problem.severity == "error")


def syntax_problems(path: str, value: str, check: Callable[[str], str | None]) -> Iterator[Problem]:
    """The problem of a value at `path` that a function of `syntax` refuses, if it does."""
    reason = check(value)
    if reason is not None:
        wrong, _, fix = reason.partition("; ")
        yield Problem(path, f'"{value}" {wrong}', fix)


def item_label(name: str, index: int) -> str:
    """How an item of a list is called in a path: by its name, or by its index where it has none or a very long one."""
    return name if 0 < len(name) <= 253 else str(index)
