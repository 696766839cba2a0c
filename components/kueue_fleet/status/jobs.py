"""The jobs of a live fleet as rows: state, place, since when, and why they wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kueue_admission.read.dispatch_report import WAITING_CONDITION
from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.status.model import ClusterObjects, PendingWorkload


def job_rows(
    home: str, clusters: Mapping[str, ClusterObjects], pending: Sequence[PendingWorkload], now: datetime
) -> list[Mapping[str, Any]] | None:
    """Every job that has not ended, those first that wait longest; `pending` is that of the status.

    None: the Workloads of the cluster that jobs are submitted to could not be read.
    """
    read = clusters.get(home, ClusterObjects(""))
    if not read.knows("workloads"):
        return None
    waiting = {(each.namespace, each.name): each for each in pending}
    rows = [_row(home, each, waiting, now) for each in read.workloads if not each.is_true("Finished")]
    return sorted(rows, key=lambda row: (row["state"] == "Admitted", -row["seconds"]))


def _row(
    home: str, workload: PrintedWorkload, waiting: Mapping[tuple[str, str], PendingWorkload], now: datetime
) -> Mapping[str, Any]:
    state = next((name for name in ("Admitted", "QuotaReserved") if workload.is_true(name)), "Pending")
    since = workload.since(state) or workload.created or now.timestamp()
    why = waiting.get((workload.namespace, workload.job_name))
    return {
        "namespace": workload.namespace,
        "name": workload.job_name,
        "queue": workload.queue,
        "state": state,
        "cluster": workload.cluster_name or (home if state == "Admitted" else why.cluster if why else ""),
        "since": datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds"),
        "seconds": max(0.0, now.timestamp() - since),
        "reason": why.reason if why else "",
        "message": why.message if why else "",
        "says": workload.message(WAITING_CONDITION),
    }
