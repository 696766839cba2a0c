"""Records of what a real Kueue did, so that the report of a simulation shows a rehearsal too.

They are read from the Workloads and pods of all clusters, each time they are listed. Times are those that the
objects have, in whole seconds: what takes less is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kueue_admission.decide.decisions import QuotaReserved
from kueue_admission.decide.model import Admission
from kueue_admission.kernel.manifest import Manifest, key_of
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.printed_pods import PrintedPod
from kueue_admission.read.workloads import Context, parse_workload
from kueue_admission.simulate.records import Phase, Record
from kueue_admission.simulate.result import Result, quotas_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.fleet_simulation.fleet import accelerator_usd
from kueue_fleet.gke.prices import list_prices

Listed = Mapping[str, Sequence[Manifest]]
"""All objects of a kind, by cluster."""

# The first that a pod has names the job that was submitted: the Jobs of a JobSet have names of their own.
_JOB_LABELS: Final = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")


class Recorder:
    """Writes down what becomes of each job that has not ended when its Workload is seen first."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._records: dict[str, Record | None] = {}
        self._local_queues: dict[str, tuple[str, str]] = {}
        self._context = Context()
        self._evicted: dict[str, float] = {}
        self._pods: dict[str, dict[str, float]] = {}
        """When pods of a running job came to their nodes, by the Workload and the pod's uid."""

    def see(self, workloads: Listed, pods: Listed) -> None:
        """Take in what the API servers say now.

        Raises:
            NotModelledError: a Workload is one that the admission core cannot read.
        """
        copies = {
            name: {key_of(copy): copy for copy in copies} for name, copies in workloads.items() if name != self._home
        }
        by_job = {name: _by_job(map(PrintedPod.of, printed_pods)) for name, printed_pods in pods.items()}
        for workload in map(PrintedWorkload.of, workloads[self._home]):
            if workload.parent:
                continue
            key = workload.key
            if key not in self._records:
                self._records[key] = None if workload.is_true("Finished") else self._record(key, workload)
            record = self._records[key]
            if record is not None and record.finished_at is None:
                of_it = {name: PrintedWorkload.of(objects[key]) for name, objects in copies.items() if key in objects}
                self._go_on(record, workload, of_it, by_job)

    def _record(self, key: str, workload: PrintedWorkload) -> Record:
        read = parse_workload(workload, self._context)
        name = next((owner.name for owner in workload.owners), read.name)
        record = Record(key, read.namespace, name, read.created, requests=read.requests)
        self._evicted[key], self._pods[key] = read.created - 1.0, {}
        self._local_queues[key] = read.namespace, read.queue
        return record

    def _go_on(
        self, record: Record, workload: PrintedWorkload, copies: Mapping[str, PrintedWorkload], pods: _PodsByJob
    ) -> None:
        there = copies.get(record.runs[-1].cluster or "", workload) if record.runs else workload
        self._evict(record, workload, there)
        reservation_time, admission_time = workload.since("QuotaReserved"), workload.since("Admitted")
        if not workload.is_true("Evicted") and not there.is_true("Evicted"):
            if reservation_time is not None and record.reserved_at is None:
                admission = self._admission(workload)
                record.take(
                    QuotaReserved(reservation_time, record.key, admission), _not_before(record, reservation_time)
                )
            if admission_time is not None and record.reserved_at is not None and record.admitted_at is None:
                self._admit(record, workload, copies, admission_time)
        if record.admitted_at is not None:
            self._run(record, pods.get(record.cluster or "", {}).get((record.namespace, record.name), ()))
        record.reason = _reason(workload)
        finish_time = workload.since("Finished")
        if finish_time is not None:
            record.finish(_not_before(record, finish_time))
            record.reason = workload.reason("Finished") or "Finished"

    def _evict(self, record: Record, *places: PrintedWorkload) -> None:
        for place in places:
            at = place.since("Evicted")
            if at is not None and at > self._evicted[record.key] and record.reserved_at is not None:
                self._evicted[record.key] = at
                record.evict(_not_before(record, at), place.reason("Evicted") or "Evicted")
                record.admission = record.reserved_at = record.admitted_at = record.cluster = None
                self._pods[record.key] = {}

    def _admission(self, workload: PrintedWorkload) -> Admission:
        read = parse_workload(workload, self._context).status.admission
        assert read is not None, "a Workload with QuotaReserved has an admission"
        return read

    def _admit(
        self, record: Record, workload: PrintedWorkload, copies: Mapping[str, PrintedWorkload], at: float
    ) -> None:
        """It runs where a worker has admitted its copy; without a copy, where it was submitted."""
        chosen_names = [
            name for name, copy in sorted(copies.items()) if copy.is_true("Admitted") and not copy.is_true("Evicted")
        ]
        record.cluster = chosen_names[0] if chosen_names else workload.cluster_name or self._home
        record.admission = self._admission(copies[chosen_names[0]] if chosen_names else workload)
        record.admitted_at = at = _not_before(record, at)
        record.first_admitted_at = at if record.first_admitted_at is None else record.first_admitted_at
        record.begin(at)

    def _run(self, record: Record, pods: Sequence[PrintedPod]) -> None:
        """It runs once as many of its pods have nodes as it was admitted for, and again when lost ones are replaced."""
        assert record.admission is not None
        came = self._pods[record.key]
        for pod in pods:
            lost = pod.since("DisruptionTarget")
            if lost is not None and pod.reason("DisruptionTarget") == "TerminationByKubelet":
                # Its node was reclaimed.
                if came.pop(pod.uid, None) is not None and record.phases[-1][1] is Phase.RUNNING:
                    record.reclaim(_not_before(record, lost), "its nodes were reclaimed")
            elif (at := pod.since("PodScheduled")) is not None:
                came[pod.uid] = at
        pod_count = sum(pod_set.count for pod_set in record.admission.pod_sets)
        if record.phases[-1][1] is not Phase.RUNNING and len(came) >= pod_count:
            record.start(_not_before(record, sorted(came.values())[pod_count - 1]))

    @property
    def records(self) -> list[Record]:
        """Of every job so far."""
        return [record for record in self._records.values() if record is not None]

    def result(self, fleet: FleetSpec, queues: Listed, until: float, seed: int) -> Result:
        """What has happened by `until`, in seconds since 1970. `queues` has each cluster's ClusterQueues and Cohorts.

        Raises:
            ObjectError: `queues` cannot be read.
            NotModelledError: they have what the admission core does not know.
        """
        records = tuple(self.records)
        targets = {(namespace, name): spec.cluster_queue for namespace, name, spec in local_queues(fleet)}
        for record in records:
            record.cluster_queue = record.cluster_queue or targets.get(self._local_queues[record.key], "")
        origin = min((record.arrived_at for record in records), default=until)
        return Result(
            records,
            origin,
            until - origin,
            seed,
            fleet.team_of,
            quotas=tuple(
                quota for name in fleet.job_clusters for quota in quotas_of(name, parse_objects(queues[name]).objects)
            ),
            accelerator_usd=accelerator_usd(fleet, list_prices()),
        )


_PodsByJob = Mapping[str, Mapping[tuple[str, str], Sequence[PrintedPod]]]
"""By cluster, and by namespace and name of the job that was submitted."""


def _by_job(pods: Iterable[PrintedPod]) -> dict[tuple[str, str], list[PrintedPod]]:
    printed_pods: dict[tuple[str, str], list[PrintedPod]] = {}
    for pod in pods:
        name = next((pod.labels.text(label) for label in _JOB_LABELS if label in pod.labels), None)
        if name is not None:
            printed_pods.setdefault((pod.namespace, name), []).append(pod)
    return printed_pods


def _not_before(record: Record, at: float) -> float:
    """Each cluster has its own clock: no step is before the one that led to it."""
    return max(at, record.phases[-1][0] if record.phases else record.arrived_at)


def _reason(workload: PrintedWorkload) -> str:
    """Kueue's reason for where the Workload stands."""
    kind = next(filter(workload.is_true, ("Evicted", "Admitted", "QuotaReserved")), "QuotaReserved")
    return (workload.reason(kind) or kind) if kind in workload.conditions else "PendingEvaluation"
