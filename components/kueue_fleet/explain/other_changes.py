"""Changes for a workload that quota alone does not help: references, stops, gates, flavors, namespaces, checks."""

from __future__ import annotations

from dataclasses import replace

from kueue_fleet.admission.events import CheckStateChanged
from kueue_fleet.admission.flavors.evidence import AffinityMismatch, UntoleratedTaint
from kueue_fleet.admission.model import AdmissionCheck, CheckState, LocalQueue, Objects, ResourceFlavor, Workload
from kueue_fleet.admission.pods import PodSet, Toleration
from kueue_fleet.admission.reasons import InactiveReason
from kueue_fleet.admission.scheduler.entry import Entry
from kueue_fleet.explain.answer import Change
from kueue_fleet.explain.diagnosis import diagnose, only_relevant
from kueue_fleet.explain.trials import Edit, Trials, edit_pods, edit_queue, together
from kueue_fleet.kueue_api.suggest import nearest


def blocked_changes(trials: Trials, workload: Workload) -> None:
    """For a workload in no queue: activate it, correct or restart its LocalQueue, open its gate."""
    objects = trials.snapshot.objects
    if not workload.active:
        trials.offer("active", "set spec.active to true", Edit(workload=lambda w: replace(w, active=True)))
        return
    wanted = workload.local_queue
    local = next((queue for queue in objects.local_queues if queue.key == wanted), None)
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
    if near:
        what = f"name the LocalQueue {near} in the label kueue.x-k8s.io/queue-name"
        trials.offer("queueName", what, Edit(workload=lambda w: replace(w, queue=near)))
    queues = [queue.name for queue in objects.cluster_queues]
    target = nearest(workload.queue, queues) or (queues[0] if len(queues) == 1 else None)
    if target and workload.queue:
        made = LocalQueue(workload.namespace, workload.queue, target)
        what = f"create LocalQueue {made.key} with clusterQueue: {target}"
        edit = Edit(objects=lambda known: replace(known, local_queues=(*known.local_queues, made)))
        trials.offer("localQueue", what, edit)


def _edit_local(changed: LocalQueue) -> Edit:
    return Edit(
        objects=lambda objects: replace(
            objects, local_queues=tuple(changed if q.key == changed.key else q for q in objects.local_queues)
        )
    )


def inactive_changes(trials: Trials, entry: Entry) -> None:
    """For an inactive ClusterQueue: everything that makes it inactive, put right at once."""
    queue, objects = entry.queue, trials.snapshot.objects
    parts: list[str] = []
    edits: list[Edit] = []
    for reason, text in queue.inactive:
        names = text.partition(": ")[2].split(",")
        if reason is InactiveReason.STOPPED:
            parts.append("set its stopPolicy to None")
            edits.append(edit_queue(queue.name, lambda q: replace(q, stop_policy="None")))
        elif reason is InactiveReason.FLAVOR_NOT_FOUND:
            parts.append(f"create ResourceFlavor {', '.join(names)}")
            edits.append(_add_flavors(names))
        elif reason is InactiveReason.ADMISSION_CHECK_NOT_FOUND:
            parts.append(f"create AdmissionCheck {', '.join(names)}")
            edits.append(_set_checks(objects, names))
        elif reason is InactiveReason.ADMISSION_CHECK_INACTIVE:
            parts.append(f"make AdmissionCheck {', '.join(names)} active")
            edits.append(_set_checks(objects, names))
        else:
            return

    if edits:
        trials.offer("clusterQueue", f"ClusterQueue {queue.name}: {'; '.join(parts)}", together(edits))


def _add_flavors(names: list[str]) -> Edit:
    made = tuple(ResourceFlavor(name) for name in names)
    return Edit(objects=lambda objects: replace(objects, flavors=(*objects.flavors, *made)))


def _set_checks(objects: Objects, names: list[str]) -> Edit:
    known = {check.name: check for check in objects.checks}
    made = tuple(
        replace(known.get(name) or AdmissionCheck(name, "example.com/controller"), active=True) for name in names
    )

    def change(objects: Objects) -> Objects:
        rest = tuple(check for check in objects.checks if check.name not in names)
        return replace(objects, checks=(*rest, *made))

    return Edit(objects=change)


def namespace_changes(trials: Trials, entry: Entry) -> None:
    """Labels that make the namespace match the queue's selector."""
    selector = entry.queue.spec.namespace_selector
    namespace = entry.info.workload.namespace
    if selector is None:
        return
    wanted = dict(selector.match_labels or {})
    for requirement in selector.match_expressions or ():
        if requirement.operator in ("In", "Exists"):
            wanted[requirement.key] = requirement.values[0] if requirement.values else "true"

    def change(objects: Objects) -> Objects:
        labels = dict(objects.namespaces)
        labels[namespace] = tuple(sorted({**dict(labels.get(namespace, ())), **wanted}.items()))
        return replace(objects, namespaces=tuple(labels.items()))

    listed = ", ".join(f"{key}={value}" for key, value in sorted(wanted.items()))
    if wanted:
        trials.offer("namespace", f"label namespace {namespace} with {listed}", Edit(objects=change))


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
    made = tuple(Toleration(t.key, "Equal", t.value, t.effect) for t in taints)
    listed = ", ".join(taint.text for taint in taints)

    def change(pod_set: PodSet) -> PodSet:
        return replace(pod_set, tolerations=(*pod_set.tolerations, *made))

    what = f"add a toleration for {listed} to the pods, as the nodes of flavor {name} need"
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

    listed = ", ".join(f"{key}={labels[key]} instead of {value}" for key, value in sorted(clashing))
    trials.offer("nodeSelector", f"select {listed} in the pods, as flavor {name} has it", edit_pods(change))


def check_changes(trials: Trials, workload: Workload) -> None:
    """Every check that is not Ready made Ready by its controller."""
    again = diagnose(only_relevant(trials.snapshot, trials.key), trials.key).engine
    info = again.workloads[workload.key]
    waiting = [name for name, check in sorted(info.checks.items()) if check.state is not CheckState.READY]
    for name in waiting:
        again.handle(CheckStateChanged(again.now, workload.key, name, CheckState.READY))
    if waiting and info.is_admitted:
        what = f"the controller of AdmissionCheck {', '.join(waiting)} sets it to Ready"
        trials.found.append(Change("check", what, "admitted", admits=True))
