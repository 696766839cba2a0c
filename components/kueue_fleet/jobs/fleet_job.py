"""A job of a simulated fleet and its copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_admission.decide.model import Admission
from kueue_admission.kernel.manifest import inside
from kueue_admission.simulate.runner import Job
from kueue_fleet.dispatch import GivenUp
from kueue_fleet.jobs.queued_job import PodSetTemplate

BACKOFF_LIMIT: Final = 6
"""Of Jobs that do not say another."""


def pods_that_may_fail(job: Mapping[str, Any]) -> int | None:
    """How many pods may fail with their nodes before the job does; None: any number, or not known of this kind.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy. Pods that the end
    of a node takes along have the phase Failed and the condition DisruptionTarget.
    """
    spec = inside(job, "spec")
    if job.get("kind") != "Job" or "backoffLimitPerIndex" in spec:
        return None
    rules = inside(spec, "podFailurePolicy").get("rules")
    for rule in map(inside, rules if isinstance(rules, list) else ()):
        patterns = rule.get("onPodConditions")
        patterns_there = map(inside, patterns if isinstance(patterns, list) else ())
        on = [one.get("type") for one in patterns_there if one.get("status", "True") == "True"]
        if rule.get("action") == "Ignore" and "DisruptionTarget" in on:
            return None
    limit = spec.get("backoffLimit")
    return limit if isinstance(limit, int) else BACKOFF_LIMIT


@dataclass
class FleetJob(Job):
    """A job and its copies on workers.

    `offered` are the workers that have a copy, `winner` is the one that runs it, `admissions` and `why` are what each
    cluster says of it. `offered_since`, `gave_up` and `given_up` belong to the dispatcher. `lost_copy`: the manager is
    about to take the job back because of something on the worker that is written down already. `templates` are the
    pods of a job of several pod sets. `runs_on` is the cluster that ran it when the simulation began, until it is
    evicted there: its checks are Ready, and it is offered to that cluster alone. `may_fail` are the pods that may still
    fail before the job does; None: any number. `kept_apart` is why its pods never all run at once. It has no slots of
    its own: those of a compiled `Job` would be hidden.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    run_limit: int | None = None
    templates: Sequence[PodSetTemplate] = ()
    runs_on: str = ""
    may_fail: int | None = None
    kept_apart: str = ""
    offered: dict[str, None] = field(default_factory=dict)
    winner: str | None = None
    admissions: dict[str, Admission] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    offered_since: float | None = None
    gave_up: bool = False
    given_up: dict[str, GivenUp] = field(default_factory=dict)
    lost_copy: bool = False
