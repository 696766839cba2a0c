"""Records of what a real Kueue did, so that the report of a simulation shows a rehearsal too.

They are read from the Workloads and pods of all clusters, each time they are listed. Times are those that the
objects have, in whole seconds: what takes less is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kueue_admission.decide.decisions import QuotaReserved
from kueue_admission.decide.model import Admission
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.manifests import Manifest, conditions_of, inside, key_of, owners_of, since
from kueue_admission.read.workloads import Context, parse_workload
from kueue_admission.simulate.records import Phase, Record
from kueue_admission.simulate.result import Result, quotas_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.simulation.fleet import accelerator_usd

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
            NotModelledError: a Workload is one that the admission core cannot read, such as that of an elastic job.
        """
        copies = {
            name: {key_of(copy): copy for copy in listed} for name, listed in workloads.items() if name != self._home
        }
        by_job = {name: _by_job(listed) for name, listed in pods.items()}
        for workload in workloads[self._home]:
            key = key_of(workload)
            if key not in self._records:
                ended = since(workload, "Finished") is not None
                self._records[key] = None if ended else self._record(key, workload)
            record = self._records[key]
            if record is not None and record.finished_at is None:
                copies_of_it = {name: found[key] for name, found in copies.items() if key in found}
                self._go_on(record, workload, copies_of_it, by_job)

    def _record(self, key: str, workload: Manifest) -> Record:
        read = parse_workload(Fields(workload, f"Workload {key}", []), self._context)
        name = next((owner.partition("/")[2] for _, owner in owners_of(workload)), read.name)
        record = Record(key, read.namespace, name, read.created, requests=read.requests)
        self._evicted[key], self._pods[key] = read.created - 1.0, {}
        self._local_queues[key] = read.namespace, read.queue
        return record

    def _go_on(self, record: Record, workload: Manifest, copies: Mapping[str, Manifest], pods: _PodsByJob) -> None:
        there = copies.get(record.runs[-1].cluster or "", workload) if record.runs else workload
        self._evict(record, workload, there)
        reserved, admitted = since(workload, "QuotaReserved"), since(workload, "Admitted")
        if since(workload, "Evicted") is None and since(there, "Evicted") is None:
            if reserved is not None and record.reserved_at is None:
                admission = self._admission(workload)
                record.take(QuotaReserved(reserved, record.key, admission), _not_before(record, reserved))
            if admitted is not None and record.reserved_at is not None and record.admitted_at is None:
                self._admit(record, workload, copies, admitted)
        if record.admitted_at is not None:
            self._run(record, pods.get(record.cluster or "", {}).get((record.namespace, record.name), ()))
        record.reason = _reason(workload)
        finished = since(workload, "Finished")
        if finished is not None:
            record.finish(_not_before(record, finished))
            record.reason = _reason_of(workload, "Finished")

    def _evict(self, record: Record, *places: Manifest) -> None:
        for place in places:
            at = since(place, "Evicted")
            if at is not None and at > self._evicted[record.key] and record.reserved_at is not None:
                self._evicted[record.key] = at
                record.evict(_not_before(record, at), _reason_of(place, "Evicted"))
                record.admission = record.reserved_at = record.admitted_at = record.cluster = None
                self._pods[record.key] = {}

    def _admission(self, workload: Manifest) -> Admission:
        read = parse_workload(Fields(workload, key_of(workload), []), self._context).status.admission
        assert read is not None, "a Workload with QuotaReserved has an admission"
        return read

    def _admit(self, record: Record, workload: Manifest, copies: Mapping[str, Manifest], at: float) -> None:
        """It runs where a worker has admitted its copy; without a copy, where it was submitted."""
        chosen = [
            name
            for name, copy in sorted(copies.items())
            if since(copy, "Admitted") is not None and since(copy, "Evicted") is None
        ]
        record.cluster = chosen[0] if chosen else inside(workload, "status").get("clusterName") or self._home
        record.admission = self._admission(copies[chosen[0]] if chosen else workload)
        record.admitted_at = at = _not_before(record, at)
        record.first_admitted_at = at if record.first_admitted_at is None else record.first_admitted_at
        record.begin(at)

    def _run(self, record: Record, pods: Sequence[Manifest]) -> None:
        """It runs once as many of its pods have nodes as it was admitted for, and again when lost ones are replaced."""
        assert record.admission is not None
        came = self._pods[record.key]
        for pod in pods:
            uid, lost = pod["metadata"]["uid"], _reclaimed(pod)
            if lost is not None:
                if came.pop(uid, None) is not None and record.phases[-1][1] is Phase.RUNNING:
                    record.reclaim(_not_before(record, lost), "its nodes were reclaimed")
            elif (at := since(pod, "PodScheduled")) is not None:
                came[uid] = at
        wanted = sum(each.count for each in record.admission.pod_sets)
        if record.phases[-1][1] is not Phase.RUNNING and len(came) >= wanted:
            record.start(_not_before(record, sorted(came.values())[wanted - 1]))

    def result(self, fleet: FleetSpec, queues: Listed, until: float, seed: int) -> Result:
        """What has happened by `until`, in seconds since 1970. `queues` has each cluster's ClusterQueues and Cohorts.

        Raises:
            ObjectError: `queues` cannot be read.
            NotModelledError: they have what the admission core does not know.
        """
        records = tuple(record for record in self._records.values() if record is not None)
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


_PodsByJob = Mapping[str, Mapping[tuple[str, str], Sequence[Manifest]]]
"""By cluster, and by namespace and name of the job that was submitted."""


def _by_job(pods: Sequence[Manifest]) -> dict[tuple[str, str], list[Manifest]]:
    found: dict[tuple[str, str], list[Manifest]] = {}
    for pod in pods:
        labels = inside(pod, "metadata", "labels")
        name = next((labels[label] for label in _JOB_LABELS if label in labels), None)
        if name is not None:
            found.setdefault((pod["metadata"]["namespace"], name), []).append(pod)
    return found


def _not_before(record: Record, at: float) -> float:
    """Each cluster has its own clock: no step is before the one that led to it."""
    return max(at, record.phases[-1][0] if record.phases else record.arrived_at)


def _condition(thing: Manifest, kind: str) -> Manifest:
    return next((each for each in conditions_of(thing) if each.get("type") == kind), {})


def _reason_of(thing: Manifest, kind: str) -> str:
    return str(_condition(thing, kind).get("reason") or kind)


def _reason(workload: Manifest) -> str:
    """Kueue's reason for where the Workload stands."""
    kinds = ("Evicted", "Admitted", "QuotaReserved")
    return next((_reason_of(workload, kind) for kind in kinds if since(workload, kind) is not None), None) or (
        _reason_of(workload, "QuotaReserved") if _condition(workload, "QuotaReserved") else "PendingEvaluation"
    )


def _reclaimed(pod: Manifest) -> float | None:
    """When the node of a pod was reclaimed."""
    taken = _reason_of(pod, "DisruptionTarget") == "TerminationByKubelet"
    return since(pod, "DisruptionTarget") if taken else None
