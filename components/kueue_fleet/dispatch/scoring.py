"""Filter, then score: what speaks against each cluster, and how good the others are.

Every part of a score is between 0 and 1. Price: the cheapest candidate's price divided by this one's; without any known
price all are equal, and one whose price alone is unknown gets 0, as does one with no flavor left for some of the job.
Waiting: how short the time seen so far is, 1 where nothing was seen yet, 1/2 at the time after which the next cluster
would be asked. Free: 1 for unused quota, less for borrowed, less again where others would be evicted, 0 where it has to
wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kueue_admission.read.dispatch_report import Filtered, Scored, Verdict
from kueue_fleet.dispatch.model import FilterReason, Request, Worker
from kueue_fleet.dispatch.worker_quota import UNKNOWN, Fit, FitKind
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, Dispatch, DispatchWeights

_FREE: Final[Mapping[FitKind, float]] = {
    FitKind.FREE: 1.0,
    FitKind.BORROWING: 0.75,
    FitKind.PREEMPTING: 0.25,
    FitKind.WAITING: 0.0,
    FitKind.UNKNOWN: 0.0,
}
_FIT_TEXTS: Final[Mapping[FitKind, str]] = {
    FitKind.FREE: "free",
    FitKind.BORROWING: "free by borrowing",
    FitKind.PREEMPTING: "free if others are evicted",
    FitKind.WAITING: "quota is in use",
    FitKind.UNKNOWN: "its quota is not known",
}
_REFUSED: Final[Mapping[FitKind, FilterReason]] = {
    FitKind.MISSING: FilterReason.QUEUE_NOT_FOUND,
    FitKind.INACTIVE: FilterReason.QUEUE_INACTIVE,
    FitKind.NEVER: FilterReason.MISCONFIGURED,
}
_UNGUARDED: Final = f"its queue has no admission check {ASSIGNMENT_CHECK}; deploy the fleet again"
_NEVER: Final[Mapping[str, FilterReason]] = {reason.value: reason for reason in FilterReason}


def judge(request: Request, workers: Sequence[Worker], settings: Dispatch, now: float) -> tuple[Verdict, ...]:
    """A verdict for each worker, in their order."""
    verdicts_by_name: dict[str, Filtered | Fit] = {worker.name: _examine(request, worker, now) for worker in workers}
    candidates = [worker for worker in workers if isinstance(verdicts_by_name[worker.name], Fit)]
    costs = {worker.name: _cost(verdicts_by_name[worker.name], worker) for worker in candidates}
    known_costs = [cost for cost in costs.values() if cost is not None]
    least = min(known_costs, default=None)
    verdicts: list[Verdict] = []
    for worker in workers:
        fit = verdicts_by_name[worker.name]
        if isinstance(fit, Filtered):
            verdicts.append(fit)
            continue
        price = _price_part(costs[worker.name], least)
        waiting = _waiting_part(worker.waiting_seconds, settings.widen_after.seconds)
        free = _FREE[fit.kind]
        score = _weighted(settings.weights, price, waiting, free)
        message = _describe(fit, costs[worker.name], worker)
        verdicts.append(Scored(worker.name, message, score, price, waiting, free))
    return tuple(verdicts)


def _examine(request: Request, worker: Worker, now: float) -> Filtered | Fit:
    bound = request.residency.forbids(worker.region)
    if bound is not None:
        return Filtered(worker.name, f"it is in {worker.region}, and {bound.text}", FilterReason.REGION_NOT_ALLOWED)
    if not worker.connected:
        return Filtered(worker.name, worker.problem or "it does not answer", FilterReason.DISCONNECTED)
    if worker.unknown:
        return Filtered(worker.name, worker.unknown, FilterReason.UNKNOWN)
    if worker.stale_copy:
        return Filtered(worker.name, "its earlier copy is being removed", FilterReason.BEING_WITHDRAWN)
    fit = worker.quota.examine(request.workload, now) if worker.quota is not None else UNKNOWN
    if not worker.guarded and fit.kind not in _REFUSED:
        return Filtered(worker.name, _UNGUARDED, FilterReason.CHECK_MISSING)
    if fit.kind not in _REFUSED:
        return fit
    reason = _REFUSED[fit.kind]
    if fit.kind is FitKind.NEVER:
        reason = _NEVER.get(fit.reason, reason)
    if reason is FilterReason.EXCEEDS_MAX_QUOTA and worker.fits_later:
        reason = FilterReason.LESS_QUOTA_NOW
    return Filtered(worker.name, fit.message, reason)


def _cost(fit: Filtered | Fit, worker: Worker) -> float | None:
    """The price of an hour of the whole workload; None where a price is not known. Without devices it costs nothing."""
    if isinstance(fit, Filtered) or fit.kind is FitKind.UNKNOWN or fit.devices is None:
        return None
    if any(flavor not in worker.prices for flavor, _ in fit.devices):
        return None
    return sum(worker.prices[flavor] * count for flavor, count in fit.devices)


def _price_part(cost: float | None, least: float | None) -> float:
    if least is None:
        return 1.0
    if cost is None:
        return 0.0
    return 1.0 if cost <= least else least / cost


def _waiting_part(seconds: float | None, scale: float) -> float:
    if seconds is None or seconds <= 0:
        return 1.0
    return scale / (scale + seconds) if scale > 0 else 0.0


def _weighted(weights: DispatchWeights, price: float, waiting: float, free: float) -> float:
    total = weights.price + weights.waiting + weights.free
    if total <= 0:
        return 0.0
    return (weights.price * price + weights.waiting * waiting + weights.free * free) / total


def _describe(fit: Fit, cost: float | None, worker: Worker) -> str:
    parts, seconds = [_FIT_TEXTS[fit.kind]], worker.waiting_seconds
    if fit.kind is FitKind.UNKNOWN and worker.problem:
        parts.append(worker.problem)
    if fit.flavors:
        parts.append(f"flavor {'+'.join(fit.flavors)}")
    if fit.devices or fit.devices is None:
        parts.append("price unknown" if cost is None else f"{cost:.2f} per hour")
    parts.append("no waiting time seen yet" if seconds is None else f"{seconds:.0f} s waiting time seen")
    return ", ".join(parts)
