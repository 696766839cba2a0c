"""Admission checks of a simulated fleet are answered: when `Checks` says so, and those of DWS when it has nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kueue_admission.decide.events import ActiveChanged, AllowedFlavorsChanged, CheckStateChanged
from kueue_admission.decide.model import CheckState
from kueue_admission.simulate.agenda import Action, Agenda
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_fleet.fleet_simulation.admission_checks import Answer, Checks
from kueue_fleet.fleet_simulation.node_limit import Nodes
from kueue_fleet.jobs.fleet_job import FleetJob


class Answers:
    """Answers checks on the clusters, each with its nodes.

    `plan` does something later, unless the job is evicted before; `take_back` lets the watchdog look at a job on a
    worker whose DWS was asked at some time.
    """

    def __init__(
        self,
        checks: Checks,
        clusters: Mapping[str, SimulatedCluster],
        nodes: Mapping[str, Nodes],
        agenda: Agenda,
        plan: Callable[[float, FleetJob, str, Action], None],
        take_back: Callable[[FleetJob, str, float, float], None],
    ) -> None:
        self._checks, self._clusters, self._nodes, self._agenda = checks, clusters, nodes, agenda
        self._plan, self._take_back = plan, take_back

    def answer(self, job: FleetJob, cluster: str, names: Iterable[str], at: float) -> None:
        """Plan that checks are answered, those that are Pending."""
        states = self._clusters[cluster].engine.workloads[job.record.key].checks
        for name in names:
            if states[name].state is CheckState.PENDING:
                refusal = self._checks.refused(job, name)
                if refusal:
                    job.why[cluster] = job.record.message = refusal
                    continue
                for answer in self._checks.answers(job, cluster, name, at):
                    if answer.state is CheckState.PENDING and answer.message != states[name].message:
                        change = CheckStateChanged(at, job.record.key, name, CheckState.PENDING, answer.message)
                        self._clusters[cluster].handle(change)
                    self._agenda.takes(answer.at - at)
                    self._plan(answer.at, job, cluster, partial(self._give, job, cluster, name, answer))

    def _give(self, job: FleetJob, cluster: str, name: str, answer: Answer, now: float) -> None:
        if answer.state is None:
            self._take_back(job, cluster, answer.asked_at, now)
        elif answer.state is CheckState.PENDING:
            self.answer(job, cluster, [name], now)
        elif not self._give_state(job, cluster, name, answer, answer.state, now):
            self._nodes[cluster].wait(job, partial(self._give_state, job, cluster, name, answer, answer.state))
            late = self._checks.given_up_at(cluster, answer.asked_at)
            if late is not None and late >= now:
                watch = Answer(late, None, asked_at=answer.asked_at)
                self._plan(late, job, cluster, partial(self._give, job, cluster, name, watch))

    def _give_state(
        self, job: FleetJob, cluster: str, name: str, answer: Answer, state: CheckState, now: float
    ) -> bool:
        """Whether the check has its state; not if that waits for nodes of DWS."""
        request_state = self._checks.requested(job, cluster, name)
        why = self._nodes[cluster].place(job, now, request_state) if request_state else ""
        if why:
            job.why[cluster] = job.record.message = f"DWS waits: {why}"
            return False
        key, handle = job.record.key, self._clusters[cluster].handle
        if answer.allowed is not None:
            job.workload = replace(job.workload, allowed_flavors=answer.allowed)
            handle(AllowedFlavorsChanged(now, key, answer.allowed))
        handle(CheckStateChanged(now, key, name, state, answer.message, answer.again))
        if state is CheckState.REJECTED and answer.until is not None:
            self._agenda.plan(answer.until, partial(self._activate, job, cluster))
        return True

    def _activate(self, job: FleetJob, cluster: str, now: float) -> None:
        """A job that was rejected may try again, unless it was deleted meanwhile."""
        if job.record.finished_at is None:
            self._clusters[cluster].handle(ActiveChanged(now, job.record.key, True))
