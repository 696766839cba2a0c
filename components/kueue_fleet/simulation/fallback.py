"""Jobs of a simulated fleet that wait for nodes which do not come: they go on to other flavors.

Decided by `dispatch.fallback`, as the fleet's controller does on the cluster to which jobs are submitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kueue_fleet.admission.engine import Engine
from kueue_fleet.admission.events import AllowedFlavorsChanged, CheckStateChanged, Event
from kueue_fleet.admission.model import CheckState
from kueue_fleet.dispatch import REQUEUE_SECONDS, decide_fallback
from kueue_fleet.dispatch.settings import fallback_rules
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.dispatch import FALLBACK_CHECK
from kueue_fleet.simulation.jobs import Job


class Fallback:
    """Takes jobs back in time, on the one cluster of the fleet.

    `plan` does something later, unless the job is evicted before; `handle` gives the cluster an event.
    """

    def __init__(
        self,
        fleet: FleetSpec,
        cluster: str,
        engine: Engine,
        plan: Callable[[float, Job, str, Callable[[float], None]], None],
        handle: Callable[[str, Event], None],
    ) -> None:
        queues = [queue for queue in fleet.cluster_queues if queue.fallback]
        self._rules = {queue.name: fallback_rules(queue.flavor_names, queue.fallback) for queue in queues}
        self._cluster, self._engine, self._plan, self._handle = cluster, engine, plan, handle

    def wait(self, job: Job, since: float, now: float) -> None:
        """A job waits for its nodes since it has quota, or since it was admitted."""
        record, admission = job.record, job.admissions[self._cluster]
        rules = self._rules.get(admission.cluster_queue)
        started = record.admitted_at is not None and record.runs[-1].started_at is not None
        if rules is None or started or since != (record.admitted_at or record.reserved_at):
            return
        used = {flavor for pod_set in admission.pod_sets for _, flavor in pod_set.flavors}
        allowed = self._engine.workloads[record.key].workload.allowed_flavors
        found = decide_fallback(rules, used, allowed, since, now)
        if found is not None and found.give_up:
            state, after = CheckState.RETRY, REQUEUE_SECONDS
            self._handle(self._cluster, AllowedFlavorsChanged(now, record.key, found.allowed))
            retry = CheckStateChanged(now, record.key, FALLBACK_CHECK, state, found.message, after)
            self._handle(self._cluster, retry)
        elif found is not None:
            self._plan(found.due, job, self._cluster, partial(self.wait, job, since))
