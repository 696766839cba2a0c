"""A job of a team that goes beyond the team's queues, priorities or regions is refused when it is submitted.

So is one whose pods would be refused later, on the worker: by the namespace's Pod Security Standard, or because of a
missing service account. So is one of whose requests its queue counts none, which the manager admits without a worker.
And so is a Service with addresses of its own choice, which could take traffic of others
(https://kubernetes.io/docs/concepts/services-networking/service/#external-ips), and the deletion of a job that leaves
its pods: Kueue gives their quota to others while they run.

A ValidatingAdmissionPolicy with its binding where members submit, on the manager or the standalone cluster; else
nothing. On a worker only the manager's Kueue submits,
which copies what was checked here. Each team has a policy of its own, so that a team that comes or goes changes nothing
for the others.

Controllers make jobs and pods of their own in the namespaces of teams: JobSet makes Jobs, KubeRay makes RayClusters.
One that belongs to a job that Kueue manages needs no queue. Kueue believes what a job says about its owner, so only
controllers may say it. Updates by controllers, such as Kueue's own, are never checked.

Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/; kueue@v0.19.2
pkg/controller/jobframework/reconciler.go (FindAncestorJobManagedByKueue).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kueue_admission.api.job_kinds import KINDS, enabled_kinds
from kueue_admission.api.manifests import TEAM_LABEL
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER, PRIORITY_LABEL, QUEUE_LABEL, REGIONS_LABEL
from kueue_fleet.fleet_file.model.counted_requests import counting_requests, needs_a_counted_request
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.model.queued_nodes import QUEUED_LABELS, leads_to_queued_nodes
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.gke.labels import QUEUED
from kueue_fleet.objects.pod_security import Control, annotation_controls, controls
from kueue_fleet.objects.policies import denying_policy

_USER: Final = "request.userInfo.username"
_POD_FINALIZER: Final = "kueue.x-k8s.io/managed"
_GATE: Final = "kueue.x-k8s.io/admission"
_NEW: Final = "request.operation == 'CREATE'"
_DELETED: Final = "request.operation == 'DELETE'"
_SAME_SPEC: Final = f"(!({_NEW}) && object.spec == oldObject.spec)"
_WITH_OWN_WORKLOADS: Final = ("", "apps")
"""API groups of the kinds each of whose pods has a Workload of its own."""
_ANY: Final = "default"
"""The account that each namespace has."""


def team_policy_name(team: str) -> str:
    """Name of the ValidatingAdmissionPolicy of a team, and of its binding."""
    return f"kueue-fleet-team-{team}"


def render_team_policy(fleet: FleetSpec, team: TeamEntry, cluster: str) -> list[Manifest]:
    """The policy and its binding on `cluster`, if members submit there. Raises KeyError for an unknown cluster."""
    if fleet.cluster(cluster).role == "worker":
        return []
    kinds = enabled_kinds(kueue_configuration(fleet, cluster))
    by_controller = _by_controller(team)
    classes = allowed_priority_classes(fleet, team)
    regions = _region_words(fleet, team)
    rules = [_owner(), _finalizers(), _queue(team), _priority(team, classes), _pod_priorities(team, classes), _start()]
    rules += [_node_name(), _queued_nodes()]
    broken = [
        *(_broken(control, "pod", team.pod_security) for control in controls(team.pod_security)),
        *(_broken(control, "annotations", team.pod_security) for control in annotation_controls(team.pod_security)),
    ]
    if broken:
        rules.append(_pod_security())
    if team.allowed_regions:
        rules.append(_regions(team, regions))
    variables = {
        "noJob": f"{_DELETED} || object.kind == 'Service'",
        "byController": by_controller,
        "owned": _owned(),
        "labels": "object.metadata.?labels.orValue({})",
        "oldLabels": f"{_NEW} ? {{}} : oldObject.metadata.?labels.orValue({{}})",
        "queue": f"variables.labels[?'{QUEUE_LABEL}'].orValue('')",
        "queues": _of_namespace(_queues(fleet, team, cluster)),
        "queuesOfQueuedNodes": _of_namespace(_queues(fleet, team, cluster, queued_nodes=True)),
        "priorityClass": f"variables.labels[?'{PRIORITY_LABEL}'].orValue('')",
        "pods": _by_kind({kind.kind: kind.pod_specs for kind in kinds}, "[]"),
        **({"podAnnotations": _by_kind({kind.kind: kind.pod_annotations for kind in kinds}, "[]")} if broken else {}),
        "podPriorityClasses": "variables.pods.map(pod, pod.?priorityClassName.orValue('')) + ("
        + _by_kind({kind.kind: kind.other_classes for kind in kinds}, "[]")
        + ")",
        "priorityClasses": _list(classes),
        **({"broken": f"[{', '.join(broken)}].filter(text, text != '')"} if broken else {}),
        **({"regions": _list(regions)} if regions else {}),
    }
    if counted_names := _counted(fleet, team, cluster):
        all_said = sorted(kind.kind for kind in kinds if kind.pod_specs and not kind.counts_more)
        variables["counted"] = f"object.kind in {_list(all_said)} ? {counted_names} : {{}}"
        rules.append(_counts())
    if fleet.cluster(cluster).role == "manager":
        variables["managedBy"] = _by_kind({kind.kind: kind.managed_by for kind in kinds}, _text(MULTIKUEUE_CONTROLLER))
        rules += [_managed_by(), _accounts(team)]
    rules = [{**rule, "expression": f"variables.noJob || ({rule['expression']})"} for rule in rules]
    groups = dict.fromkeys(kind.group for kind in kinds)
    jobs = [(group, "*", [kind.plural for kind in kinds if kind.group == group]) for group in groups]
    return denying_policy(
        team_policy_name(team.name),
        [*jobs, ("", "v1", ["services"])],
        ("no-update-by-a-controller", f"{_NEW} || !({by_controller})"),
        [*rules, _external_addresses(), _orphans()],
        selector={"matchLabels": {TEAM_LABEL: team.name}},
        variables=variables,
        deleted=[job for job in jobs if job[0] not in _WITH_OWN_WORKLOADS],
    )


def _by_controller(team: TeamEntry) -> str:
    """Whether the request comes from a controller: a service account that pods of the team cannot have."""
    account = (
        f"{_USER}.startsWith('system:serviceaccount:') && !({_USER}.split(':')[2] in {_list(team.namespace_names)})"
    )
    return f"{account} || {_USER} == 'system:kube-controller-manager'"


def _queues(fleet: FleetSpec, team: TeamEntry, cluster: str, *, queued_nodes: bool = False) -> dict[str, list[str]]:
    """The LocalQueues in each of the team's namespaces on `cluster`; those alone that lead to queued nodes."""
    there = (queue for queue in fleet.queues_on(cluster) if not queued_nodes or leads_to_queued_nodes(fleet, queue))
    here = {queue.name for queue in there}
    own = [queue.name for queue in team.local_queues if queue.cluster_queue in here]
    return {
        namespace: own
        + [queue.name for queue in fleet.local_queues if queue.namespace == namespace and queue.cluster_queue in here]
        for namespace in team.namespace_names
    }


