"""Jobs of a simulated fleet that wait for nodes that do not come: they move to other flavors.

Decided by `dispatch.fallback`, as the fleet's controller does on the cluster to which jobs are submitted: on the
manager for the copies on all workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import AllowedFlavorsChanged, CheckStateChanged, Event
from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import FALLBACK_CHECK
from kueue_admission.simulate.agenda import Action
from kueue_fleet.dispatch import REQUEUE_SECONDS, decide_fallback, waits_on_workers_since
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.objects.controller_values import queue_fallback


class Fallback:
    """Takes jobs back in time; `home` is the cluster to which they are submitted, `engine` its Kueue.

    `plan` does something later, unless the job is evicted before; `handle` gives a cluster an event.
    """

    def __init__(
        self,
        fleet: FleetSpec,
        home: str,
        engine: Engine,
        plan: Callable[[float, FleetJob, str, Action], None],
        handle: Callable[[str, Event], None],
    ) -> None:
        self._rules = queue_fallback(fleet)
        section = fleet.controller
        self._timeout = section.watchdog.provisioning_timeout.seconds if section is not None else 0.0
        self._home, self._engine, self._plan, self._handle = home, engine, plan, handle

    def wait(self, job: FleetJob, where: str, now: float) -> None:
        """A job waits for its nodes on a cluster: it got quota there, or was admitted."""
        if not self._rules:
            return
        begun = job.record.admitted_at
        since = now
        if begun is None:
            reservation_time = job.record.reserved_at or 0.0
            since = waits_on_workers_since(reservation_time, now, job.given_up.values(), self._timeout)
        self._look(job, where, since, begun, now)

    def _look(self, job: FleetJob, where: str, since: float, begun: float | None, now: float) -> None:
        """`begun` is when it was admitted; where that is different now, another look is planned."""
        record, admission = job.record, job.admissions[where]
        rules = self._rules.get(admission.cluster_queue)
        has_started = record.admitted_at is not None and record.runs[-1].started_at is not None
        if rules is None or has_started or begun != record.admitted_at or not self._holds_quota(job):
            return
        waits = {flavor: since for pod_set in admission.pod_sets for _, flavor in pod_set.flavors}
        decision = decide_fallback(rules, waits, job.workload.allowed_flavors, now)
        if decision is not None and decision.give_up:
            state, after = CheckState.RETRY, REQUEUE_SECONDS
            job.workload = replace(job.workload, allowed_flavors=decision.allowed)
            self._handle(self._home, AllowedFlavorsChanged(now, record.key, decision.allowed))
            # Kueue may take it back between the two, as its pods were not ready in time.
            if self._holds_quota(job):
                retry = CheckStateChanged(now, record.key, FALLBACK_CHECK, state, decision.message, after)
                self._handle(self._home, retry)
        elif decision is not None:
            self._plan(decision.due, job, where, partial(self._look, job, where, since, begun))

    def _holds_quota(self, job: FleetJob) -> bool:
        info = self._engine.workloads[job.record.key]
        return info.is_reserved and not info.is_evicted
