"""What is wrong with jobs that could be read: one module per subject, each of which registers its checks here.

A check gets one job with its ClusterQueue and pod sets. Kueue's own decision about the job, and rules between jobs, are
not here: see `fleet_simulation.job_findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from kueue_admission.kernel.problem import Problem, errors_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.jobs.queued_job import QueuedJob

JobCheck = Callable[[FleetSpec, QueuedJob], Iterator[Problem]]
"""Yields the errors and warnings of a job for a fleet."""
_CHECKS: Final[list[JobCheck]] = []
_CHECKS_OF_RIGHT_JOBS: Final[list[JobCheck]] = []


def job_check(check: JobCheck) -> JobCheck:
    """Registers a check of every job."""
    _CHECKS.append(check)
    return check


def right_job_check(check: JobCheck) -> JobCheck:
    """Registers a check of jobs in which `job_check` finds no error: what else is worth knowing of them."""
    _CHECKS_OF_RIGHT_JOBS.append(check)
    return check


def check_job(fleet: FleetSpec, job: QueuedJob) -> list[Problem]:
    """Every problem of a job, by the modules' names."""
    _import_checks()
    problems = [problem for check in _CHECKS for problem in check(fleet, job)]
    if not errors_of(problems):
        problems += [problem for check in _CHECKS_OF_RIGHT_JOBS for problem in check(fleet, job)]
    return problems


@cache
def _import_checks() -> None:
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    for checks in (_CHECKS, _CHECKS_OF_RIGHT_JOBS):
        checks.sort(key=lambda check: check.__module__)  # Whichever module was imported first.
