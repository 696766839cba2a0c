"""Why a cycle does not admit a workload even if it were alone, in one sentence; no other workload is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.flavors.eligibility import is_topology_requested
from kueue_admission.decide.flavors.evidence import ResourceUnavailable
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.reasons import LASTING, QuotaReservedReason
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.explain.answer import CheckStanding, Explanation, FlavorFigures, ResourceFigures
from kueue_admission.explain.figures import LISTED, figures, requests_of

_ROOM: Final = {
    Outcome.ADMITTED: "There is quota for it.",
    Outcome.PREEMPTING: "There is quota for it once the jobs that it preempts have stopped.",
}


def about_entry(answer: Explanation, entry: Entry) -> str:
    """Why a cycle would not admit it even if it were alone; names no other workload."""
    outcome = entry.outcome
    if outcome in (Outcome.NO_FIT, Outcome.WAITING):
        return _about_flavors(answer, entry)
    if outcome is Outcome.REFUSED:
        if last := last_of_too_few(entry):
            refusal = f"the Admission that Kueue writes: its search ends with pod set {last}"
            why = "which requests nothing that the ClusterQueue covers, and gives the pod sets after it nothing"
            return f"There is quota for it, but the API server refuses {refusal}, {why}."
        return f"There is quota for it, but the API server refuses the place that Kueue gives it{_about_slices(entry)}."
    if not entry.queue.active:
        inactive = entry.queue.inactive_message.rstrip(".")
        return f"ClusterQueue {answer.cluster_queue} is inactive: {inactive}{root_cause(answer)}."
    return f"{answer.message}."


def last_of_too_few(entry: Entry) -> str:
    """The pod set with which Kueue's search has ended too early; empty where it has not."""
    pod_sets = entry.assignment.pod_sets
    return pod_sets[-1].name if len(pod_sets) < len(entry.info.pod_sets) else ""


def _about_slices(entry: Entry) -> str:
    """The pod sets with fewer pods than a slice: Kueue places whole slices only."""
    slices_by_pod_set = {
        pod_set.name: pod_set.topology.slices
        for pod_set in entry.info.workload.pod_sets
        if pod_set.topology is not None
    }
    small = [
        f"pod set {result.name} has {result.count} pod{'' if result.count == 1 else 's'} and slices of {slices[0].size}"
        for result in entry.assignment.pod_sets
        if (slices := slices_by_pod_set.get(result.name)) and result.count < slices[0].size
    ]
    return f": {', '.join(small)}, so that no pod is placed" if small else ""


def check_text(check: CheckStanding) -> str:
    """What an AdmissionCheck says."""
    words = f" ({check.message.rstrip('.')})" if check.message else ""
    return f"AdmissionCheck {check.name} is {check.state}{words}"


def root_cause(answer: Explanation) -> str:
    """The first object below the ClusterQueue that is at fault by itself."""
    cause = next((link for link in answer.links if link.undo), None)
    return "" if cause is None else f"; the cause: {cause.kind} {cause.name}: {cause.message.rstrip('.')}"


def _about_flavors(answer: Explanation, entry: Entry) -> str:
    if answer.reason == "TopologyPlacementFailed":
        if any(figure.missing for flavor in answer.flavors for figure in flavor.resources):
            where = about_placement(answer, empty=True)
            return f"Even on empty nodes its pods cannot be placed in the topology{where}."
        return f"There is quota for it, but its pods cannot be placed in the topology{about_placement(answer)}."
    group_of = entry.queue.group_of
    uncovered_names = {
        name for request in answer.requests for name, amount in request.amounts if amount and name not in group_of
    }
    # With IgnoreUndeclared they speak against nothing.
    if uncovered_names and any(
        isinstance(evidence, ResourceUnavailable) for of in entry.assignment.pod_sets for evidence in of.evidence
    ):
        return f"ClusterQueue {answer.cluster_queue} has no quota for {', '.join(sorted(uncovered_names))}."
    bare = without_flavor(entry)
    if bare:
        names = ", ".join(pod_set.name for pod_set in bare)
        covers = f"ClusterQueue {answer.cluster_queue} covers"
        return f"Pod set {names} requests nothing that {covers}, and so gets no flavor."
    if answer.reason == "NoMatchingFlavor":
        return f"No flavor of ClusterQueue {answer.cluster_queue} suits its pods{about_placement(answer)}."
    short = shortage(answer)
    if short is None and answer.placements:
        return f"There is quota for it, but its pods have no place until others leave{about_placement(answer)}."
    if short is None:
        return f"{answer.message}."
    flavor, figure = short
    asked_amount, missing_amount = _amount(figure, figure.asked), format_amount(figure.resource, figure.missing)
    if answer.reason == "ExceedsMaxQuota":
        most = format_amount(figure.resource, figure.capacity)
        where = "on its worker clusters together" if flavor.is_of_workers else f"in flavor {flavor.flavor}"
        never = f"can never have more than {most} of it {where}"
        return f"It asks for {asked_amount}; ClusterQueue {answer.cluster_queue} {never}."
    return f"It asks for {asked_amount}; {free_text(flavor, figure)}, {missing_amount} is missing."


def free_text(flavor: FlavorFigures, figure: ResourceFigures) -> str:
    """How much is free, and where; of what all workers have together also how much that is."""
    free = format_amount(figure.resource, figure.free)
    if flavor.is_of_workers:
        return f"{free} of {format_amount(figure.resource, figure.capacity)} is free on the worker clusters together"
    return f"{free} is free in flavor {flavor.flavor}"


