"""What the controller of kueue-fleet writes on a Workload about where it may run, and back: how `explain` learns it.

It is the message of a condition: the first line is a sentence, each further line one cluster. Nothing but this module
knows the form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kueue_admission.forms.manifest import Manifest
from kueue_admission.read.printed import Printed

DISPATCH_CONDITION: Final = "kueue-fleet.dev/Dispatch"
"""Type of the condition on a Workload of the manager. True: clusters are nominated; its time is the first nomination's.
False: none is, with the reason."""

_LINE_CHARACTERS: Final = 500
_SCORED: Final = re.compile(
    r"(?P<cluster>[^\s:]+): score (?P<score>\d\.\d{3}) "
    r"\(price (?P<price>\d\.\d{3}), waiting (?P<waiting>\d\.\d{3}), free (?P<free>\d\.\d{3})\): (?P<message>.*)"
)
_NOMINATED: Final = re.compile(r"Nominated (?P<names>\S+(?:, \S+)*) of \d+ clusters")
_FILTERED: Final = re.compile(r"(?P<cluster>[^\s:]+): (?P<reason>[A-Z][A-Za-z]*): (?P<message>.*)")


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """A cluster's verdict as it was written: a reason, or a score with its parts."""

    cluster: str
    message: str
    reason: str | None = None
    score: float | None = None
    price: float | None = None
    waiting: float | None = None
    free: float | None = None


@dataclass(frozen=True, slots=True)
class ParsedReport:
    """What a message says."""

    summary: str
    verdicts: tuple[ParsedVerdict, ...]
    nominated: tuple[str, ...] = ()
    """The clusters that were nominated, in the order in which they were."""


def render_report(summary: str, verdicts: Iterable[ParsedVerdict]) -> str:
    """The message of a decision; below the 32768 characters that a condition holds, whatever is in it."""
    return "\n".join([_line(summary), *(_describe(verdict) for verdict in verdicts)])


def score_text(verdict: ParsedVerdict) -> str:
    """The score of a cluster that has one, and its parts."""
    parts = f"price {verdict.price:.3f}, waiting {verdict.waiting:.3f}, free {verdict.free:.3f}"
    return f"score {verdict.score:.3f} ({parts})"


def dispatch_report(manifest: Manifest) -> ParsedReport | None:
    """What the condition `kueue-fleet.dev/Dispatch` of a Workload says; None where there is none that can be read."""
    message = Printed.of(manifest).message(DISPATCH_CONDITION)
    return parse_report(message) if message else None


def parse_report(message: str) -> ParsedReport:
    """What `render_report` wrote. Other lines are left out."""
    summary, *lines = message.split("\n")
    named = _NOMINATED.match(summary)
    return ParsedReport(
        summary,
        tuple(found for line in lines if (found := _parse(line)) is not None),
        tuple(named["names"].split(", ")) if named else (),
    )


def _describe(verdict: ParsedVerdict) -> str:
    found = score_text(verdict) if verdict.reason is None else verdict.reason
    return f"{verdict.cluster}: {found}: {_line(verdict.message)}"


def _parse(line: str) -> ParsedVerdict | None:
    scored = _SCORED.fullmatch(line)
    if scored is not None:
        score, price, waiting, free = (float(scored[name]) for name in ("score", "price", "waiting", "free"))
        return ParsedVerdict(scored["cluster"], scored["message"], None, score, price, waiting, free)
    filtered = _FILTERED.fullmatch(line)
    return ParsedVerdict(filtered["cluster"], filtered["message"], filtered["reason"]) if filtered else None


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE_CHARACTERS else f"{flat[: _LINE_CHARACTERS - 3]}..."
