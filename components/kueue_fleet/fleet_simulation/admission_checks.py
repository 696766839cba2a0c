"""What admission checks of a simulated fleet are answered, and when.

Waits of the workload file, for ProvisioningRequests and everything else that is outside; the fleet's controller for its
own checks, by the rules of `kueue_fleet.dispatch`. Its watchdog takes jobs back from workers that do not
provision them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import BUDGET_CHECK, FALLBACK_CHECK
from kueue_fleet.dispatch import Provisioning, decide_check, watch
from kueue_fleet.dispatch.residency import Residency
from kueue_fleet.dispatch.watchdog import add_given_up
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_simulation.offers import Dispatcher, FleetDispatcher, regions_of
from kueue_fleet.fleet_simulation.team_budgets import HeldBack
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS
from kueue_fleet.jobs.check.provisioning_request import refused_by_gke
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_fleet.objects.controller_values import enforced_budgets
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK


@dataclass(frozen=True, slots=True)
class Answer:
    """A state from `at` on. Pending: to be decided again then.

    None: the watchdog looks then at what DWS was asked for at `asked_at`, and may take it back.
    """

    at: float
    state: CheckState | None
    message: str = ""
    asked_at: float = 0.0
    again: float | None = None
    """Seconds after which a Retry begins."""
    until: float | None = None
    """When a job that is rejected may try again; None: never."""
    allowed: tuple[str, ...] | None = None
    """The flavors that the job may have from then on; None: as before."""


class Checks:
    """The answers to admission checks."""

    def __init__(self, fleet: FleetSpec, file: WorkloadFile, seed: int, dispatcher: Dispatcher) -> None:
        self._fleet, self._file, self._seed = fleet, file, seed
        self._dispatcher = dispatcher
        section = fleet.controller
        self._rules = {check.name: check for check in fleet_checks(fleet)}
        self._watchdog = section.watchdog if section is not None else None
        enforced_teams = enforced_budgets(fleet)
        self.budgets = None if enforced_teams is None else HeldBack(enforced_teams)
        self._begin = file.begin.timestamp() if file.begin is not None else 0.0

    def own(self, names: Iterable[str]) -> list[str]:
        """Those that the fleet's controller answers."""
        return sorted(name for name in names if name in self._rules or name == BUDGET_CHECK)

    def refused(self, job: FleetJob, name: str) -> str:
        """Why GKE does not take the job's ProvisioningRequest: the check then stays Pending, with quota. Or empty."""
        entry = self._fleet.check(name)
        if entry is None or entry.provisioning_request is None:
            return ""
        return refused_by_gke(entry.provisioning_request, job.templates)

    def answers(self, job: FleetJob, cluster: str, name: str, at: float) -> Iterator[Answer]:
        """The sentence about a check that is Pending since `at`."""
        if name == BUDGET_CHECK and self.budgets is not None and not job.runs_on:
            answer = self.budgets.decide(job, at)
            check = answer.check
            yield Answer(at, check.state, check.message, at, answer.again, answer.until, answer.allowed)
            return
        if name in self._rules and not job.runs_on:
            yield from self._by_rules(job, name, at)
            return
        if name in (ASSIGNMENT_CHECK, BUDGET_CHECK, FALLBACK_CHECK) or job.runs_on:
            # The controller assigns a job to the first worker that has quota for it, in far less than a second, and
            # holds none back from the flavor that it got.
            yield Answer(at, CheckState.READY)
            return
        flavors = {flavor for ps in job.admissions[cluster].pod_sets for _, flavor in ps.flavors}
        resources = {resource for ps in job.admissions[cluster].pod_sets for resource, _ in ps.flavors}
        wait = 0.0
        if self._is_managed(name, resources):
            wait = self._file.wait(cluster, name, flavors, (self._seed, job.record.key, job.attempt(cluster)))
        late = self.given_up_at(cluster, at)
        if late is not None and at + wait > late:
            yield Answer(late, None, asked_at=at)
        yield Answer(at + wait, CheckState.READY, asked_at=at)

    def given_up_at(self, cluster: str, asked_at: float) -> float | None:
        """When the watchdog takes a job back from a worker whose DWS was asked at `asked_at`; None: never."""
        if self._watchdog is None or cluster == self._fleet.home or not isinstance(self._dispatcher, FleetDispatcher):
            return None
        return asked_at + self._watchdog.provisioning_timeout.seconds

    def requested(self, job: FleetJob, cluster: str, name: str) -> tuple[str, ...]:
        """The pod sets that the check asks DWS for: it is Ready when they have nodes."""
        entry = self._fleet.check(name)
        config = entry.provisioning_request if entry is not None else None
        if config is None or config.provisioning_class_name != QUEUED_PROVISIONING_CLASS:
            return ()
        managed_resources = set(config.managed_resources or ())
        return tuple(
            pod_set.name
            for pod_set in job.admissions[cluster].pod_sets
            if not managed_resources or any(resource in managed_resources for resource, _ in pod_set.flavors)
        )

    def _by_rules(self, job: FleetJob, name: str, at: float) -> Iterator[Answer]:
        residency = self._dispatcher.residency(job) if isinstance(self._dispatcher, FleetDispatcher) else Residency()
        regions = regions_of(self._fleet, job.record.cluster_queue)
        decision = decide_check(self._rules[name], job.run_limit, residency, regions, self._begin + at)
        if decision.state is not CheckState.PENDING:
            yield Answer(at, decision.state, decision.message)
        elif decision.retry_at is not None:
            again = decision.retry_at - self._begin
            while self._begin + again < decision.retry_at:
                # Rounding must not bring it there a moment too early, where nothing has changed yet.
                again = math.nextafter(again, math.inf)
            yield Answer(again, decision.state, decision.message)

    def _is_managed(self, check: str, resources: set[str]) -> bool:
        """Whether the check has something to do; a ProvisioningRequest only for resources that it manages."""
        entry = self._fleet.check(check)
        if entry is None or entry.provisioning_request is None:
            return True
        managed_resources = set(entry.provisioning_request.managed_resources or ())
        return not managed_resources or bool(managed_resources & resources)

    def take_back(self, job: FleetJob, worker: str, asked_at: float, now: float) -> bool:
        """Whether the watchdog takes a job back from a worker that has not provisioned it; it counts how often."""
        if self._watchdog is None:
            return False
        verdict = watch(worker, (Provisioning(job.record.key, asked_at),), job.given_up, self._watchdog, now)
        if verdict.give_up:
            job.given_up = add_given_up(job.given_up, worker, math.floor(now))
        return verdict.give_up
