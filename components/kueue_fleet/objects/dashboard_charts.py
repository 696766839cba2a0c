"""What is shown of a fleet: the charts, each a question with its answer in PromQL.

`dashboards` writes them out for Cloud Monitoring and for Grafana.

Metric names and labels are those of kueue@v0.19.2 pkg/metrics/metrics.go; GPU metrics are those of NVIDIA's DCGM
exporter, which GKE runs where a cluster's monitoring has the component DCGM. The metrics of quota need Kueue's
`metrics.enableClusterQueueResources`. MultiKueue's metrics have a label `cluster` of their own, the worker's name;
beside the collector's label of that name Prometheus calls it `exported_cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Unit = Literal["count", "seconds", "ratio", "per second", "bytes"]
"""What the values of a chart are."""
GPU: Final = "nvidia.com/gpu"
"""Resource name of NVIDIA's GPUs."""
LEADING: Final = 'replica_role!="follower"'
"""Matcher of what the leader of several replicas of Kueue measures, or the only one.

A replica that takes over keeps what it measured as a follower. Source: kueue@v0.19.2 pkg/util/roletracker.
"""
_WINDOW: Final = "15m"


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: a question, and the answer in PromQL."""

    title: str
    queries: Mapping[str, str]
    """PromQL by legend; an empty legend shows the labels of each series."""
    unit: Unit = "count"
    help: str = ""
    """What to look for."""


@dataclass(frozen=True, slots=True)
class Section:
    """Charts that belong together."""

    title: str
    charts: tuple[Chart, ...]


def _sum(metric: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) ({metric})"


def _now(metric: str, *labels: str, where: str = "") -> str:
    """The sum of a gauge of Kueue. Its other replicas measure the same a second time, as followers."""
    return _sum(f"{metric}{{{','.join(filter(None, (where, LEADING)))}}}", *labels)


def _rate(metric: str, *labels: str) -> str:
    return _sum(f"rate({metric}[{_WINDOW}])", *labels)


def _quantiles(metric: str, *labels: str) -> dict[str, str]:
    """Median and 95th percentile of a histogram."""
    return {
        name: f"histogram_quantile({share}, {_rate(f'{metric}_bucket', 'le', *labels)})"
        for name, share in (("median", 0.5), ("95 %", 0.95))
    }


_GPUS: Final = f'resource="{GPU}"'
_QUEUE: Final = ("cluster", "cluster_queue")
_WORKER: Final = ("cluster_queue", "cluster", "exported_cluster")

SECTIONS: Final = (
    Section(
        "Queues",
        (
            Chart(
                "Jobs that wait",
                {"": _now("kueue_pending_workloads", *_QUEUE, "status")},
                help="active: tried again and again; inadmissible: parked until something changes.",
            ),
            Chart(
                "Why jobs are not admitted",
                {"": _now("kueue_unadmitted_workloads", *_QUEUE, "reason", "underlying_cause")},
                help="Kueue's own reasons. ExceedsMaxQuota never goes away by itself.",
            ),
            Chart("Jobs that run", {"": _now("kueue_admitted_active_workloads", *_QUEUE)}),
            Chart("Admissions", {"": _rate("kueue_admitted_workloads_total", *_QUEUE)}, "per second"),
            Chart(
                "Time from submission to admission",
                _quantiles("kueue_admission_wait_time_seconds", *_QUEUE),
                "seconds",
            ),
            Chart(
                "Evictions",
                {"": _rate("kueue_evicted_workloads_total", *_QUEUE, "reason", "underlying_cause")},
                "per second",
                "Preempted: somebody with more right came; AdmissionCheck: capacity did not come, or was taken away.",
            ),
            Chart(
                "Preemptions, by who caused them",
                {"": _rate("kueue_preempted_workloads_total", "cluster", "preempting_cluster_queue", "reason")},
                "per second",
            ),
            Chart(
                "Queues that are not active",
                {"": _now("kueue_cluster_queue_status", *_QUEUE, "status", where='status!="active"') + " > 0"},
                help="A flavor or a check of them is missing or not ready; nothing of theirs is admitted.",
            ),
            Chart(
                "Duration of an admission attempt",
                _quantiles("kueue_admission_attempt_duration_seconds", "cluster"),
                "seconds",
            ),
        ),
    ),
    Section(
        "Quota and GPUs",
        (
            Chart(
                "GPUs in use, by flavor",
                {"": _now("kueue_cluster_queue_resource_usage", *_QUEUE, "flavor", where=_GPUS)},
            ),
            Chart(
                "GPU quota in use",
                {
                    "": _now("kueue_cluster_queue_resource_usage", *_QUEUE, where=_GPUS)
                    + " / ("
                    + _now("kueue_cluster_queue_nominal_quota", *_QUEUE, where=_GPUS)
                    + " > 0)"
                },
                "ratio",
                "Above 1: the queue borrows.",
            ),
            Chart(
                "GPUs that waiting jobs ask for",
                {"": _now("kueue_cluster_queue_resource_pending", *_QUEUE, where=_GPUS)},
            ),
            Chart("Busy GPUs", {"": "avg by (cluster, modelName) (DCGM_FI_DEV_GPU_UTIL) / 100"}, "ratio"),
            Chart(
                "GPU memory in use",
                {"": "1048576 * sum by (cluster, modelName) (DCGM_FI_DEV_FB_USED)"},
                "bytes",
            ),
        ),
    ),
    Section(
        "MultiKueue",
        (
            Chart("Jobs sent to workers", {"": _rate("multikueue_workloads_dispatched_total", *_WORKER)}, "per second"),
            Chart(
                "Jobs that workers admitted", {"": _rate("multikueue_workloads_admitted_total", *_WORKER)}, "per second"
            ),
            Chart(
                "Replicas of Kueue that run",
                {"": "count by (cluster) (kueue_build_info)"},
                help="A line that ends: Kueue or the whole cluster is gone.",
            ),
        ),
    ),
    Section(
        "Capacity from DWS",
        (
            Chart(
                "Jobs that hold quota and wait for nodes",
                {"": _now("kueue_unadmitted_workloads", *_QUEUE, where='reason="UnsatisfiedAdmissionChecks"')},
                help="On the manager: jobs that no worker has admitted yet.",
            ),
            Chart(
                "Time from quota to nodes",
                _quantiles("kueue_admission_checks_wait_time_seconds", *_QUEUE),
                "seconds",
                "The DWS waiting time.",
            ),
            Chart(
                "Time from admission to running pods",
                _quantiles("kueue_admitted_until_ready_wait_time_seconds", *_QUEUE),
                "seconds",
            ),
            Chart(
                "Requests that ended without nodes",
                {"": _rate('kueue_evicted_workloads_total{reason="AdmissionCheck"}', *_QUEUE)},
                "per second",
            ),
        ),
    ),
)
"""Every chart of Kueue, in the order in which it is shown."""

CONTROLLER_SECTION: Final = Section(
    "The fleet's own dispatcher",
    (
        Chart("Clusters nominated", {"": _rate("kueue_fleet_nominations_total", "exported_cluster")}, "per second"),
        Chart(
            "Clusters left out",
            {"": _rate("kueue_fleet_filtered_total", "exported_cluster", "reason")},
            "per second",
        ),
        Chart(
            "Jobs taken back from a cluster",
            {"": _rate("kueue_fleet_given_up_total", "exported_cluster")},
            "per second",
            "A cluster did not admit them, or did not get its nodes, in time.",
        ),
        Chart(
            "Workers that are followed",
            {"": "max by (exported_cluster) (kueue_fleet_worker_followed)"},
            help="0: the dispatcher cannot see the worker, and sends it nothing.",
        ),
        Chart("Time to a nomination", _quantiles("kueue_fleet_nominate_seconds", "cluster"), "seconds"),
        Chart("Writes that failed", {"": _rate("kueue_fleet_failures_total", "status")}, "per second"),
    ),
)
"""What the controller measures, in fleets that have one. Source: `kueue_fleet.controller.metrics`."""


def sections(*, controller: bool) -> tuple[Section, ...]:
    """The charts of a fleet, with or without the fleet's own controller."""
    return (*SECTIONS, CONTROLLER_SECTION) if controller else SECTIONS
