"""One look at one workload: what the core decides of it, written where it differs from what is there."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import BUDGET_CHECK, FALLBACK_CHECK
from kueue_admission.read.dispatch_report import GivenUp, ParsedReport
from kueue_fleet.controller import patches
from kueue_fleet.controller.ask_again import AskAgain
from kueue_fleet.controller.budgets import Budgets
from kueue_fleet.controller.configured_quota import KUEUE
from kueue_fleet.controller.fallback import Fallback
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record, Report
from kueue_fleet.controller.rescue import Rescue
from kueue_fleet.controller.worker_assignment import Assigner
from kueue_fleet.dispatch import (
    Action,
    CheckDecision,
    Decision,
    Filtered,
    LaterQuota,
    Reason,
    Request,
    Residency,
    Scored,
    Verdict,
    WatchdogDecision,
    Worker,
    bound_to,
    can_never_run,
    decide,
    decide_check,
    report_of,
    watch,
    watch_copy,
)
from kueue_fleet.dispatch.rescue import STUCK_COPY
from kueue_fleet.dispatch.residency import read_residency
from kueue_fleet.dispatch.scoring import judge
from kueue_fleet.dispatch.watchdog import PROVISIONING_TIMEOUT, RETRIES_USED, add_given_up
from kueue_fleet.settings.configuration import ControllerConfiguration
from kueue_fleet.settings.dispatch import CHECK_CONTROLLER

_ASK_AGAIN_SECONDS: Final = 600.0
"""After which an overdue ProvisioningRequest that has nowhere better to go is looked at again, whatever happens."""
_WAITS: Final = (Reason.NO_SUITABLE_CLUSTER, Reason.WAITING_FOR_WORKER)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Withdrawal:
    """Clusters that the workload is taken back from now, and when to look at the others again."""

    given_up: Mapping[str, GivenUp]
    clusters: frozenset[str]
    messages: tuple[tuple[str, str], ...]
    """Reason and text for each of them."""
    stays: str
    """Why it is not taken back from others, though it should be; empty if there are none."""
    retry_at: float


_NO_WITHDRAWAL: Final = _Withdrawal({}, frozenset(), (), "", math.inf)


def _says_other_reasons(report: Report | None, waits: ParsedReport | None, decision: Decision) -> bool:
    """Whether the condition says that nothing can be done, or why (`waits`), and that is different now."""
    if report is not None and report.reason != decision.reason.value:
        return waits is not None or decision.reason in _WAITS
    if waits is None:
        return False
    if decision.reason is Reason.WAITING_FOR_WORKER:
        return waits.summary != report_of(decision).summary
    return _filter_reasons(waits.verdicts) != _filter_reasons(decision.verdicts)


def _filter_reasons(verdicts: Iterable[Verdict]) -> dict[str, str]:
    return {one.cluster: one.reason for one in verdicts if isinstance(one, Filtered)}


class Reconciler:
    """Decides and writes."""

    def __init__(self, configuration: ControllerConfiguration, fleet: Fleet) -> None:
        section = configuration.controller
        self._configuration = configuration
        self._settings = section.dispatch
        self._later = LaterQuota(configuration.following)
        self._watchdog = section.watchdog
        self._rules = {check.name: check for check in section.checks}
        self._fleet = fleet
        self.budgets = Budgets(configuration, fleet)
        self._rescue = Rescue(fleet, self._watchdog.stuck_after.seconds)
        self._fallback = Fallback(configuration.fallback, fleet, self._watchdog.provisioning_timeout.seconds)
        self._ask_again = AskAgain(configuration.asks_in, self._watchdog, fleet)
        self.assigner = Assigner(fleet)
        self._ready_since: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        """When the nominations of a workload were last written, or first seen."""

    async def reconcile(self, key: str) -> float | None:
        """Decide about a workload and write it; when to look again without another reason to. Raises ApiError."""
        if not self._fleet.manager.followed:
            self._fleet.manager.postpone(key)
            return None
        record = self._fleet.manager.records.get(key)
        if record is not None and record.leaves:
            self._forget(key, record)
            return await self._rescue.reconcile(record, self._fleet.clock())
        if record is None or record.lost_at is None:
            self._rescue.forget(key)
        again = await self._rescue.look_at_copy(key, record, self._fleet.clock())
        if record is None or not record.holds_quota or record.admitted_at is not None:
            self._forget(key, record)
            if record is not None and record.holds_quota:
                await self.assigner.remember(record)
            again = min(again, await self._fallback.reconcile(key), await self._help_without_quota(key))
            return again if again < math.inf else None
        if not self._fleet.manager.knows_namespace(record.namespace):
            return None
        again = min(again, await self._answer_checks(record), await self._fallback.reconcile(key))
        record = self._fleet.manager.records.get(key)
        if record is not None and record.holds_quota:
            again = min(again, await self._ask_again.request(record))
        # What was written came back, and is known by now.
        record = self._fleet.manager.records.get(key)
        if record is None or not self._waits_for_kueue(record):
            self._forget(key, record)
            return again if again < math.inf else None
        by_kueue = record.cluster_name or self._fleet.manager.cluster_of_components(record)
        if self._configuration.dispatches and not by_kueue:
            again = min(again, await self._dispatch(record))
            record = self._fleet.manager.records.get(key)
        if record is not None and self._waits_for_kueue(record):
            await self.assigner.reconcile(record, self.residency(record))
        return again if again < math.inf else None

    async def _help_without_quota(self, key: str) -> float:
        """What may keep a job that has no quota, or has it no more, from an end; when to look again."""
        record = self._fleet.manager.records.get(key)
        if record is None or record.holds_quota:
            return math.inf
        await self._rescue.resume(record)
        return min(
            await self.budgets.release(record),
            self._rescue.look_for_lost(record, self._fleet.clock()),
            await self._ask_again.checks(record),
        )

    def recall(self) -> None:
        """Keep the quota of all nominations that are there, before the first decision is made beside them."""
        for record in self._fleet.manager.records.values():
            if record.holds_quota and not record.unreadable:
                for name in {*record.nominated, record.cluster_name} & self._fleet.workers.keys():
                    self._fleet.workers[name].expect(record.workload)

    def _forget(self, key: str, record: Record | None) -> None:
        """Keep no quota for a workload that is not on its way any more."""
        self._ready_since.pop(key, None)
        self._asked.pop(key, None)
        self.assigner.forget(key)
        # What is admitted may be known on the manager before it is seen on its worker.
        cluster_name = record.cluster_name if record is not None and record.holds_quota else ""
        for worker in self._fleet.workers.values():
            if worker.name != cluster_name:
                worker.forget(key)

    def _waits_for_kueue(self, record: Record) -> bool:
        """Kueue's own conditions for a nomination (multikueue/workload.go, ShouldSkipClusterNomination)."""
        if not record.holds_quota:
            return False
        check = self._fleet.manager.dispatch_check(record)
        if check is None or record.checks[check].state != CheckState.PENDING:
            return False
        return all(
            check_state.state == CheckState.READY for name, check_state in record.checks.items() if name != check
        )

    def residency(self, record: Record) -> Residency:
        """In which regions a job may run."""
        return read_residency(
            record.regions,
            self._fleet.manager.namespace_regions(record.namespace),
            self._configuration.team_regions.get(record.namespace),
            self._configuration.controller.region_groups,
        )

    # Dispatch

    async def _dispatch(self, record: Record) -> float:
        # Kueue's clock may be ahead of ours, and what is older than the reservation is not about it.
        now = max(self._fleet.clock(), record.reserved_at or 0.0)
        self._ready_since.setdefault(record.key, now)
        self._asked.setdefault(record.key, now)
        names = self._fleet.manager.clusters_of(self._fleet.manager.dispatch_check(record) or "")
        stuck = self._look_for_stuck(record, names, now)
        report = record.current_report
        waits = report.said if report is not None and report.reason in _WAITS else None
        with self._fleet.metrics.decide_seconds.time():
            request = self._request(record, stuck, waits, now)
            workers = [self._candidate(record, name, stuck, now) for name in names]
            decision = decide(request, workers, self._settings, now)
        self._keep_quota(record, decision)
        changes = decision.action not in (Action.KEEP, Action.REMIND) or bool(stuck.clusters)
        news = decision.action is Action.REMIND or (stuck.stays and not record.retries_used)
        if changes or news or _says_other_reasons(report, waits, decision):
            await self._write(record, decision, stuck, changes=changes)
            self._asked[record.key] = now
        return min(stuck.retry_at, math.inf if decision.retry_at is None else decision.retry_at)

    def _request(self, record: Record, withdrawal: _Withdrawal, waits: ParsedReport | None, now: float) -> Request:
        """What is asked for; `waits` is what our condition says, if that is why nothing can be done."""
        report = record.current_report
        residency = self.residency(record)
        views = self._fleet.involved_workers(record, residency)
        copies = {name: view.copy for name, view in views.items() if view.copy is not None}
        bound = bound_to(record.assigned, views)
        patience = self._watchdog.stuck_after.seconds
        return Request(
            workload=record.workload,
            residency=residency,
            nominated=tuple(name for name in record.nominated if name not in withdrawal.clusters),
            started=report.since if report is not None else None,
            gave_up=record.gave_up,
            given_up=withdrawal.given_up,
            bound=bound,
            withdrawn=frozenset(
                name
                for name in bound
                if name in views and views[name].known and watch_copy(name, copies.get(name), patience, now).give_up
            ),
            reserved=frozenset(name for name, copy in copies.items() if copy.reserved_at is not None),
            unsent=frozenset(name for name in record.nominated if not self._has_copy(name, record.key)),
            asked=self._asked[record.key],
            could_run=waits is not None and not can_never_run(waits.verdicts),
        )

    def _has_copy(self, worker: str, key: str) -> bool:
        return worker in self._fleet.workers and self._fleet.workers[worker].has_copy(key)

    def _candidate(self, record: Record, name: str, withdrawal: _Withdrawal, now: float) -> Worker:
        state = self._fleet.workers.get(name)
        connection, problem = self._fleet.manager.connection(name)
        if state is None:
            return Worker(name, "", connected=False, problem="the controller's configuration does not have it")
        is_nominated, unknown = name in record.nominated and name not in withdrawal.clusters, state.unknown
        return Worker(
            name=name,
            region=state.region,
            connected=connection,
            problem=record.unreadable if connection else problem,
            unknown=unknown,
            guarded=state.guards(record.namespace, record.workload.queue),
            quota=None if record.unreadable or unknown else state,
            prices=self._configuration.controller.prices_in(state.region),
            waiting_seconds=self._fleet.manager.waiting.seconds(name, record.cluster_queue, now),
            stale_copy=state.has_copy(record.key) and not is_nominated,
            fits_later=self._later.may_fit(record.workload, record.cluster_queue, name),
        )

    def _look_for_stuck(self, record: Record, names: tuple[str, ...], now: float) -> _Withdrawal:
        given_up, clusters, messages, stays, again = dict(record.given_up), set(), [], [], math.inf
        for name in record.nominated:
            state = self._fleet.workers.get(name)
            if state is None or not state.followed:
                continue
            verdict = watch(name, state.provisioning(record.key), given_up, self._watchdog, now)
            if verdict.give_up and not self._is_better_elsewhere(record, name, names, now):
                verdict = WatchdogDecision(give_up=False, retry_at=now + _ASK_AGAIN_SECONDS)
            stuck = watch_copy(name, state.copy(record.key), self._watchdog.stuck_after.seconds, now)
            if verdict.give_up:
                given_up = add_given_up(given_up, name, math.floor(now))
                clusters.add(name)
                messages.append((PROVISIONING_TIMEOUT, verdict.message))
            elif stuck.give_up:
                clusters.add(name)
                messages.append((STUCK_COPY, stuck.message))
            elif verdict.message:
                stays.append(verdict.message)
            again = min(again, *(one.retry_at for one in (verdict, stuck) if one.retry_at is not None), math.inf)
        return _Withdrawal(given_up, frozenset(clusters), tuple(messages), "; ".join(stays), again)

    def _is_better_elsewhere(self, record: Record, cluster: str, names: tuple[str, ...], now: float) -> bool:
        """Whether a copy that has quota may lose it: another cluster has a better score, or none could have it."""
        workers = [self._candidate(record, name, _NO_WITHDRAWAL, now) for name in names]
        request = Request(workload=record.workload, residency=self.residency(record), given_up=record.given_up)
        scores = {
            one.cluster: one.score for one in judge(request, workers, self._settings, now) if isinstance(one, Scored)
        }
        others = [score for name, score in scores.items() if name != cluster]
        return not others or max(others) > scores.get(cluster, 0.0)

    def _keep_quota(self, record: Record, decision: Decision) -> None:
        """Before anything is written: no other decision may count the quota that this workload will take."""
        for name, worker in self._fleet.workers.items():
            if name in decision.nominated and not record.unreadable:
                worker.expect(record.workload)
            else:
                worker.forget(record.key)

    async def _write(self, record: Record, decision: Decision, withdrawal: _Withdrawal, *, changes: bool) -> None:
        """Write the decision; without `changes` the nominations stay, and only what is said about them is new."""
        body = patches.dispatch_body(record, decision, withdrawal.given_up, withdrawal.stays)
        await self._fleet.write_status(record, body, patches.DISPATCH_MANAGER)
        if changes:
            self._note(record, decision)
        if decision.action is Action.REJECT:
            await self._reject(record.key, decision)
        news = [] if record.retries_used or not withdrawal.stays else [(RETRIES_USED, withdrawal.stays)]
        for reason, message in (*withdrawal.messages, *news):
            fields = {"workload": record.key, "uid": record.uid, "reason": reason, "why": message}
            log.warning("watchdog", extra={"fields": fields})
            self._fleet.tell(record, reason, message, True)
            if reason == STUCK_COPY:
                self._fleet.metrics.rescued.labels(reason).inc()
        for cluster in withdrawal.clusters:
            self._fleet.metrics.given_up.labels(cluster).inc()

    async def _reject(self, key: str, decision: Decision) -> None:
        """Reject the MultiKueue check of a workload, as Kueue itself does with jobs that no worker can run."""
        record = self._fleet.manager.records.get(key)
        check = self._fleet.manager.dispatch_check(record) if record is not None else None
        if record is None or check is None:
            return
        rejection = {check: (CheckDecision(CheckState.REJECTED, decision.message), None)}
        body = patches.check_body(record, rejection, decision.now)
        await self._fleet.write_status(record, body, patches.REJECT_MANAGER)

    def _note(self, record: Record, decision: Decision) -> None:
        """The trace of a decision: metric, log line, event."""
        self._fleet.metrics.decisions.labels(decision.reason.value).inc()
        added_names = [name for name in decision.nominated if name not in record.nominated]
        for name in added_names:
            self._fleet.metrics.nominations.labels(name).inc()
        if added_names and not record.nominated:
            since = self._ready_since.get(record.key)
            waited = 0.0 if since is None else max(0.0, self._fleet.clock() - since)
            self._fleet.metrics.nominate_seconds.observe(waited)
        filter_reasons = _filter_reasons(decision.verdicts)
        for cluster, filter_reason in filter_reasons.items():
            self._fleet.metrics.filtered.labels(cluster, filter_reason).inc()
        log.info(
            "dispatch",
            extra={
                "fields": {
                    "workload": record.key,
                    "uid": record.uid,
                    "reason": decision.reason.value,
                    "nominated": list(decision.nominated),
                    "before": list(record.nominated),
                    "scores": {v.cluster: round(v.score, 3) for v in decision.verdicts if isinstance(v, Scored)},
                    "filtered": filter_reasons,
                }
            },
        )
        self._fleet.tell(record, decision.reason.value, decision.message, not decision.nominated)

    # Admission checks

    async def _answer_checks(self, record: Record) -> float:
        """Write the states of our checks; when one of them changes with time alone."""
        now = self._fleet.clock()
        ours = {
            name: self._decide_check(record, name, now)
            for name in record.checks
            if name in self._rules.keys() | self.budgets.answers
            and name in self._fleet.manager.checks
            and self._fleet.manager.checks[name].controller == CHECK_CONTROLLER
        }
        again = min((d.retry_at for d, _ in ours.values() if d.retry_at is not None), default=math.inf)
        changed_decisions = {
            name: decision
            for name, (decision, _) in ours.items()
            if (decision.state, decision.message) != (record.checks[name].state, record.checks[name].message)
        }
        if not changed_decisions:
            return again
        if BUDGET_CHECK in changed_decisions and changed_decisions[BUDGET_CHECK].state is not CheckState.READY:
            allowed_flavors = self.budgets.decide(record, now).allowed
            if allowed_flavors is None:
                record = await self.budgets.hold(record, changed_decisions[BUDGET_CHECK].message)
            else:
                record = await self._fallback.allow(record, allowed_flavors)
        body = patches.check_body(record, ours, now)
        await self._fleet.write_status(record, body, patches.CHECK_MANAGER)
        for name, decision in changed_decisions.items():
            self._fleet.metrics.checks.labels(name, decision.state.value).inc()
            fields = {"workload": record.key, "check": name, "state": decision.state.value, "why": decision.message}
            log.info("check", extra={"fields": fields})
            bad = decision.state in (CheckState.REJECTED, CheckState.RETRY)
            self._fleet.tell(record, f"Check{decision.state.value}", f"{name}: {decision.message}", bad)
        return again

    def _decide_check(self, record: Record, name: str, now: float) -> tuple[CheckDecision, float | None]:
        """The state of one check, and after how many seconds to try again if it is Retry."""
        present = record.checks[name]
        if record.gave_up:
            report = record.current_report
            words = report.said.summary if report is not None else ""
            return CheckDecision(CheckState.RETRY, words or "Not admitted in time"), self._settings.retry_after.seconds
        if present.state not in (CheckState.PENDING, CheckState.READY):
            return CheckDecision(CheckState(present.state), present.message), None
        if name == BUDGET_CHECK:
            if present.state == CheckState.READY:
                return CheckDecision(CheckState.READY, present.message), None
            budget = self.budgets.decide(record, now)
            return budget.check, budget.again
        decision = decide_check(
            self._rules[name], record.run_seconds, self.residency(record), self._regions(record), now
        )
        if present.state == CheckState.READY and decision.state is CheckState.PENDING and decision.retry_at is None:
            # It is not known; what was let in is not sent back for that.
            return CheckDecision(CheckState.READY, present.message), None
        if present.state == CheckState.READY and decision.state is not CheckState.READY:
            # It was let in, and was not admitted before that changed: its quota goes back, and it waits again.
            wait = decision.retry_at - now if decision.retry_at is not None else 1.0
            return CheckDecision(CheckState.RETRY, decision.message), wait
        if present.state == decision.state == CheckState.READY:
            decision = replace(decision, message=present.message)
        return decision, None

    def _regions(self, record: Record) -> tuple[str | None, ...]:
        if self._configuration.region:
            return (self._configuration.region,)
        check = self._fleet.manager.dispatch_check(record)
        names = self._fleet.manager.clusters_of(check) if check is not None else ()
        return tuple(self._fleet.workers[name].region if name in self._fleet.workers else None for name in names)

    async def reconcile_check(self, name: str) -> None:
        """Say of an AdmissionCheck that names this controller whether it is answered. Raises ApiError."""
        check_object = self._fleet.manager.checks.get(name)
        if check_object is None or check_object.controller != CHECK_CONTROLLER:
            return
        is_known = name in self._rules.keys() | self.budgets.answers or (
            name == FALLBACK_CHECK and bool(self._configuration.fallback)
        )
        if check_object.active is is_known:
            return
        body = patches.check_active_body(name, check_object.version, known=is_known, now=self._fleet.clock())
        answer = await self._fleet.api.apply(f"{KUEUE}/admissionchecks/{name}/status", body, patches.CHECK_MANAGER)
        self._fleet.manager.take_check(name, answer)
