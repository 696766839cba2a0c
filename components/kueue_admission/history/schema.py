"""What a record of history holds: one row for each event. The page's table and the Parquet schema are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

SCHEMA_VERSION: Final = 1
"""Of the columns; larger where a reader of the former would misread them. A new column does not raise it."""


class Kind(StrEnum):
    """What happened."""

    ARRIVED = "arrived"
    """The Workload was created; only this row has priority, requests, pod_sets and labels."""
    NOMINATED = "nominated"
    """It was offered to `worker`; at the time of the reservation, as Kueue writes none of its own."""
    RESERVED = "quotaReserved"
    """It got quota of `cluster_queue`, in `flavors`."""
    CHECK = "check"
    """Its AdmissionCheck `check` got the state `reason`; a wait for DWS is from quotaReserved to Ready."""
    ADMITTED = "admitted"
    """It was admitted, by `worker` if a manager sent it there."""
    STARTED = "started"
    """All its pods were ready, for the first time or again; written only where Kueue has waitForPodsReady."""
    INTERRUPTED = "interrupted"
    """Pods of it failed, and it waits for others: nodes of Spot were reclaimed, or broke; as for started."""
    EVICTED = "evicted"
    """It has to give its quota back, for `reason`; `count` is how often it was by then for this reason."""
    ENDED = "ended"
    """It is over, with `reason`."""
    DELETED = "deleted"
    """Its Workload is gone though it had not ended."""
    NODE_ADDED = "nodeAdded"
    """A node came to `pool`; `workload` is its name."""
    NODE_GONE = "nodeGone"
    """It is gone."""
    STOCK_OUT = "stockOut"
    """A ProvisioningRequest for `workload` found no capacity, for `reason`; its wait goes on, or begins again."""
    COUNTED = "counted"
    """Kueue's metrics of `cluster_queue` were `counts` then; they tell of no single job."""


def _column(about: str, default: Any = "", **more: Any) -> Any:
    return field(default=default, metadata={"about": about, **more})


@dataclass(slots=True)
class Event:
    """One row; what does not apply is empty, or None for numbers. Times are seconds since 1970.

    Nothing changes one; it is not frozen because it takes three times as long to make one then.
    """

    kind: Kind = field(metadata={"about": "what happened, see above"})
    time: float = field(metadata={"about": "when, in UTC", "type": "timestamp"})
    key: str = field(metadata={"about": "identifies the event: equal each time that it is recorded"})
    exact: bool = _column(
        "whether `time` is what the cluster wrote; else when it was noticed, or another known step", True
    )
    cluster: str = _column("the cluster that it was seen on, by its name in the fleet file")
    region: str = _column("of that cluster")
    namespace: str = _column("of the Workload")
    workload: str = _column("name of the Workload, or of the node")
    uid: str = _column("of the Workload, node or ProvisioningRequest")
    job: str = _column("Kind/name of its job")
    team: str = _column("of the namespace, by the fleet file")
    copy: bool = _column("whether MultiKueue made it on a worker, for a job of the manager", False)
    queue: str = _column("the LocalQueue")
    cluster_queue: str = _column("whose quota it got")
    priority: int | None = _column("larger goes first", None)
    priority_class: str = _column("name of the WorkloadPriorityClass or PriorityClass")
    requests: Mapping[str, float] = _column(
        "what all its pods ask for together, in units and bytes", None, type="amounts"
    )
    pod_sets: str = _column("what admission sees of its pods, as JSON of a Workload's spec.podSets")
    labels: Mapping[str, str] = _column(
        "labels and annotations that decide about it, or that were asked for", None, type="labels"
    )
    flavors: tuple[str, ...] = _column("ResourceFlavors that it got, each once", (), type="texts")
    worker: str = _column("the worker that it was offered to, or admitted by")
    check: str = _column("the AdmissionCheck")
    reason: str = _column("Kueue's reason, the state of a check, or that of a ProvisioningRequest")
    count: int | None = _column("of evictions", None)
    counts: Mapping[str, float] | None = _column(
        "of counted: `admitted`, `pending...` by status, `evicted...` by reason, how many `waitedAtMost...` seconds; "
        "since Kueue's process began, `countedSeconds` before",
        None,
        type="amounts",
    )
    pool: str = _column("node pool of a node, or from which one was asked for")
    machine_type: str = _column("machine type of a node")
    spot: bool = _column("whether it is a Spot node", False)


COLUMNS: Final = {column.name: str(column.metadata.get("type", column.type)) for column in fields(Event)}
"""Type of each column: text, timestamp, `amounts` and `labels` (maps), `texts` (a list), or Python's annotation."""
