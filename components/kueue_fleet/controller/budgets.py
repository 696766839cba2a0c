"""What teams use of budgets that hold jobs back, and which of their jobs may go on.

Counted from the Workloads of the manager, and kept in a ConfigMap: the next leader goes on from there with what the
Workloads say since. What ran while no replica led, and was deleted meanwhile, is not counted. Without a ledger that can
be read, all is counted that Workloads still say of the week or month. So a budget may be taken for less used up than it
is, never for more: jobs pass rather than wait for an error of ours.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Iterator
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import ACCELERATOR_RESOURCES, BUDGET_CHECK, GPU_RESOURCE
from kueue_fleet.controller import patches
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch.budgets import BudgetDecision, Ledger, TeamRun, decide_budget
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.settings.budgets import period_of
from kueue_fleet.settings.configuration import LEDGER_NAME, ControllerConfiguration

COUNT_SECONDS: Final = 5.0
"""Between two counts."""
KEEP_SECONDS: Final = 60.0
"""Between two writes of what was counted."""

log = logging.getLogger(__name__)


class Budgets:
    """Counts and decides; does nothing in a fleet without enforced budgets."""

    def __init__(self, configuration: ControllerConfiguration, fleet: Fleet) -> None:
        self._rules = configuration.budgets
        self._namespace = configuration.namespace
        self._fleet = fleet
        self._ledger = Ledger(self._rules.teams if self._rules is not None else {}, period_of)
        self._rates: dict[str, float] = {}
        """What each job that runs costs for an hour, by its key: when it is over, its copy is gone."""

    @property
    def answers(self) -> frozenset[str]:
        """The AdmissionChecks that it answers."""
        return frozenset() if self._rules is None else frozenset((BUDGET_CHECK,))

    async def load(self) -> None:
        """Read what was kept, and count; before anything is decided."""
        if self._rules is None:
            return
        try:
            ledger_object = await self._fleet.api.get(f"{self._path}/{LEDGER_NAME}")
            self._ledger.read(json.loads((ledger_object.get("data") or {}).get("ledger", "")))
        except (ApiError, ValueError) as error:
            if not (isinstance(error, ApiError) and error.is_not_found):
                log.warning("no ledger of budgets", extra={"fields": {"error": str(error)[:500]}})
        self.count()

    async def run(self) -> None:
        """Count, and keep what is counted, until cancelled."""
        keep_time = 0.0
        while self._rules is not None:
            self.count()
            if self._fleet.clock() - keep_time >= KEEP_SECONDS:
                keep_time = self._fleet.clock()
                await self.keep()
            await asyncio.sleep(COUNT_SECONDS)

    def count(self) -> None:
        """Count what ran since the last time."""
        now = self._fleet.clock()
        self._ledger.count(self._runs(), now)
        self._rates = {key: rate for key, rate in self._rates.items() if key in self._fleet.manager.records}
        for team, team_use in self._ledger.used.items():
            self._fleet.metrics.budget_gpu_hours.labels(team).set(team_use.gpu_hours)
            self._fleet.metrics.budget_usd.labels(team).set(team_use.usd)

    def decide(self, record: Record, now: float) -> BudgetDecision:
        """Whether a job passes."""
        assert self._rules is not None
        team = self._rules.namespaces.get(record.namespace)
        devices = any(name in ACCELERATOR_RESOURCES for name, _ in record.workload.requests)
        over = self._ledger.over(team, now) if team is not None and devices else None
        rest_of_budget = self._rules.left_to(team, record.cluster_queue)
        return decide_budget(over, record.exemption, rest_of_budget, record.workload.allowed_flavors, now)

    async def hold(self, record: Record, why: str) -> Record:
        """Write on a job that its check is about to be rejected for, so that it is active again later. Raises ApiError.

        A leader that ends before it is rejected is followed by one that decides the same.
        """
        await self._fleet.write_status(record, patches.over_budget_body(record, why, self._fleet.clock()), LEDGER_NAME)
        return self._fleet.manager.records.get(record.key, record)

    async def release(self, record: Record) -> float:
        """Activate a job that was deactivated, where it may have quota now; when to look again. Raises ApiError."""
        if self._rules is None or not record.over_budget:
            return math.inf
        decision = self.decide(record, self._fleet.clock())
        if decision.check.state is CheckState.REJECTED:
            return math.inf if decision.until is None else decision.until
        now = self._fleet.clock()
        if not record.workload.active:
            path = patches.workload_path(record.key)
            answer = await self._fleet.api.apply(path, patches.active_body(record), LEDGER_NAME)
            self._fleet.manager.take_answer(record, answer)
            record = self._fleet.manager.records.get(record.key, record)
        await self._fleet.write_status(record, patches.reactivated_body(record, now), LEDGER_NAME)
        return math.inf

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/configmaps"

    async def keep(self) -> None:
        """Write what is counted."""
        data = {"ledger": json.dumps(self._ledger.wire(), sort_keys=True)}
        metadata = {"name": LEDGER_NAME, "namespace": self._namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        try:
            await self._fleet.api.apply(f"{self._path}/{LEDGER_NAME}", body, LEDGER_NAME)
        except ApiError as error:
            log.warning("ledger of budgets not kept", extra={"fields": {"error": str(error)[:500]}})

    def _runs(self) -> Iterator[TeamRun]:
        """What runs, or has run since it was last admitted, of teams whose budget is enforced."""
        assert self._rules is not None
        for record in self._fleet.manager.records.values():
            team, begin = self._rules.namespaces.get(record.namespace), record.admitted_at
            end = record.end.at if record.end is not None else record.deleted_at
            if team is None or begin is None or (end is not None and end < (self._ledger.until or 0.0)):
                continue
            requests = dict(record.workload.requests)
            if any(name in requests for name in ACCELERATOR_RESOURCES):
                yield TeamRun(team, requests.get(GPU_RESOURCE, 0), self._rate(record, requests), begin, end)

    def _rate(self, record: Record, requests: dict[str, int]) -> float:
        """What a job costs for an hour; the most that it may, where it is not known which flavor it has."""
        assert self._rules is not None
        worker = self._fleet.workers.get(record.cluster_name)
        prices = self._rules.usd.get(record.cluster_name or self._rules.cluster, {})
        there = worker.workload(record.key) if worker is not None else record.workload
        admission = there.status.admission if there is not None else None
        if admission is None:
            hourly_rate = max(prices.values(), default=0.0) * sum(
                requests.get(name, 0) for name in ACCELERATOR_RESOURCES
            )
            return self._rates.get(record.key, hourly_rate)
        rate = 0.0
        for name in ACCELERATOR_RESOURCES:
            flavors = {flavor for pod_set in admission.pod_sets for of, flavor in pod_set.flavors if of == name}
            rate += requests.get(name, 0) * max((prices.get(flavor, 0.0) for flavor in flavors), default=0.0)
        self._rates[record.key] = rate
        return rate
