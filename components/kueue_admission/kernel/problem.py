"""`Rule`, `Problem`, one finding about a fleet, and `SpecError`, which carries every finding of a file at once.

Models and rules find problems, readers of files add file and line, the command line prints them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ClassVar, Final, Literal, ParamSpec, Self

from kueue_admission.kernel.unknown import NotKnownError

Severity = Literal["error", "warning"]
"""An error forbids the fleet, a warning does not."""


KUEUE_SOURCE: Final = "https://github.com/kubernetes-sigs/kueue/blob/v0.19.2"
"""Where the lines of Kueue's code are that rules name."""
THE_INPUT: Final = "the input itself"
"""Source of a rule that needs no other system: what is given cannot be read, names what is not there, contradicts
itself, or asks for what nothing here does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a problem is about: a constant of `form_rules`, or of a module of `fleet_file.rules`.

    Texts are Markdown, with links as seen from docs/.
    """

    code: str
    """`KF` and three digits; the first digit stands for the section."""
    seen: str = field(compare=False)
    """The message, or a part of it."""
    why: str = field(compare=False)
    """The cause."""
    remedy: str = field(compare=False)
    """What to do."""
    severity: Severity = field(compare=False, default="error")
    """`error` refuses the fleet; `warning` is reported and does not."""
    as_published: Severity | Literal[""] = field(compare=False, default="")
    """The severity where the batch platform is read as it is published, if another."""
    source: str = field(compare=False, default="")
    """The page or the code that the rule comes from, or `THE_INPUT`. Empty: a warning, of which nothing proves more."""

    @property
    def page(self) -> str:
        """The address of the source; empty if it has none."""
        return "" if self.source == THE_INPUT else self.source

    def at(
        self,
        path: str,
        wrong: str,
        fix: str,
        severity: Severity | None = None,
        *,
        source: str = "",
        line: int | None = None,
    ) -> Problem:
        """The problem that the value at `path` breaks the rule; `severity`: where it is not the rule's own."""
        return Problem(self, path, wrong, fix, severity or self.severity, source, line)


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: the rule, where it is broken, what is wrong with the value there, and what to do about it."""

    rule: Rule
    path: str
    """Dotted path in the file's own spelling; list items by name: `clusterQueues[dws].preemption`. Empty: the whole."""
    wrong: str
    """What is wrong, with the offending value."""
    fix: str
    """What to do, as an instruction."""
    severity: Severity
    """`error` refuses the fleet; `warning` is reported and does not."""
    source: str = ""
    """The file it is in, such as `fleet.yaml` or `<stdin>`; empty for data that came from no file."""
    line: int | None = None
    """The line in that file, counted from 1; None where it concerns the whole file."""
    alike: tuple[str, str] = ("", "")
    """`wrong` and `fix` with {cluster} for the names of `clusters`. Empty: it is about no cluster."""
    clusters: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.place, self.path, f"{self.wrong}; {self.fix}")))

    @property
    def coded(self) -> str:
        """The text, and behind it the code of the rule: `... [KF105]`."""
        return f"{self} [{self.rule.code}]"

    @property
    def place(self) -> str:
        """`file:line`, or what is known of it."""
        return f"{self.source}:{self.line}" if self.source and self.line is not None else self.source

    def on(self, *clusters: str) -> Problem:
        """The same problem of these clusters, for which {cluster} stands in its texts."""
        alike, names = self.alike if any(self.alike) else (self.wrong, self.fix), list(clusters)
        name_text = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        wrong, fix = (text.replace("{cluster}", name_text) for text in alike)
        return replace(self, wrong=wrong, fix=fix, alike=alike, clusters=clusters)

    def at(self, base: str) -> Problem:
        """The same problem seen from an enclosing object that lies at `base`."""
        return replace(self, path=join_path(base, self.path))

    def behind(self, where: str) -> Problem:
        """The same problem of what stands at `where`, a file or a `Place` in one."""
        place = where if isinstance(where, Place) else Place(where)
        path, line = ": ".join(filter(None, (place.item, self.path))), place.line_of(self.path)
        return replace(self, path=path, source=place.source, line=line)

    def as_published(self) -> Problem:
        """The same, with the severity that it has where the batch platform is read as it is published."""
        return replace(self, severity=self.rule.as_published or self.severity)


class Place(str):
    """Where something stands: `source`, `source:line`, or `source:line: item`, and the parts of that text."""

    source: str
    line: int | None
    item: str

    def __new__(cls, source: str, line: int | None = None, item: str = "") -> Self:
        """The text is made of the parts."""
        place = super().__new__(cls, ": ".join(filter(None, (source if line is None else f"{source}:{line}", item))))
        place.source, place.line, place.item = source, line, item
        return place

    def line_of(self, path: str) -> int | None:
        """The line of a part of it: of one that is not known, that of the whole."""
        return self.line


class SpecError(ValueError):
    """A fleet, or an object of it, that cannot be used; `problems` holds all of them, in file order.

    In a Pulumi program it is a pulumi.RunError too.
    """

    raised_as: ClassVar[type[SpecError] | None] = None
    """The class that is raised instead in such a program."""

    def __new__(cls, *args: object) -> Self:
        """Raised as what `raised_as` says."""
        raised_type: type[Any] = cls.raised_as or cls
        error: Self = super().__new__(raised_type, *args)
        return error

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        lines = (p.coded if p.severity == "error" else f"warning: {p.coded}" for p in self.problems)
        super().__init__("\n".join(lines))


def join_path(base: str, rest: str) -> str:
    """`base` and `rest` as one path: `a` + `b` is `a.b`, `a` + `[0]` is `a[0]`; an empty side is left out."""
    if not base or not rest:
        return base or rest
    return f"{base}{rest}" if rest.startswith("[") else f"{base}.{rest}"


def errors_of(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Only the problems that refuse the fleet."""
    return tuple(problem for problem in problems if problem.severity == "error")


def item_labels(names: Sequence[str | None]) -> list[str]:
    """How the items of a list are called in a path: by name, or by index where the name is not unique in the list."""
    counts = Counter(names)
    return [name if name and counts[name] == 1 else str(index) for index, name in enumerate(names)]


P = ParamSpec("P")


def as_far_as_read(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems until one depends on a field that could not be read."""
    try:
        yield from problems
    except NotKnownError:
        return


def where_read(check: Callable[P, Iterator[Problem]]) -> Callable[P, Iterator[Problem]]:
    """Decorator of a generator of problems: it ends, and not its caller, at a field that could not be read."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Iterator[Problem]:
        return as_far_as_read(check(*args, **kwargs))

    return checked
