"""What the controller of kueue-fleet writes on a Workload about where it may run, and back: how `explain` learns it.

It is written twice, at once: as sentences, in the messages of conditions for people, and as JSON, in the message of a
condition for programs. A status has no annotations, and no code reads the sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.printed import Printed

DISPATCH_CONDITION: Final = "kueue-fleet.dev/Dispatch"
"""Type of the condition on a Workload of the manager. True: clusters are nominated; its time is the first nomination's.
False: none is, with the reason."""
WAITING_CONDITION: Final = "kueue-fleet.dev/Waiting"
"""Condition of a Workload that waits: why, in words, and what comes next."""
NEXT, POSITION, START = "Next", "Position", "Start"
"""Labels of lines of its message, `Next: Wait.`; the first line, without one, says why."""
DATA_CONDITION: Final = "kueue-fleet.dev/Data"
"""Type of the condition that says the same to programs: its message is a `DispatchData`."""

_LINE_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class Filtered:
    """A cluster that is not a candidate."""

    cluster: str
    message: str
    reason: str
    """One word; `kueue_fleet.dispatch.FilterReason` has those that are written today."""
    score: None = None
    """As of a candidate, in the documents of `explain`."""
    price: None = None
    waiting: None = None
    free: None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate. Every part of the score is between 0 and 1, higher is better, and so is the score."""

    cluster: str
    message: str
    score: float
    price: float
    waiting: float
    free: float
    reason: None = field(default=None, kw_only=True)


Verdict = Filtered | Scored
"""What is decided about one cluster."""


@dataclass(frozen=True, slots=True)
class ParsedReport:
    """A decision as it was written."""

    summary: str = ""
    verdicts: tuple[Verdict, ...] = ()
    nominated: tuple[str, ...] = ()
    """The clusters that were nominated, in the order in which they were."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """How often a cluster did not deliver for a workload, and when that happened last."""

    times: Annotated[int, Field(ge=0)]
    last: Annotated[float, Field(ge=0, lt=2**36)]


@dataclass(frozen=True, slots=True)
class DispatchData:
    """What the controller has to remember of a Workload: its decision, and the clusters that did not deliver."""

    report: ParsedReport | None = None
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)


_DATA: Final = TypeAdapter(DispatchData)


def write_data(data: DispatchData) -> str:
    """The message of `DATA_CONDITION`."""
    return _DATA.dump_json(data, exclude_defaults=True).decode()


def read_data(printed_object: Printed) -> DispatchData:
    """What the condition `DATA_CONDITION` of a Workload has; nothing where there is none that can be read."""
    try:
        return _DATA.validate_json(printed_object.message(DATA_CONDITION) or "{}")
    except ValidationError:
        return DispatchData()


def dispatch_report(manifest: Manifest) -> ParsedReport | None:
    """The decision on a Workload; None where there is none that can be read."""
    return read_data(Printed.of(manifest)).report


def describe_report(report: ParsedReport) -> str:
    """The message of `DISPATCH_CONDITION`: a sentence, then a line for each cluster."""
    return "\n".join([report.summary, *map(_describe, report.verdicts)])


def score_text(verdict: Scored) -> str:
    """The score of a cluster, and its parts."""
    parts = f"price {verdict.price:.3f}, waiting {verdict.waiting:.3f}, free {verdict.free:.3f}"
    return f"score {verdict.score:.3f} ({parts})"


def _describe(verdict: Verdict) -> str:
    why = score_text(verdict) if isinstance(verdict, Scored) else verdict.reason
    return f"{verdict.cluster}: {why}: {verdict.message}"


def one_line(text: str) -> str:
    """One line of text, short enough for both forms to fit into the 32768 characters of a condition."""
    printable = (
        text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)
    )
    flat = " ".join(printable.split())
    return flat if len(flat) <= _LINE_CHARACTERS else f"{flat[: _LINE_CHARACTERS - 3]}..."
