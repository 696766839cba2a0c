"""What Kueue says of a preempted workload.

Source: kueue@v0.19.2 pkg/scheduler/preemption/preemption.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kueue_admission.decide.model import Workload
from kueue_admission.decide.preemption.candidates import Target
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import TreeNode
from kueue_admission.decide.reasons import PreemptionReason

if TYPE_CHECKING:
    from kueue_admission.decide.scheduler.entry import Entry

_ACCOMMODATES: Final = "Preempted to accommodate a workload (UID: "
_REASON_TEXT: Final[dict[PreemptionReason, str]] = {
    PreemptionReason.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    PreemptionReason.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    PreemptionReason.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
"""The reason as it is in the message of a preempted workload."""


def preemption_message(entry: Entry, target: Target, queue: QueueNode) -> str:
    """Kueue's message about the preemption of `target`, which holds quota of `queue`, for `entry`."""
    workload = entry.info.workload
    return (
        f"{_ACCOMMODATES}{workload.uid or 'UNKNOWN'}, "
        f"JobUID: {workload.job_uid or 'UNKNOWN'}) due to {_REASON_TEXT[target.reason]}; "
        f"preemptor path: {_path(entry.queue)}; preemptee path: {_path(queue)}"
    )


def is_preempted_for(message: str, workload: Workload) -> bool:
    """Whether the message of an eviction, as Kueue writes it, names the workload."""
    return bool(workload.uid) and message.startswith(f"{_ACCOMMODATES}{workload.uid}, ")


def _path(queue: TreeNode) -> str:
    """`/root/…/cohort/queue`."""
    return "/" + "/".join(reversed([queue.name, *(node.name for node in queue.path())]))
