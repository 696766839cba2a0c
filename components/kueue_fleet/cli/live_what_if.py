"""What another quota would change on a cluster of a live fleet: who gains, and who loses. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kueue_admission.cli import console
from kueue_admission.cli.simulate_tables import flavors_of
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.printed import Printed
from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.raw import prepare_objects, read_raw
from kueue_admission.simulate.records import State
from kueue_admission.simulate.what_if import Change, apply_to_documents, differences, parse_change
from kueue_fleet.cli.status_parts import span
from kueue_fleet.status.accelerators import quotas_in

_LIMITS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_MOST: Final = 50
"""Jobs that are named under one heading."""
_STATES: Final = tuple(State)


def what_if(cluster: str, manifests: Sequence[Manifest], changes: Mapping[str, str]) -> str:
    """The jobs of `cluster`, of which these objects were listed, that gain and lose by another amount of a quota.

    `changes` has queue, flavor, resource, limit, and amount; without amount it has none. Raises CommandError for a
    quota that is not there, and SimulationError with what Kueue would not take.
    """
    change, now = _change(manifests, changes)
    documents = [Document(cluster, manifest) for manifest in manifests]
    raws = [
        read_raw(documents_of_case, changed=True)
        for documents_of_case in (documents, apply_to_documents(documents, [change]))
    ]
    before, after = (prepare_objects(raw, Delays()).run() for raw in raws)
    lines = [f"{change.text}: {now} -> {change.value or 'no limit'}"]
    lines += _outcome_paragraphs(differences(before, after), raws[0].moment - raws[0].origin)
    if {before.end.reason, after.end.reason} != {EndReason.NOTHING_MORE}:
        lines.append("How it ends is not known: jobs preempt each other again and again.")
    end = f"So Kueue would go on with the jobs that are on {cluster} now, without others. Nothing was changed."
    return "\n\n".join([*lines, end])


def _change(manifests: Sequence[Manifest], changes: Mapping[str, str]) -> tuple[Change, str]:
    """The change of the one amount, and what it is now."""
    names = ("queue", "flavor", "resource", "limit", "amount")
    queue, flavor, resource, limit, amount = (changes.get(name, "").strip() for name in names)
    if limit == _LIMITS[0] and not amount:
        raise console.CommandError(f"{limit} needs an amount; write one, such as 8")
    queues = [
        printed_queue
        for printed_queue in map(Printed.of, manifests)
        if (printed_queue.kind, printed_queue.name) == ("ClusterQueue", queue)
    ]
    for name, quota in (flavor_quota for queue in queues for flavor_quota in quotas_in(queue)):
        if (name, quota.text("name")) == (flavor, resource) and limit in _LIMITS:
            change = parse_change(f"ClusterQueue[{queue}].{quota.path}.{limit}=null")
            text = f"{limit} of {queue}, {resource} in {flavor}"
            return replace(change, text=text, value=amount or None), str(quota.data.get(limit, "no limit"))
    wrong = f"ClusterQueue {queue!r} has no {limit!r} of {resource!r} in {flavor!r}"
    raise console.CommandError(f"{wrong}; choose one of the quotas that the page shows")


def _outcome_paragraphs(outcomes: Sequence[Mapping[str, Any]], now: float) -> Iterator[str]:
    """A paragraph each for the jobs that lose, that gain, and that fare otherwise; `now` is a second of the result."""
    kinds: dict[str, list[str]] = {"Lose": [], "Gain": [], "Neither": []}
    for start in outcomes:
        before, after = start["before"], start["after"]
        kind = "Lose" if _worth(before) > _worth(after) else "Gain" if _worth(before) < _worth(after) else "Neither"
        kinds[kind].append(f"  {start['namespace']}/{start['name']}: {_fate(before, now)} -> {_fate(after, now)}")
    for kind, lines in kinds.items():
        if lines:
            more = [f"  and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
            yield "\n".join([f"{kind}: {console.count(len(lines), 'job')}", *lines[:_MOST], *more])
    if not outcomes:
        yield "No job fares differently."


def _worth(side: Mapping[str, Any]) -> tuple[int, int, float]:
    """How good it is for a job: how far it gets, how rarely it starts over, how early it starts."""
    return _STATES.index(side["state"]), -len(side["evictions"]), -(side["admittedAt"] or 0.0)


def _fate(side: Mapping[str, Any], now: float) -> str:
    """How a job is at the end, and what it had to wait and to suffer on the way."""
    on, waits, eviction_count = flavors_of(side), (side["admittedAt"] or 0.0) - now, len(side["evictions"])
    words = [f"on {on}" if on else "", f"in {span(waits)}" if waits > 0 else ""]
    words.append(f"evicted {console.count(eviction_count, 'time')}" if eviction_count else "")
    return " ".join(filter(None, [side["state"], *words]))