def _counted(fleet: FleetSpec, team: TeamEntry, cluster: str) -> str:
    """CEL: the requests that count, by LocalQueue; empty where every job can run.

    A LimitRange that gives containers one of them counts as well.
    """
    if not needs_a_counted_request(fleet, cluster):
        return ""
    here = {queue.name: queue for queue in fleet.queues_on(cluster)}
    own = team.limit_range
    resources_bounded = {*own.default, *own.default_request, *own.max, *own.min} if own is not None else set()
    table: dict[str, str] = {}
    for namespace, queues in _queues(fleet, team, cluster).items():
        names = {name: here[cluster_queue_of(fleet)[f"{namespace}/{name}"]] for name in queues}
        requests_by_queue = {name: counting_requests(fleet, queue, cluster) for name, queue in sorted(names.items())}
        counted_there = {
            name: _list(value)
            for name, value in requests_by_queue.items()
            if value is not None and resources_bounded.isdisjoint(value)
        }
        table[namespace] = f"{{{', '.join(f'{_text(name)}: {value}' for name, value in counted_there.items())}}}"
    if set(table.values()) == {"{}"}:
        return ""
    return _at_namespace(table)


def _region_words(fleet: FleetSpec, team: TeamEntry) -> list[str]:
    """The team's regions, and the groups of nothing but such regions."""
    groups = fleet.controller.region_groups if fleet.controller is not None else {}
    allowed_regions = fleet.allowed_regions(team)
    return [*allowed_regions, *(name for name, regions in groups.items() if set(regions) <= set(allowed_regions))]


