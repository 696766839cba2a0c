"""How each AdmissionCheck of a workload stands, what it says, and what undoes it where it failed."""

from __future__ import annotations

from typing import Final

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.model import CheckState, WorkloadCheck
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import CheckStanding

FAILED: Final = (CheckState.RETRY, CheckState.REJECTED)
"""States after which a workload loses its quota."""


def checks_of(engine: Engine, info: WorkloadInfo) -> tuple[CheckStanding, ...]:
    """Every check that is not Ready, those that failed first; without quota only these.

    A failed one is as the workload came with it: the core has drawn the consequence already.
    """
    came_with = {check.name: check for check in info.workload.status.checks}
    if not info.is_reserved and not has_failed(info):
        return ()
    checks = [
        came_with[name] if name in came_with and came_with[name].state in FAILED else check
        for name, check in sorted(info.checks.items())
    ]
    standings = [_standing(engine, info, check) for check in checks if check.state is not CheckState.READY]
    return tuple(sorted(standings, key=lambda each: each.state not in FAILED))


def has_failed(info: WorkloadInfo) -> bool:
    """Whether a check failed and the workload has no quota: Kueue resets a check only as it takes the quota away."""
    return not info.is_reserved and any(info.has_check(state) for state in FAILED)


def _standing(engine: Engine, info: WorkloadInfo, check: WorkloadCheck) -> CheckStanding:
    known_check = engine.cache.checks.get(check.name)
    return CheckStanding(
        name=check.name,
        controller="" if known_check is None else known_check.controller,
        state=check.state.value,
        message=check.message,
        undo=_undo(info, check),
    )


def _undo(info: WorkloadInfo, check: WorkloadCheck) -> str:
    """What becomes of it by itself, or what a user has to do."""
    if check.state not in FAILED:
        return ""
    if not info.is_reserved:
        namespace, _, name = info.key.partition("/")
        return (
            f"fix what the check says, then delete the Workload (kubectl delete workload {name} -n {namespace}): "
            "Kueue resets a check only as it takes quota away, but makes another Workload for the job"
        )
    if check.state is CheckState.REJECTED:
        return "Kueue deactivates the workload: fix what the check says, then set spec.active to true"
    after = "" if check.requeue_after is None else f" {check.requeue_after:.0f} seconds after it failed"
    return f"Kueue takes the quota away, sets the check to Pending, and tries again{after}"
