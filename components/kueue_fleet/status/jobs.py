"""The jobs of a live fleet as rows: state, place, since when, what they ask for, and why they wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason
from kueue_admission.read.dispatch_report import NEXT, POSITION, START, WAITING_CONDITION
from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES
from kueue_fleet.status.accelerators import accelerators_asked
from kueue_fleet.status.conditions import NOT_DISPATCHED
from kueue_fleet.status.model import ClusterObjects, PendingWorkload

NOT_READY_SECONDS: Final = 120.0
"""After which an admitted job whose pods are not all ready is marked."""
_WAIT: Final = "Wait."
_ASK: Final = "Ask whoever administers the queue: it does not change by itself."
_WHY: Final[Mapping[str, tuple[str, str]]] = {
    QuotaReservedReason.PENDING_EVALUATION: ("Kueue has not decided about it yet.", _WAIT),
    QuotaReservedReason.WAITING_FOR_QUOTA: (
        "It asks for more than its queue has free now.",
        "Wait until other jobs of its queue end.",
    ),
    QuotaReservedReason.EXCEEDS_MAX_QUOTA: (
        "It asks for more than its queue can ever have.",
        "Submit it again with less, or ask for a larger quota.",
    ),
    QuotaReservedReason.NO_MATCHING_FLAVOR: (
        "No flavor of its queue suits its pods.",
        "Compare its node selector, tolerations and requests with the flavors of its queue.",
    ),
    QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED: ("Its pods have no place on the nodes of its queue.", _WAIT),
    QuotaReservedReason.WAITING_FOR_PREEMPTED_WORKLOADS: ("Jobs that it preempts are still stopping.", _WAIT),
    QuotaReservedReason.WAITING_FOR_PODS_READY: ("The pods of an earlier job are not ready yet.", _WAIT),
    QuotaReservedReason.MISCONFIGURED: ("Its queue does not exist, or does not take jobs of its namespace.", _ASK),
    QuotaReservedReason.SUSPENDED: ("Its queue is stopped or not active.", _ASK),
    QuotaReservedReason.ADMISSION_GATED: ("A gate holds it back.", "Wait until whoever set the gate removes it."),
    AdmittedReason.UNSATISFIED_ADMISSION_CHECKS: ("It has quota, and waits for its admission checks.", _WAIT),
    "Deactivated": ("It is deactivated and never starts.", "Submit it again."),
    "Evicted": ("It was evicted, and keeps its quota until its pods are gone.", _WAIT),
    NOT_DISPATCHED: (
        "It never runs: the manager admitted it without a worker.",
        "Delete it, and submit it with a request that its queue counts.",
    ),
}
"""Why a job waits and what to do, by Kueue's reason, where the fleet's controller has not said it yet."""


def job_rows(
    home: str,
    clusters: Mapping[str, ClusterObjects],
    pending: Sequence[PendingWorkload],
    teams: Mapping[str, str],
    now: datetime,
) -> list[Mapping[str, Any]] | None:
    """Every job that has not ended, those first that wait longest; `pending` is that of the status, `teams` are those
    of namespaces.

    None: the Workloads of the cluster that jobs are submitted to could not be read.
    """
    read = clusters.get(home, ClusterObjects(""))
    if not read.knows("workloads"):
        return None
    waiting = {(pending_workload.namespace, pending_workload.name): pending_workload for pending_workload in pending}
    rows = [
        _row(home, workload, waiting, teams, now) for workload in read.workloads if not workload.is_true("Finished")
    ]
    return sorted(rows, key=lambda row: (row["state"] == "Admitted", -row["seconds"]))


def _row(
    home: str,
    workload: PrintedWorkload,
    waiting: Mapping[tuple[str, str], PendingWorkload],
    teams: Mapping[str, str],
    now: datetime,
) -> Mapping[str, Any]:
    state = next((name for name in ("Admitted", "QuotaReserved") if workload.is_true(name)), "Pending")
    since = workload.since(state) or workload.created or now.timestamp()
    pending = waiting.get((workload.namespace, workload.job_name))
    says = workload.message(WAITING_CONDITION)
    headline, step, is_wrong = _why(workload, pending, state, now)
    lines = dict(line.split(": ", 1) for line in says.splitlines()[1:] if ": " in line)
    return {
        "namespace": workload.namespace,
        "name": workload.job_name,
        "team": teams.get(workload.namespace, workload.namespace),
        "queue": workload.queue,
        "state": state,
        "cluster": workload.cluster_name or (home if state == "Admitted" else pending.cluster if pending else ""),
        "since": datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds"),
        "seconds": max(0.0, now.timestamp() - since),
        "gpus": sum(accelerators_asked(workload, resource) for resource in ACCELERATOR_RESOURCES),
        "place": lines.get(POSITION, ""),
        "start": lines.get(START, ""),
        "why": says.partition("\n")[0] or headline,
        "next": lines.get(NEXT, step),
        "wrong": is_wrong,
        "reason": pending.reason if pending else "",
        "message": pending.message if pending else "",
        "says": says,
    }


def _why(
    workload: PrintedWorkload, pending: PendingWorkload | None, state: str, now: datetime
) -> tuple[str, str, bool]:
    """Why it does not run, what to do, and whether that is not as it should be; empty for one that may run."""
    if pending is not None:
        usual = "Kueue holds it back.", "Read Kueue's own words."
        return *_WHY.get(pending.reason, usual), pending.reason in (NOT_DISPATCHED, "Deactivated")
    ready = workload.changed_at("PodsReady")
    if state != "Admitted" or ready is None or workload.is_true("PodsReady"):
        return "", "", False
    late = now.timestamp() - ready >= NOT_READY_SECONDS
    return "It is admitted, and not all of its pods run.", "kueue-fleet describe says why pods are Pending.", late