def shortage(answer: Explanation) -> tuple[FlavorFigures, ResourceFigures] | None:
    """The flavor and resource that it is nearest to getting, of those that lack something; None where none does."""
    short = [(flavor, figure) for flavor in answer.flavors for figure in flavor.resources if figure.missing]
    if answer.reason == "ExceedsMaxQuota":
        return min(short, key=lambda pair: pair[1].asked - pair[1].capacity, default=None)
    return min(short, key=lambda pair: (pair[1].asked > pair[1].capacity, pair[1].missing), default=None)


def about_placement(answer: Explanation, *, empty: bool = False) -> str:
    """What the topology of the first flavor lacks most; `empty`: without the workloads that are there."""
    if not answer.placements:
        return ""
    first = answer.placements[0]
    unknown = next((level for level in (first.level, first.room_level) if level not in first.levels), None)
    if unknown is not None:
        return f": Topology {first.topology} has no level {unknown}"
    if first.nodes is None:
        return ", as far as the objects tell: there is no Node among them"
    if not first.nodes:
        labels = f" with {first.node_labels}" if first.node_labels else ""
        return f": there is no node{labels}, as flavor {first.flavor} asks for"
    room = max((room.empty if empty else room.pods for room in first.rooms), default=0)
    if room and (first.mode or first.slices):
        if room >= first.count and not first.slices:
            return f": pod set {first.pod_set} fits into one {first.room_level}, but not together with the others"
        slices = f", and it asks for {first.slices}" if first.slices else ""
        return f": at most {room} of its {first.count} pods fit into one {first.room_level}{slices}"
    if not first.lacking or empty:
        return ""
    worst = first.lacking[0]
    return f": on {worst.count} of {first.nodes} node{'' if first.nodes == 1 else 's'}: {worst.reason}"


def _amount(figure: ResourceFigures, amount: int) -> str:
    return f"{format_amount(figure.resource, amount)} {figure.resource}"


def step_of_limits(namespace: str) -> str:
    """What to do about requests that are refused."""
    return (
        "Submit it again with requests that are within its limits and the LimitRanges of its namespace: "
        f"kubectl describe limitranges -n {namespace}."
    )


def without_flavor(entry: Entry) -> list[PodSet]:
    """The pod sets that have to be placed in a topology and ask for nothing that the queue has quota for."""
    errors = {result.name for result in entry.assignment.pod_sets if result.error}
    group_of = entry.queue.group_of
    return [
        pod_set
        for pod_set in entry.info.workload.pod_sets
        if pod_set.name in errors
        and is_topology_requested(pod_set, entry.queue)
        and not any(amount and name in group_of for name, amount in pod_set.requests)
    ]


def explain_alone(cache: Cache, entry: Entry) -> Explanation:
    """Headline and next step of a workload by what a cycle finds for it alone."""
    info = entry.info
    explanation = Explanation(
        workload=info.key,
        cluster="",
        state="Pending",
        reason=entry.why,
        message=entry.message(),
        headline="",
        cluster_queue=info.cluster_queue,
        requests=requests_of(info),
        flavors=figures(cache, info, entry) if entry.outcome is not Outcome.INADMISSIBLE else (),
    )
    return replace(
        explanation,
        headline=_ROOM.get(entry.outcome) or about_entry(explanation, entry),
        next_step=_step(explanation, entry),
    )


def _step(explanation: Explanation, entry: Entry) -> str:
    if entry.outcome in _ROOM:
        return "Wait: Kueue looks at the jobs of a queue in turn."
    if explanation.message and entry.info.workload.problem == explanation.message:
        return step_of_limits(entry.info.workload.namespace)
    short = shortage(explanation)
    if short is None:
        lasts = explanation.reason in LASTING
        ask = f"Ask whoever administers ClusterQueue {explanation.cluster_queue}: it does not change by itself."
        return ask if lasts else "Wait: Kueue tries it again when other jobs end."
    flavor, figure = short
    if explanation.reason == QuotaReservedReason.EXCEEDS_MAX_QUOTA:
        most = format_amount(figure.resource, figure.capacity)
        return f"Submit it again with at most {most} {figure.resource}, or ask for a larger quota."
    amount = format_amount(figure.resource, figure.missing)
    where = "on a worker cluster" if flavor.is_of_workers else f"of flavor {flavor.flavor}"
    return f"Wait until {amount} more {figure.resource} {where} is free for ClusterQueue {explanation.cluster_queue}."


def rooms_text(rooms: Sequence[str]) -> str:
    """The first of them in one sentence, with the space before it; empty without any."""
    more = f", and {len(rooms) - LISTED} more workers" if len(rooms) > LISTED else ""
    return f" By worker: {'; '.join(rooms[:LISTED])}{more}." if rooms else ""


def lacks_quota_of_workers(explanation: Explanation) -> bool:
    """Whether quota is missing here that stands for that of worker clusters."""
    short = shortage(explanation) if explanation.state == "Pending" else None
    return short is not None and short[0].is_of_workers


def room_text(cluster: str, flavor: str, resource: str, free: int, most: int) -> str:
    """How much of a flavor a queue could have now on a cluster, and how much at most."""
    return f"{cluster} {format_amount(resource, free)} of {format_amount(resource, most)} in flavor {flavor}"