def _owned() -> str:
    """Whether the controller of an object is a kind of job that Kueue manages, by API group and kind."""
    known_kinds = [f"{kind.group}/{kind.kind}" for kind in KINDS.values() if kind.group]
    owner = "owner.?controller.orValue(false) && owner.apiVersion.split('/')[0] + '/' + owner.kind"
    return f"object.metadata.?ownerReferences.orValue([]).exists(owner, {owner} in {_list(known_kinds)})"


def _by_kind(expressions: Mapping[str, str], otherwise: str) -> str:
    """The expression for the kind of the object; `otherwise` for a kind that has none."""
    choice = otherwise
    for kind, expression in reversed(list(expressions.items())):
        if expression:
            choice = f"object.kind == '{kind}' ? {expression} : {choice}"
    return choice


def _owner() -> dict[str, str]:
    old = "oldObject.metadata.?ownerReferences == object.metadata.?ownerReferences"
    return _rule(
        f"variables.byController || !variables.owned || (!({_NEW}) && {old})",
        "metadata.ownerReferences",
        "'only a controller makes a job that belongs to another one'",
        "'remove ownerReferences'",
    )


def _finalizers() -> dict[str, str]:
    """Kueue does not stop a job that is being deleted, so that one with a finalizer could not be preempted.

    Source: kueue@v0.19.2 pkg/controller/jobframework/reconciler.go (ReconcileGenericJob, finalize). Kueue's webhook
    gives pods a finalizer of its own.
    """
    old = f"(!({_NEW}) && name in oldObject.metadata.?finalizers.orValue([]))"
    of_kueue = f"(object.kind == 'Pod' && name == '{_POD_FINALIZER}')"
    return _rule(
        f"variables.byController || object.metadata.?finalizers.orValue([]).all(name, {old} || {of_kueue})",
        "metadata.finalizers",
        "'Kueue could not stop the job once it is deleted'",
        "'remove it'",
    )


def _node_name() -> dict[str, str]:
    """The scheduler, and with it taints and flavors, would not be asked where its pods go."""
    return _rule(
        f"(!({_NEW}) && (object.kind == 'Pod' || object.spec == oldObject.spec)) || "
        "variables.pods.all(pod, pod.?nodeName.orValue('') == '')",
        "nodeName of its pods",
        "'takes a node past the flavors of its queue'",
        "'use nodeSelector'",
    )


def _queued_nodes() -> dict[str, str]:
    """Nodes of DWS came for the jobs of another queue. Once a job has started, Kueue has written their labels."""
    asks = " || ".join(
        (
            *(f"'{label}' in pod.?nodeSelector.orValue({{}})" for label in QUEUED_LABELS),
            f"pod.?tolerations.orValue([]).exists(one, one.?key.orValue('') == '{QUEUED}')",
        )
    )
    return _rule(
        f"(variables.owned && variables.byController) || (!({_NEW}) && !({_held('oldObject')})) || {_SAME_SPEC} || "
        f"variables.queue in variables.queuesOfQueuedNodes || !variables.pods.exists(pod, {asks})",
        "nodeSelector or tolerations of its pods",
        "'are for nodes of DWS, and queue ' + variables.queue + ' asks for none'",
        "'remove them, or use a queue with DWS'",
    )


def _queue(team: TeamEntry) -> dict[str, str]:
    return _rule(
        f"(variables.owned && variables.byController) || variables.queue in variables.queues || {_stays(QUEUE_LABEL)}",
        f"metadata.labels[{QUEUE_LABEL}]",
        f"(variables.queue == '' ? 'is missing' : variables.queue + ' is not a LocalQueue of team {team.name}')",
        "(size(variables.queues) == 0 ? 'the team has none here; ask the owner of the fleet for one' : "
        "'use ' + variables.queues.join(' or '))",
    )


