"""The one sentence that says why, and the one that says what to do, derived from the diagnosis and its numbers."""

from __future__ import annotations

from dataclasses import replace

from kueue_admission.api.resources import DEPLOYMENT, KUEUE_NAMESPACE, RESOURCES
from kueue_admission.decide.model import CheckState
from kueue_admission.decide.reasons import AdmittedReason, EvictionReason, InactiveReason, QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.explain.answer import Explanation
from kueue_admission.explain.checks import FAILED
from kueue_admission.explain.diagnosis import Diagnosis
from kueue_admission.explain.entry_text import (
    about_entry,
    about_placement,
    check_text,
    last_of_too_few,
    root_cause,
    step_of_limits,
)
from kueue_admission.explain.turns import about_turn, is_behind_others, turn_step
from kueue_admission.explain.unplaceable import is_dispatched
from kueue_admission.kernel.known_messages import code_of
from kueue_admission.kernel.names import (
    FALLBACK_CHECK,
    MULTIKUEUE_CONTROLLER,
    PROVISIONING_CONTROLLER,
    SINGLE_POD_SET_REFUSAL,
)
from kueue_admission.read.dispatch_report import ParsedReport, Scored

_STATES = {
    "Finished": "It is finished; there is nothing to wait for.",
    "Admitted": "It is admitted: Kueue no longer holds it back.",
    "Evicted": "It was evicted and keeps its quota until its pods are gone.",
}


