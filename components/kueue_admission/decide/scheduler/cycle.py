"""One scheduling cycle: from the heads of the queues to who gets quota, who preempts whom, and who goes back and why.

Nomination looks at every head with the usage as it is; then the heads are taken in order, and what each one gets, or
holds back for itself, counts for the next. At the end only what was admitted stays.

Why that is safe: a nomination may be out of date when its turn comes, since it saw none of the heads before it. So
nothing is given on the strength of it: `examination` asks again, with all that earlier heads got or hold, without all
victims chosen so far and its own. Quota is therefore given once, whatever nomination found, and no workload is a
victim twice: a head whose targets overlap with earlier ones is skipped, or looks again without them. What a preemptor
will need is held to the end of the cycle, so that the heads behind it cannot take what its victims give back. All of
it happens on the real cohort trees, not on a copy: what is held is a list (`Cycle.held`), and subtracting it
restores them exactly (`cohort_tree` says why). `examine`, and with it `explain`, therefore asks this code about one
workload, and leaves no trace.

Source: kueue@v0.19.2 pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.decide.scheduler.examination import Cycle, is_inadmissible, process, record, restore_cache
from kueue_admission.decide.scheduler.ordering import classical_order, fair_order
from kueue_admission.decide.workload.state import WorkloadInfo


class Head(NamedTuple):
    """A workload at the head of a queue."""

    info: WorkloadInfo
    queue: QueueNode
    is_preemptor: bool = False


def run_cycle(cache: Cache, heads: Iterable[Head], *, number: int, now: float) -> list[Entry]:
    """Decide about the heads; entries in the order in which they were decided.

    The usage then has that of the admitted entries and is otherwise unchanged; the caller gives those entries
    their reservation. `number` counts cycles.
    """
    cycle = Cycle(cache, number, now)
    entries, done = [], []
    for head in heads:
        entry = Entry(head.info, head.queue, is_preemptor=head.is_preemptor)
        if is_inadmissible(cache, entry):
            done.append(entry)
        else:
            _nominate(cycle, entry)
            entries.append(entry)
    order = fair_order if cache.configuration.fair_sharing is not None else classical_order
    for entry in order(entries, cache):
        process(cycle, entry)
        done.append(entry)
    restore_cache(cycle)
    return done


def _nominate(cycle: Cycle, entry: Entry) -> None:
    info = entry.info
    progress = info.last_progress
    if progress is not None and progress.is_outdated(
        entry.queue.generation,
        cycle.number,
        info.shape,
        preserve=cycle.cache.gates.flavor_fungibility_preserve_scan_progress,
    ):
        info.last_progress = None
    record(cycle, entry)