def _priority(team: TeamEntry, classes: Sequence[str]) -> dict[str, str]:
    return _rule(
        f"variables.priorityClass == '' || variables.priorityClass in variables.priorityClasses || "
        f"{_stays(PRIORITY_LABEL)}",
        f"metadata.labels[{PRIORITY_LABEL}]",
        f"variables.priorityClass + ' is not a priority class for team {team.name}'",
        _text(_one_of(classes, "remove the label")),
    )


def _pod_priorities(team: TeamEntry, classes: Sequence[str]) -> dict[str, str]:
    class_names = "variables.podPriorityClasses.filter(name, name != '' && !(name in variables.priorityClasses))"
    return _rule(
        f"size({class_names}) == 0 || {_SAME_SPEC}",
        "priorityClassName of its pods",
        f"{_printable(f'{class_names}[0]')} + ' is not a priority class for team {team.name}'",
        _text(_one_of(classes, "remove it")),
    )


def _broken(control: Control, part: str, standard: str) -> str:
    """CEL: the message where a part of pods breaks a control, or an empty text."""
    place_list = {"pod": "variables.pods", "annotations": "variables.podAnnotations"}[part]
    message = f"{control.path}: is against Pod Security Standard {standard} of the namespace; {control.fix}"
    return f"{place_list}.exists({part}, {control.broken}) ? {_text(message)} : ''"


def _pod_security() -> dict[str, str]:
    """Its pods would be refused when they are made, and the job would keep its quota without any."""
    validation = {"messageExpression": "variables.broken.join(', and ')"}
    return {**_rule(f"size(variables.broken) == 0 || {_SAME_SPEC}", "spec of its pods", "''", "''"), **validation}


def _accounts(team: TeamEntry) -> dict[str, str]:
    """On a worker there are the accounts that the fleet makes, and a pod with another one is refused."""
    own = [team.service_account_name] if team.service_account_name is not None else []
    others = f"filter(name, !(name in {_list(['', *own, _ANY])}))"
    names = f"variables.pods.map(pod, pod.?serviceAccountName.orValue('')).{others}"
    return _rule(
        f"size({names}) == 0 || {_SAME_SPEC}",
        "serviceAccountName of its pods",
        f"{_printable(f'{names}[0]')} + ' is not an account that the fleet makes for team {team.name} on workers'",
        _text(_one_of(own, "remove it")),
    )


def _counts() -> dict[str, str]:
    """Kueue would admit it on the manager, without the MultiKueue check of a flavor, and no pod would ever run."""
    fields = ("{}.?resources.?requests", "{}.?resources.?limits")
    of_each = " || ".join(f"name in {field.format('each')}.orValue({{}})" for field in fields)
    of_pod = " || ".join(f"name in {field.format('pod')}.orValue({{}})" for field in (*fields, "{}.?overhead"))
    every = "(pod.?containers.orValue([]) + pod.?initContainers.orValue([]))"
    asks = f"variables.counted[variables.queue].exists(name, {every}.exists(each, {of_each}) || {of_pod})"
    return _rule(
        f"!(variables.queue in variables.counted) || (variables.owned && variables.byController) || {_SAME_SPEC} || "
        f"variables.pods.exists(pod, size(pod.?resourceClaims.orValue([])) > 0 || {asks})",
        "resources of its pods",
        "'requests nothing that queue ' + variables.queue + ' counts, so that it would never run'",
        "'request ' + variables.counted[variables.queue].join(' or ')",
    )


def _external_addresses() -> dict[str, str]:
    return _rule(
        f"{_DELETED} || object.kind != 'Service' || size(object.spec.?externalIPs.orValue([])) == 0",
        "spec.externalIPs",
        "'traffic to any address could be taken with it'",
        "'remove it'",
    )


