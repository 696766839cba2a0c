"""What became of each job in rows that a rehearsal, or a live fleet, can be put beside: no times in them.

One row for each time a job was admitted; one for a job that never was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kueue_admission.simulate.records import Record, Run


class JobRow(NamedTuple):
    """`job` is namespace/name. `cluster` and `flavors` are empty where it never ran.

    `next` is where it ran after this, cluster and flavors; empty if nowhere. `preempted`: whether it ended because of
    another job.
    """

    job: str
    cluster: str
    flavors: tuple[str, ...]
    preempted: bool
    next: str

    def as_json(self) -> Mapping[str, Any]:
        """The row with its fields' names."""
        return {**self._asdict(), "flavors": list(self.flavors)}


def job_rows(records: Iterable[Record]) -> list[JobRow]:
    """The rows, sorted by job and then by time."""
    ordered_records = sorted(records, key=lambda record: (record.namespace, record.name, record.arrived_at))
    return [row for record in ordered_records for row in _rows(record)]


def _rows(record: Record) -> list[JobRow]:
    job = f"{record.namespace}/{record.name}"
    if not record.runs:
        return [JobRow(job, "", (), preempted=False, next="")]
    following: list[Run | None] = [*record.runs[1:], None]
    return [
        JobRow(job, run.cluster or "", run.flavors, run.end == "Preempted", _place(after) if after else "")
        for run, after in zip(record.runs, following, strict=True)
    ]


def _place(run: Run) -> str:
    return " ".join((*([run.cluster] if run.cluster else ()), *run.flavors))
