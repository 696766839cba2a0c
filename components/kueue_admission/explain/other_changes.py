"""Changes for a workload that quota alone does not help: references, stops, gates, flavors, namespaces, checks."""

from __future__ import annotations

from dataclasses import replace

from kueue_admission.api.cohort_tree import with_ancestors
from kueue_admission.api.selector import LabelSelector
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CheckStateChanged
from kueue_admission.decide.flavors.evidence import AffinityMismatch, UntoleratedTaint
from kueue_admission.decide.model import (
    AdmissionCheck,
    CheckState,
    LocalQueue,
    Objects,
    ResourceFlavor,
    Topology,
    Workload,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet, Toleration
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.reasons import DEACTIVATED_BY_HAND, InactiveReason
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.explain.changes import Change
from kueue_admission.explain.checks import FAILED
from kueue_admission.explain.diagnosis import diagnose, only_relevant
from kueue_admission.explain.trials import (
    Edit,
    Trials,
    add_objects,
    edit_each,
    edit_named,
    edit_pods,
    edit_queue,
    together,
)
from kueue_admission.kernel.names import (
    HOSTNAME_LABEL,
    MULTIKUEUE_CONTROLLER,
    NAMESPACE_NAME_LABEL,
    PROVISIONING_CONTROLLER,
)
from kueue_admission.kernel.suggest import nearest


def blocked_changes(trials: Trials, workload: Workload) -> None:
    """For a workload in no queue: activate it, correct or restart its LocalQueue, open its gate."""
    objects = trials.snapshot.objects
    if any(check.state in FAILED for check in workload.status.checks):
        failed_check_changes(trials, workload)
        return
    if not workload.active:
        is_evicted = workload.status.evicted_message not in ("", DEACTIVATED_BY_HAND)
        what = f"{'remove the cause of that, then ' if is_evicted else ''}set spec.active to true"
        # A check or a limit of time may decide the same again.
        then = " if that does not happen again" if is_evicted else ""
        trials.offer("active", what, Edit(workload=_submitted_again), then=then)
        return
    queue_name = workload.local_queue
    local = next((queue for queue in objects.local_queues if queue.key == queue_name), None)
    if local is None:
        _missing_local_queue(trials, workload, objects)
        return
    if local.stop_policy != "None":
        edit = _edit_local(replace(local, stop_policy="None"))
        trials.offer("stopPolicy", f"set stopPolicy of LocalQueue {local.key} to None", edit)
        return
    queues = [queue.name for queue in objects.cluster_queues]
    if local.cluster_queue not in queues:
        near = nearest(local.cluster_queue, queues)
        if near:
            what = f"replace LocalQueue {local.key} by one with clusterQueue: {near}"
            trials.offer("clusterQueue", what, _edit_local(replace(local, cluster_queue=near)))
    elif workload.gated_by:
        what = f"remove the annotation kueue.x-k8s.io/admission-gated-by ({workload.gated_by})"
        trials.offer("gate", what, Edit(workload=lambda w: replace(w, gated_by="")))


def _missing_local_queue(trials: Trials, workload: Workload, objects: Objects) -> None:
    names = [queue.name for queue in objects.local_queues if queue.namespace == workload.namespace]
    near = nearest(workload.queue, names) or (names[0] if len(names) == 1 else None)
    if near and not workload.origin:
        what = f"name the LocalQueue {near} in the label kueue.x-k8s.io/queue-name"
        trials.offer("queueName", what, Edit(workload=lambda w: replace(w, queue=near)))
    queues = [queue.name for queue in objects.cluster_queues]
    target = nearest(workload.queue, queues) or (queues[0] if len(queues) == 1 else None)
    if target and workload.queue:
        local_queue = LocalQueue(workload.namespace, workload.queue, target)
        what = f"create LocalQueue {local_queue.key} with clusterQueue: {target}"
        trials.offer("localQueue", what, add_objects("local_queues", [local_queue]))


def failed_check_changes(trials: Trials, workload: Workload) -> None:
    """For a workload whose check failed after its quota was gone: another Workload of its job, with fresh checks."""
    what = f"delete the Workload (kubectl delete workload {workload.name} -n {workload.namespace}): Kueue makes another"
    what = f"{what} for its job, with its checks Pending"
    then = " if the check, which decides again, is Ready then"
    trials.offer("check", what, Edit(workload=_submitted_again), then=then)


def _submitted_again(workload: Workload) -> Workload:
    """Active, and without back-offs and failed checks."""
    return replace(workload, active=True, status=WorkloadStatus())


def _edit_local(local_queue: LocalQueue) -> Edit:
    return edit_each("local_queues", lambda known: local_queue if known.key == local_queue.key else known)


def inactive_changes(trials: Trials, entry: Entry) -> None:
    """For an inactive ClusterQueue: everything that makes it inactive, put right at once."""
    queue = entry.queue
    fixes = [
        _fix(trials.before.engine, queue, reason) for reason in dict.fromkeys(reason for reason, _ in queue.inactive)
    ]
    known_fixes = [fix for fix in fixes if fix is not None]
    if known_fixes and len(known_fixes) == len(fixes):
        what = "; ".join(what for what, _ in known_fixes)
        trials.offer("clusterQueue", f"ClusterQueue {queue.name}: {what}", together(edit for _, edit in known_fixes))


def _fix(engine: Engine, queue: QueueNode, reason: InactiveReason) -> tuple[str, Edit] | None:
    """What undoes one reason; None where only what is outside the queue and its references does."""
    cache, name = engine.cache, queue.name
    if reason is InactiveReason.STOPPED:
        return "set its stopPolicy to None", edit_queue(name, lambda q: replace(q, stop_policy="None"))
    if reason is InactiveReason.FLAVOR_NOT_FOUND:
        missing_flavors = [flavor for group in queue.groups for flavor in group.flavors if flavor not in cache.flavors]
        near = nearest(missing_flavors[0], cache.flavors) if len(missing_flavors) == 1 else None
        instead = f", or name {near} instead" if near else ""
        what = f"create ResourceFlavor {', '.join(missing_flavors)}{instead}"
        return what, add_objects("flavors", map(ResourceFlavor, missing_flavors))
    if reason is InactiveReason.TOPOLOGY_NOT_FOUND:
        lacking = sorted(set(queue.tas_flavors.values()).difference(cache.topology_specs))
        topologies = (Topology(topology, (HOSTNAME_LABEL,)) for topology in lacking)
        return f"create Topology {', '.join(lacking)}", add_objects("topologies", topologies)
    if reason is InactiveReason.COHORT_CYCLE:
        parents = {cohort.name: cohort.parent for cohort in engine.objects.cohorts}
        last = with_ancestors(queue.spec.cohort, parents)[-1]
        what = f"remove parentName of Cohort {last}, which ends the cycle of its cohorts"
        return what, edit_named("cohorts", (last,), lambda cohort: replace(cohort, parent=None))
    return _fix_checks(engine, queue, reason)


def _fix_checks(engine: Engine, queue: QueueNode, reason: InactiveReason) -> tuple[str, Edit] | None:
    missing_checks = [name for name in sorted(queue.checks) if name not in engine.cache.checks]
    checks = {name: engine.cache.checks[name] for name in sorted(queue.checks) if name in engine.cache.checks}
    inactive = [name for name, check in checks.items() if not check.active]
    dispatching = [name for name, check in checks.items() if check.controller == MULTIKUEUE_CONTROLLER]
    asking = [name for name, check in checks.items() if check.controller == PROVISIONING_CONTROLLER]
    if reason is InactiveReason.ADMISSION_CHECK_NOT_FOUND:
        return f"create AdmissionCheck {', '.join(missing_checks)}", _set_checks(engine.objects, missing_checks)
    if reason is InactiveReason.ADMISSION_CHECK_INACTIVE:
        return f"make AdmissionCheck {', '.join(inactive)} active", _set_checks(engine.objects, inactive)
    if reason is InactiveReason.MULTIPLE_MULTI_KUEUE_ADMISSION_CHECKS:
        return f"keep one of its AdmissionChecks {', '.join(dispatching)}", _without_checks(queue.name, dispatching[1:])
    if reason is InactiveReason.MULTI_KUEUE_WITH_PROVISIONING_REQUEST:
        what = f"remove its AdmissionCheck {', '.join(asking)}: the workers' queues ask for nodes"
        return what, _without_checks(queue.name, asking)
    if reason is InactiveReason.MULTI_KUEUE_ADMISSION_CHECK_APPLIED_PER_FLAVOR:
        whole = {rule.name: rule.model_copy(update={"on_flavors": ()}) for rule in queue.spec.checks}
        rules = tuple(whole[rule.name] if rule.name in dispatching else rule for rule in queue.spec.checks)
        what = f"remove onFlavors of its AdmissionCheck {', '.join(dispatching)}"
        return what, edit_queue(queue.name, lambda q: replace(q, checks=rules))
    return None


def _without_checks(queue: str, names: list[str]) -> Edit:
    return edit_queue(queue, lambda q: replace(q, checks=tuple(rule for rule in q.checks if rule.name not in names)))


def _set_checks(objects: Objects, names: list[str]) -> Edit:
    known_checks = {check.name: check for check in objects.checks}
    checks = tuple(
        replace(known_checks.get(name) or AdmissionCheck(name, "example.com/controller"), active=True) for name in names
    )

    def change(objects: Objects) -> Objects:
        rest = tuple(check for check in objects.checks if check.name not in names)
        return replace(objects, checks=(*rest, *checks))

    return Edit(objects=change)


def namespace_changes(trials: Trials, entry: Entry) -> None:
    """Labels that make the namespace match the queue's selector, or a selector that matches."""
    selector = entry.queue.spec.namespace_selector
    namespace = entry.info.workload.namespace
    if selector is None or NAMESPACE_NAME_LABEL in selector.keys:  # The API server sets the label of the name.
        queue = entry.queue.name
        edit = edit_queue(queue, lambda q: replace(q, namespace_selector=LabelSelector()))
        what = f"let namespaceSelector of ClusterQueue {queue} match namespace {namespace}"
        trials.offer("namespaceSelector", f"{what}: {{}} matches all", edit)
        return
    labels_needed = dict(selector.match_labels or {})
    unwanted_labels = []
    for requirement in selector.match_expressions or ():
        if requirement.operator in ("In", "Exists"):
            labels_needed[requirement.key] = requirement.values[0] if requirement.values else "true"
        else:
            unwanted_labels.append(requirement.key)

    def change(objects: Objects) -> Objects:
        labels = dict(objects.namespaces)
        pairs = {key: value for key, value in labels.get(namespace, ()) if key not in unwanted_labels}
        labels[namespace] = tuple(sorted({**pairs, **labels_needed}.items()))
        return replace(objects, namespaces=tuple(labels.items()))

    label_text = ", ".join(f"{key}={value}" for key, value in sorted(labels_needed.items()))
    steps = [f"label namespace {namespace} with {label_text}"] if labels_needed else []
    steps += [f"remove label {', '.join(unwanted_labels)} of namespace {namespace}"] if unwanted_labels else []
    trials.offer("namespace", ", and ".join(steps), Edit(objects=change))


def flavor_changes(trials: Trials, entry: Entry) -> None:
    """A toleration, or a node selector that a flavor matches, for each flavor that is ruled out by the pods."""
    for pod_set in entry.assignment.pod_sets:
        for _, attempts in pod_set.considered:
            for attempt in attempts:
                for piece in attempt.evidence:
                    if isinstance(piece, UntoleratedTaint):
                        _tolerate(trials, entry, piece.flavor)
                    elif isinstance(piece, AffinityMismatch):
                        _select(trials, entry, piece.flavor)


def _tolerate(trials: Trials, entry: Entry, name: str) -> None:
    flavor = trials.before.engine.cache.flavors[name]
    taints = [taint for taint in flavor.node_taints if taint.effect in ("NoSchedule", "NoExecute")]
    tolerations = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in taints)
    taint_text = ", ".join(taint.text for taint in taints)

    def change(pod_set: PodSet) -> PodSet:
        return replace(pod_set, tolerations=(*pod_set.tolerations, *tolerations))

    what = f"add a toleration for {taint_text} to the pods, as the nodes of flavor {name} need"
    trials.offer("toleration", what, edit_pods(change))