def headline(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """The dominant reason in plain words."""
    failed_check = next((check for check in explanation.checks if check.state in FAILED), None)
    if failed_check is not None and explanation.state in ("Pending", "Evicted"):
        has = "It has no quota" if explanation.state == "Pending" else "It loses its quota when its pods are gone"
        return f"{has}, as {check_text(failed_check)}."
    if explanation.state == "QuotaReserved":
        return _about_reservation(explanation, diagnosis)
    if explanation.state == "Admitted" and diagnosis.entry is not None:
        return f"{diagnosis.message}."
    if explanation.state == "Admitted" and _never_dispatched(explanation, diagnosis):
        return "It never runs: it requests nothing that the queue covers, so the manager admitted it without a worker."
    if explanation.state == "Admitted" and not explanation.holdings:
        bare = "It got no flavor, and its pods no node selector of one, as they request nothing that the queue covers."
        return f"{_STATES['Admitted']} {bare}"
    if explanation.state != "Pending":
        over = _left_over(explanation, diagnosis) if explanation.state == "Admitted" else ""
        over += _not_ready(explanation, diagnosis) if explanation.state == "Admitted" else ""
        return f"{_STATES.get(explanation.state, diagnosis.message)}{over}"
    if explanation.reason == EvictionReason.DEACTIVATED and explanation.evicted_message:
        return f"{explanation.evicted_message.rstrip('.')}."
    if diagnosis.blocked or diagnosis.entry is None:
        return f"{diagnosis.message}."
    if diagnosis.outlook is not None and (diagnosis.fits or diagnosis.admits):
        return f"{about_turn(explanation, diagnosis.outlook)}{_left_over(explanation, diagnosis)}"
    return about_entry(explanation, diagnosis.entry)


def _not_ready(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """That its pods are not ready, and when Kueue evicts it for that."""
    engine = diagnosis.engine
    info, settings = engine.workloads.get(explanation.workload), engine.cache.configuration.wait_for_pods_ready
    if info is None or info.pods_ready or info.pods_ready_since is None:
        return ""
    limit, begin = (settings.timeout if settings is not None else None), info.admitted_at
    if settings is not None and info.waits_for_recovery:
        limit, begin = settings.recovery_timeout, info.pods_ready_since
    if limit is None or begin is None:
        return " Its pods are not ready."
    left = begin + limit - engine.now
    when = f"in {left:.0f} seconds" if left > 0 else "now, as that takes too long"
    return f" Its pods are not ready, and Kueue evicts it {when} (waitForPodsReady)."


def _left_over(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """The pods beyond whole slices: Kueue places slices (https://github.com/kubernetes-sigs/kueue/issues/15277)."""
    info = diagnosis.engine.workloads.get(explanation.workload)
    for pods in info.pod_sets if info is not None else ():
        size = pods.pod_set.topology.slices[0].size if pods.pod_set.topology and pods.pod_set.topology.slices else 1
        if pods.count % size:
            over = f"{pods.count % size} of the {pods.count} pods of {pods.name}"
            return f" But Kueue gives no node to {over}: they come in slices of {size}."
    return ""


def _never_dispatched(explanation: Explanation, diagnosis: Diagnosis) -> bool:
    """Whether it got no flavor on a manager, and so no check: no worker gets a copy of it."""
    info = diagnosis.engine.workloads.get(explanation.workload)
    return info is not None and not explanation.holdings and is_dispatched(diagnosis.engine.objects, info.workload)


def unprinted_kind(diagnosis: Diagnosis) -> str | None:
    """The kind that the reason is about, where none of it is among the objects: the dump lacks it, not the cluster."""
    objects = diagnosis.engine.objects
    if diagnosis.blocked and diagnosis.reason == QuotaReservedReason.MISCONFIGURED:
        there = {"LocalQueue": objects.local_queues, "ClusterQueue": objects.cluster_queues}
        return next((kind for kind, manifests_there in there.items() if not manifests_there), None)
    if diagnosis.entry is None or diagnosis.entry.queue.active:
        return None
    reasons = {reason for reason, _ in diagnosis.entry.queue.inactive}
    lacking = {
        "ResourceFlavor": InactiveReason.FLAVOR_NOT_FOUND in reasons and not objects.flavors,
        "Topology": InactiveReason.TOPOLOGY_NOT_FOUND in reasons and not objects.topologies,
        "AdmissionCheck": InactiveReason.ADMISSION_CHECK_NOT_FOUND in reasons and not objects.checks,
    }
    return next((kind for kind, is_lacking in lacking.items() if is_lacking), None)


def not_known(explanation: Explanation, kind: str) -> Explanation:
    """The explanation where the objects lack a whole kind, so that why it waits cannot be said."""
    return replace(
        explanation,
        reason=None,
        message="",
        written=explanation.written and replace(explanation.written, agrees=True),
        headline=f"Why it waits is not known: there is no {kind} among the objects.",
        changes=(),
        next_step=f"Add what `kubectl get {RESOURCES[kind]} -A -o yaml` prints to the objects, and explain it again.",
    )


def still_suspended(explanation: Explanation, job: str) -> Explanation:
    """The explanation of an admitted workload whose job Kueue has not started."""
    log = f"kubectl logs deployment/{DEPLOYMENT} -n {KUEUE_NAMESPACE}"
    return replace(
        explanation,
        headline=f"It is admitted, and {job} is still suspended: Kueue has not started it.",
        next_step=f"Unless it was admitted a moment ago, see in Kueue's log what refuses the job's start: {log}.",
    )


def code_of_reason(explanation: Explanation, diagnosis: Diagnosis) -> str | None:
    """The code of what Kueue, its checks, or what is below the queue say; else that of jobs in the way."""
    checks, links = (check.message for check in explanation.checks), (link.message for link in explanation.links)
    code = code_of("\n".join((explanation.reason or "", explanation.message, diagnosis.message, *checks, *links)))
    if code is None and diagnosis.outlook is not None and is_behind_others(explanation, diagnosis.outlook):
        return "KF114"
    return code


def _about_reservation(explanation: Explanation, diagnosis: Diagnosis) -> str:
    if SINGLE_POD_SET_REFUSAL in diagnosis.message:
        return "GKE refuses its ProvisioningRequest, so it keeps its quota and never starts."
    if explanation.reason == AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS:
        placing = (
            f"has no place for its pods{about_placement(explanation)}"
            if explanation.placements
            else "places its pods next"
        )
        return f"It has its quota, and Kueue {placing}."
    info = diagnosis.engine.workloads.get(explanation.workload)
    fallback = info.checks.get(FALLBACK_CHECK) if info is not None and not info.pods_ready else None
    if fallback is not None:
        return f"{fallback.message}."
    if explanation.checks:
        return f"It has its quota, and {check_text(explanation.checks[0])}{root_cause(explanation)}."
    return f"{diagnosis.message}."


_NEXT = {
    "Finished": "Nothing to do.",
    "Admitted": "Look at the pods: kubectl describe pod; Kueue has done its part.",
    "Evicted": "See whether its pods are stuck in Terminating: kubectl get pods.",
}


def step_of_waiting(explanation: Explanation, text: str = "listed changes") -> str:
    """To wait for the end of other jobs, or make a change; `text` says where these are. Empty: it does not help."""
    admitting = [change for change in explanation.changes if change.admits]
    waits = [change for change in admitting if change.kind == "finish"]
    others = f", or make one of the {text}" if len(waits) < len(admitting) else ""
    return f"{_sentence(waits[0].what)}{others}." if waits else ""


def next_step(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """What to do now."""
    undo = next((check.undo for check in explanation.checks if check.undo), "")
    if undo and explanation.state in ("Pending", "Evicted"):
        return f"{_sentence(undo)}."
    if explanation.state in _NEXT:
        resubmit = f"Delete it, and submit it with a request that ClusterQueue {explanation.cluster_queue} covers."
        return (
            resubmit
            if explanation.state == "Admitted" and _never_dispatched(explanation, diagnosis)
            else _NEXT[explanation.state]
        )
    if explanation.reason == AdmittedReason.PENDING_DELAYED_TOPOLOGY_REQUESTS:
        return _about_late_placement(explanation)
    undo = next((link.undo for link in explanation.links if link.undo), "")
    if undo and (explanation.state == "QuotaReserved" or explanation.reason == QuotaReservedReason.SUSPENDED):
        return f"{_sentence(undo)}."
    if explanation.state == "QuotaReserved":
        return _about_checks(explanation, diagnosis)
    if diagnosis.blocked and explanation.reason == QuotaReservedReason.PENDING_EVALUATION:
        return "Wait: Kueue tries it again when that time is over."
    admitting = [change for change in explanation.changes if change.admits]
    entry, outlook = diagnosis.entry, diagnosis.outlook
    if entry is not None and entry.outcome is Outcome.REFUSED:
        return _step_of_refused(explanation, entry)
    if outlook is not None and outlook.admits:
        return turn_step(explanation, outlook)
    if explanation.reason == "WaitingForQuota" and (step := step_of_waiting(explanation)):
        return step
    if entry is not None and explanation.message and entry.info.workload.problem == explanation.message:
        return step_of_limits(entry.info.workload.namespace)
    if admitting:
        return f"{_sentence(admitting[0].what)}."
    return _without_cluster_queue(explanation, diagnosis) or _without_remedy(explanation)


def _step_of_refused(explanation: Explanation, entry: Entry) -> str:
    last = last_of_too_few(entry)
    if last:
        coverage = f"that ClusterQueue {explanation.cluster_queue} covers"
        return f"Submit it again with a request of pod set {last} for a resource {coverage}."
    return "Submit it again with a podSetSliceSize of at most the number of pods in its pod set."


def _without_cluster_queue(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """What to make where its LocalQueue names a ClusterQueue that is not there; empty for others."""
    queues, namespace = diagnosis.engine.queues, explanation.workload.partition("/")[0]
    local = queues.local_queues.get(f"{namespace}/{explanation.local_queue}")
    if explanation.reason != QuotaReservedReason.MISCONFIGURED or local is None:
        return ""
    if local.cluster_queue in queues.cache.queues:
        return ""
    return (
        f"Create ClusterQueue {local.cluster_queue}, or replace LocalQueue {local.key} by one of another ClusterQueue."
    )


def _without_remedy(explanation: Explanation) -> str:
    if explanation.blockers:
        return f"Look at what is in its way: kueue-fleet explain {explanation.blockers[0].workload}."
    if explanation.position is not None and explanation.position.ahead:
        first = explanation.position.ahead[0].workload
        return f"Look at the first of the {explanation.position.place - 1} ahead of it: kueue-fleet explain {first}."
    if explanation.placements and not explanation.placements[0].nodes:
        return f"See whether its nodes are there, Ready and free: {_get_nodes(explanation)}."
    if any(flavor.is_of_workers for flavor in explanation.flavors):
        return "Explain it on its worker clusters too (--objects NAME=PATH once for each): it lacks quota of theirs."
    if explanation.changes:
        return f"{_sentence(explanation.changes[0].what)}; it still waits after that, so explain it again."
    return "No single change was found that admits it; read Kueue's message above."


def fits_nowhere(explanation: Explanation) -> Explanation:
    """The explanation of a workload on the manager that no worker can ever hold."""
    keeps = (
        ""
        if explanation.state == "Pending"
        else "; it keeps its quota here until it is deleted, and others wait for that"
    )
    return replace(
        explanation,
        headline=f"No worker cluster can ever hold it, so it never runs{keeps}. {explanation.headline}",
        changes=(),
        is_unplaceable=True,
        code="KF104",
        next_step="Delete it, and submit it with no more than the queue can have on one worker; or raise that quota.",
    )


def _about_checks(explanation: Explanation, diagnosis: Diagnosis) -> str:
    """Where to look on, by who answers the checks that are not Ready."""
    engine = diagnosis.engine
    checks = engine.workloads[explanation.workload].checks
    waiting = [name for name, check in sorted(checks.items()) if check.state is not CheckState.READY]
    controllers = {engine.cache.checks[name].controller for name in waiting if name in engine.cache.checks}
    if SINGLE_POD_SET_REFUSAL in diagnosis.message:
        return (
            "Delete it. Set podSetMergePolicy in the check's provisioningRequest and give all of its GPU pods the same "
            "requests, node selector, tolerations and affinity, or ask for GPUs in one role only; then submit it again."
        )
    if PROVISIONING_CONTROLLER in controllers:
        namespace = explanation.workload.partition("/")[0]
        return (
            f"Look at its ProvisioningRequest: kubectl get provisioningrequests -n {namespace}. One that is Accepted "
            "waits for the cloud to have the nodes."
        )
    if controllers == {MULTIKUEUE_CONTROLLER}:
        if explanation.dispatch is not None:
            return _about_dispatch(explanation.dispatch)
        return (
            "It waits for a worker cluster to admit it: explain it on each worker that has it, or should have it "
            "(--objects NAME=PATH once for each)."
        )
    return (
        f"Look at the controller of AdmissionCheck {', '.join(waiting)}." if waiting else "Wait: Kueue admits it next."
    )


def _about_late_placement(explanation: Explanation) -> str:
    admitting = [change for change in explanation.changes if change.admits]
    if not explanation.placements:
        return "Wait: Kueue tries to place its pods at least every 30 seconds."
    if admitting:
        return f"{_sentence(admitting[0].what)}; Kueue tries again at least every 30 seconds."
    return (
        f"See whether its nodes are there, Ready and free: {_get_nodes(explanation)}, kubectl get provisioningrequests "
        f"-n {explanation.workload.partition('/')[0]}. Kueue tries again at least every 30 seconds."
    )


def _get_nodes(explanation: Explanation) -> str:
    labels = explanation.placements[0].node_labels.replace(", ", ",")
    return f"kubectl get nodes{f' -l {labels}' if labels else ''}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _about_dispatch(report: ParsedReport) -> str:
    """Where to look on, by what the fleet's own dispatcher decided."""
    if report.nominated:
        names = ", ".join(report.nominated)
        return f"It waits for {names} to admit it: explain it there (--objects NAME=PATH once for each)."
    if any(isinstance(verdict, Scored) for verdict in report.verdicts):
        return "Wait: it is offered to the clusters listed under Dispatch again."
    return "Change what rules its clusters out, as listed under Dispatch; it is then offered to them."