def _orphans() -> dict[str, str]:
    """Source: kueue@v0.19.2 pkg/controller/core/workload_controller.go (FinishOrphanedWorkloads)."""
    policy, older = "request.options.?propagationPolicy.orValue('')", "request.options.?orphanDependents.orValue(false)"
    return _rule(
        f"!({_DELETED}) || !({policy} == 'Orphan' || {older})",
        "propagationPolicy",
        "'Orphan would leave pods that run without quota'",
        "'delete the job without --cascade=orphan'",
    )


def _printable(text: str) -> str:
    """CEL: a name as it is given, but for one with characters that no name has, which a terminal might obey."""
    return f"({text}.matches('^[-._a-zA-Z0-9]*$') ? {text} : 'a name with other characters than those of names')"


def _regions(team: TeamEntry, words: Sequence[str]) -> dict[str, str]:
    label = f"variables.labels['{REGIONS_LABEL}']"
    return _rule(
        f"!('{REGIONS_LABEL}' in variables.labels) || {_stays(REGIONS_LABEL)} || "
        f"{label}.split('_').all(word, word in variables.regions)",
        f"metadata.labels[{REGIONS_LABEL}]",
        f"{label} + ' is not within the regions of team {team.name}'",
        _text(f"{_one_of(words, '')}, joined by _ where there are several"),
    )


def _start() -> dict[str, str]:
    """Members do not start jobs: Kueue does, once there is quota."""
    return _rule(
        f"{_NEW} || !({_held('oldObject')}) || {_held('object')}",
        "spec",
        "'Kueue starts the job when there is quota for it'",
        "'leave suspend, and the scheduling gates of pods, as they are'",
    )


def _managed_by() -> dict[str, str]:
    """Kueue sets the field, but not while it has not read its queues yet, and then rejects the job permanently.

    Source: docs/found-in-kueue.md, 7.
    """
    return _rule(
        f"!({_NEW}) || (variables.owned && variables.byController) || variables.managedBy == "
        f"{_text(MULTIKUEUE_CONTROLLER)}",
        "spec.managedBy",
        f"'is not {MULTIKUEUE_CONTROLLER}, which Kueue sets once it has started'",
        "'submit the job again in a minute'",
    )


def _held(item: str) -> str:
    gates = f"{item}.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{_GATE}')"
    return f"{item}.spec.?suspend.orValue(false) || {item}.spec.?runPolicy.?suspend.orValue(false) || {gates}"


def _stays(label: str) -> str:
    """Whether an update leaves the label as it is, so that what was there before a rule can still be changed."""
    return f"(!({_NEW}) && variables.labels[?'{label}'] == variables.oldLabels[?'{label}'])"


def _one_of(names: Sequence[str], otherwise: str) -> str:
    """What to do where one of a list is to be named, and where the list is empty; sorted, as in `_list`."""
    return f"use {' or '.join(sorted(names))}" if names else otherwise


def _rule(expression: str, path: str, wrong: str, fix: str) -> dict[str, str]:
    """A validation; `wrong` and `fix` are CEL expressions of text."""
    return {
        "expression": expression,
        "messageExpression": f"'{path}: ' + {wrong} + '; ' + {fix}",
        "message": f"{path}: is not what the team may ask for; see its ValidatingAdmissionPolicy",
        "reason": "Invalid",
    }


def _of_namespace(table: Mapping[str, Sequence[str]]) -> str:
    """CEL: what the table has for the namespace of the request."""
    return _at_namespace({namespace: _list(items) for namespace, items in table.items()})


def _at_namespace(table: Mapping[str, str]) -> str:
    """CEL: that of the table's expressions which is for the namespace of the request."""
    first, *others = table.values()
    if all(other == first for other in others):
        return first
    return f"{{{', '.join(f'{_text(key)}: {table[key]}' for key in sorted(table))}}}[request.namespace]"


def _list(items: Iterable[str]) -> str:
    """CEL: a list, in an order that does not change with that of the file."""
    return f"[{', '.join(_text(item) for item in sorted(items))}]"


def _text(value: str) -> str:
    """A name as a literal of CEL; names have neither quotes nor backslashes."""
    return f"'{value}'"
