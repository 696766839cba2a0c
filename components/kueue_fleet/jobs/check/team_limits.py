"""What the ResourceQuotas of teams limit, which Kueue does not look at: objects, and what their pods request.

Kueue admits a job that they do not let run, and its pods, or the job itself, are refused. What a namespace holds at
once is not simulated: of the jobs of a simulation it is said that they may be too many. The Jobs of a JobSet are not
counted.

Source: kubernetes@v1.36.3 pkg/quota/v1/evaluator/core/pods.go (PodUsageFunc, Constraints), pkg/quota/v1/install
(object counts); https://kubernetes.io/docs/concepts/policy/resource-quotas/.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import inside, maps_in
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.check.amounts import amounts_of, requests_of
from kueue_fleet.jobs.queued_job import QueuedJob, of_job, pod_set_templates
from kueue_fleet.jobs.workload_file import JobEntry
from kueue_fleet.objects.teams import default_limits

_COUNTED: Final = {"Job": "count/jobs.batch", "JobSet": "count/jobsets.jobset.x-k8s.io"}
"""The kinds of jobs that are counted here, and what limits them."""
_COMPUTE: Final = ("cpu", "memory")
"""What all containers have to say where it is limited."""
_MOST_NAMED: Final = 3
_Amounts = defaultdict[str, Decimal]


@job_check
def check_team_limits(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Jobs that ask for more than a ResourceQuota of their namespace gives, were they alone there."""
    if (team := fleet.team_in(job.namespace)) is None:
        return
    totals = _counts_of(job.data)
    for name, limit in _limits(team).items():
        where = f"resourceQuota[{name}] of team {team.name}"
        if totals[name] > limit:
            wrong = f"has {_amount_text(name, totals[name])}, and {where} gives {_amount_text(name, limit)}"
            yield of_job(
                job.document, JOB, f"{wrong}: Kueue admits it, and not all of it is made", "request less, or raise it"
            )
        elif (of := _compute_of(name)) and (silent := _silent(job.data, *of)) and not _defaults(team, *of):
            wrong = f"container {silent} has no {'.'.join(of)}, and {where} refuses pods without"
            yield of_job(job.document, JOB, wrong, "write it, or give the team a limitRange with a default")


def warn_of_many(fleet: FleetSpec, entries: Iterable[JobEntry], manifests: Iterable[Document]) -> Iterator[Problem]:
    """What a simulation does not say of the jobs of teams: that together they are more than a ResourceQuota takes."""
    totals_by_team: dict[str, _Amounts] = defaultdict(_none)
    for job in manifests:
        _add(totals_by_team[_namespace(job)], _counts_of(job.data))
    for entry in entries:
        pods = Decimal(entry.count * entry.pods)
        totals = {name: Quantity(str(request)).decimal * pods for name, request in entry.requests.items()}
        counts = {_COUNTED["Job"]: Decimal(entry.count), "pods": pods, "count/pods": pods}
        _add(
            totals_by_team[entry.namespace],
            {**totals, **{f"requests.{name}": value for name, value in totals.items()}, **counts},
        )
    for namespace, team in ((name, owner) for owner in fleet.teams for name in owner.namespace_names):
        sums, limits = totals_by_team[namespace], _limits(team)
        over = [name for name, limit in limits.items() if sums[name] > limit]
        if over:
            amounts = [
                f"{_amount_text(name, sums[name])} (of {_amount_text(name, limits[name])})"
                for name in over[:_MOST_NAMED]
            ]
            wrong = f"all jobs in namespace {namespace} together have {', '.join(amounts)}, and what its ResourceQuota "
            wrong += "refuses while others are there, ended jobs included, is not simulated"
            fix = "let ended jobs be deleted by ttlSecondsAfterFinished, or raise it"
            yield JOB.at(f"teams[{team.name}].resourceQuota", wrong, fix, severity="warning")


def _namespace(job: Document) -> str:
    return str(inside(job.data, "metadata").get("namespace") or "default")


def _limits(team: TeamEntry) -> dict[str, Decimal]:
    """What the namespace has where jobs are submitted, and so everywhere."""
    limits = {**default_limits(submits=True), **team.resource_quota}
    return {name: Quantity(str(value)).decimal for name, value in limits.items()}


def _counts_of(job: Mapping[str, Any]) -> _Amounts:
    """What the job counts as in a ResourceQuota, by the name of the limit."""
    totals = _none()
    for pod_set in pod_set_templates(job):
        _add(totals, dict.fromkeys(("pods", "count/pods"), Decimal(pod_set.count)))
        for container in maps_in(inside(pod_set.template, "spec").get("containers")):
            limits, requests = amounts_of(container, "limits"), requests_of(container)
            for prefixes, amounts in ((("limits.",), limits), (("", "requests."), requests)):
                for name, text in amounts.items():
                    amount = Quantity(text).decimal * pod_set.count
                    _add(totals, dict.fromkeys((f"{prefix}{name}" for prefix in prefixes), amount))
    if (kind := str(job.get("kind"))) in _COUNTED:
        totals[_COUNTED[kind]] += 1
    return totals


def _none() -> _Amounts:
    return defaultdict(Decimal)


def _add(amounts: _Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        amounts[name] += amount


def _compute_of(name: str) -> tuple[str, str] | None:
    """Field and resource of a limit that all containers have to state; None: of another one."""
    field, _, resource = name.rpartition(".")
    return (field or "requests", resource) if resource in _COMPUTE and field in ("", "requests", "limits") else None


def _silent(job: Mapping[str, Any], field: str, resource: str) -> str:
    """A container that does not say the resource; empty: there is none."""
    fields = (field, "limits") if field == "requests" else (field,)
    for pod_set in pod_set_templates(job):
        for container in maps_in(inside(pod_set.template, "spec").get("containers")):
            if resource not in amounts_of(container, *fields):
                return str(container.get("name"))
    return ""


def _defaults(team: TeamEntry, field: str, resource: str) -> bool:
    """Whether the team's LimitRange says it for those who do not."""
    bounds = team.limit_range
    if bounds is None:
        return False
    amounts = (bounds.default, bounds.max, *((bounds.default_request, bounds.min) if field == "requests" else ()))
    return any(resource in amount for amount in amounts)


def _amount_text(name: str, amount: Decimal) -> str:
    return f"{Quantity(amount)} {name}"