def _select(trials: Trials, entry: Entry, name: str) -> None:
    flavor = trials.before.engine.cache.flavors[name]
    labels = dict(flavor.node_labels)
    clashing = {
        (key, value)
        for pod_set in entry.info.workload.pod_sets
        for key, value in pod_set.node_selector
        if key in labels and labels[key] != value
    }
    if not clashing:
        return

    def change(pod_set: PodSet) -> PodSet:
        return replace(pod_set, node_selector=tuple((k, labels.get(k, v)) for k, v in pod_set.node_selector))

    label_text = ", ".join(f"{key}={labels[key]} instead of {value}" for key, value in sorted(clashing))
    trials.offer("nodeSelector", f"select {label_text} in the pods, as flavor {name} has it", edit_pods(change))


def check_changes(trials: Trials, workload: Workload) -> None:
    """Every check that is not Ready made Ready by its controller."""
    again = diagnose(only_relevant(trials.snapshot, trials.key, alone=True), trials.key).engine
    info = again.workloads[workload.key]
    waiting = [name for name, check in sorted(info.checks.items()) if check.state is not CheckState.READY]
    for name in waiting:
        again.handle(CheckStateChanged(again.now, workload.key, name, CheckState.READY))
    if waiting and info.is_admitted:
        what = f"the controller of AdmissionCheck {', '.join(waiting)} sets it to Ready"
        trials.found.append(Change("check", what, "admitted", admits=True))
