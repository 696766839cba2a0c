"""Teams, namespaces and LocalQueues: that every job submitted can reach a queue that takes it, in an allowed region.

Source: kueue@v0.19.2 apis/kueue/v1beta2/clusterqueue_types.go (without namespaceSelector a queue takes no job),
https://cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac (groups in RBAC). Regions are the fleet's own
rule: what `allowedRegions` promises must be possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kueue_admission.api import LocalQueueSpec
from kueue_admission.api.manifests import POD_SECURITY_LABEL, POD_SECURITY_WARNING_LABEL, TEAM_LABEL
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import EXCLUDED, listed_twice
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL
from kueue_admission.kernel.problem import Problem, item_labels, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, LocalQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.fleet_page import PAGE_NAME
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN, UNKNOWN_REGION, UNUSED
from kueue_fleet.fleet_file.rules.teams import (
    CLAIMED_CLASS,
    GROUPS,
    HOST_IPC,
    HOST_PATHS,
    NAMESPACE_SELECTOR,
    REGIONS,
    REGIONS_NOT_KEPT,
    UNMANAGED_NAMESPACE,
)
from kueue_fleet.gke.gpu_direct import plugin_of
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.settings.dispatch import DISPATCHER_NAME


@dataclass(frozen=True, slots=True)
class _Placed:
    """A LocalQueue in one namespace."""

    path: str
    namespace: str
    name: str
    spec: LocalQueueSpec
    team: str | None


@entry_check("teams")
def _team(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    for item in _of_team(scope, team):
        yield from _leads_somewhere(scope, item)
    yield from _claims(scope, team)
    if team.pod_security != "privileged":
        yield from _needs_of_nodes(scope, team)


@where_read
def _claims(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    """Kueue counts devices of a class under the name of its mapping, which a queue has to have quota for."""
    fleet = scope.fleet
    resources = fleet.kueue.configuration.resources
    class_names = resources.counted_classes if resources is not None else {}
    queues = (fleet.queue(queue.cluster_queue) for queue in team.local_queues)
    covered_names = {
        name for queue in queues if queue for group in queue.resource_groups for name in group.covered_resources
    }
    for index, template in enumerate(team.resource_claim_templates):
        at, name = f"{scope.path(team)}.resourceClaimTemplates[{index}].deviceClassName", template.device_class_name
        if template.name in [
            resource_claim_template.name for resource_claim_template in team.resource_claim_templates[:index]
        ]:
            yield listed_twice(f"{scope.path(team)}.resourceClaimTemplates[{index}].name", template.name, "template")
        if name not in class_names:
            wrong = f"{name} is in no deviceClassMappings, so Kueue admits no job that claims it"
            yield CLAIMED_CLASS.at(at, wrong, "add it to kueue.configuration.resources.deviceClassMappings")
        elif class_names[name] not in covered_names:
            wrong = f"{name} counts as {class_names[name]}, for which no queue of the team has quota"
            yield CLAIMED_CLASS.at(at, wrong, f"cover {class_names[name]} in its queues")


@where_read
def _needs_of_nodes(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    """Pods that share GPUs by MPS need `hostIPC`, those on networks for GPUs what Google's plugin has on the node.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/nvidia-mps-gpus, `gke.gpu_direct`,
    https://kubernetes.io/docs/concepts/security/pod-security-standards/ (host namespaces, host paths).
    """
    fleet = scope.fleet
    queues = (fleet.queue(queue.cluster_queue) for queue in team.local_queues)
    names = {name for queue in queues if queue is not None for name in queue.flavor_names}
    there = [
        (flavor, cluster) for flavor in fleet.flavors if flavor.name in names for cluster in fleet.clusters_of(flavor)
    ]
    shared_flavors = (
        flavor.name
        for flavor, cluster in there
        if GpuSharing.of_labels(fleet.flavor_on(flavor, cluster).node_labels).strategy == "MPS"
    )
    networked_flavors = (
        flavor.name
        for flavor, cluster in there
        if any(pool.networks and plugin_of(pool.machine_type) for pool in fleet.flavor_nodes(flavor, cluster))
    )
    for rule, flavors, refused_field, purpose in (
        (HOST_IPC, shared_flavors, "hostIPC", "to share GPUs by MPS"),
        (HOST_PATHS, networked_flavors, "host paths", "to use the networks of GPUs"),
    ):
        if flavor_names := ", ".join(dict.fromkeys(flavors)):
            wrong = f"{team.pod_security} is what refuses {refused_field}, which pods on {flavor_names} need {purpose}"
            yield rule.at(f"{scope.path(team)}.podSecurity", wrong, "write privileged")


@entry_check("localQueues")
def _local_queue(scope: Scope, entry: LocalQueueEntry) -> Iterator[Problem]:
    yield from _leads_somewhere(scope, _outside(scope, entry))


@fleet_check
def _unreached(scope: Scope) -> Iterator[Problem]:
    """Queues that no LocalQueue leads to."""
    used_queues = {item.spec.cluster_queue for item in _local_queues(scope)}
    if not used_queues <= set(scope.names("clusterQueues")):
        return
    for queue in scope.fleet.cluster_queues:
        if queue.name not in used_queues and not queue.slack:
            yield UNUSED.at(
                scope.path(queue),
                "no LocalQueue leads to this queue, so no job can be submitted to it",
                "add a LocalQueue to a team or to localQueues",
            )


def _local_queues(scope: Scope) -> Iterator[_Placed]:
    for team in scope.fleet.teams:
        yield from _of_team(scope, team)
    for entry in scope.fleet.local_queues:
        yield _outside(scope, entry)


def _of_team(scope: Scope, team: TeamEntry) -> Iterator[_Placed]:
    """The LocalQueues of a team, each in every namespace of it."""
    labels = item_labels([item.name for item in team.local_queues])
    for queue, label in zip(team.local_queues, labels, strict=True):
        for namespace in dict.fromkeys(team.namespace_names):
            path = f"{scope.path(team)}.localQueues[{label}]"
            yield _Placed(path, namespace, queue.name, queue, team.name)


def _outside(scope: Scope, entry: LocalQueueEntry) -> _Placed:
    return _Placed(scope.path(entry), entry.namespace, entry.name, entry, None)


@fleet_check
def _namespaces(scope: Scope) -> Iterator[Problem]:
    fleet, section = scope.fleet, scope.fleet.controller
    reserved_names = {
        "kube-system": "Kubernetes",
        "kube-public": "Kubernetes",
        "kube-node-lease": "Kubernetes",
        fleet.kueue.namespace: "Kueue",
        **({fleet.job_set.namespace: "JobSet"} if fleet.job_set.enabled else {}),
        **{operator.namespace: name for name, operator in fleet.operators.installed.items()},
        **({driver.namespace: "NVIDIA's DRA driver"} if (driver := fleet.nvidia_dra_driver) is not None else {}),
        **({section.namespace: "the fleet's controller"} if section is not None else {}),
        **({fleet.observability.grafana.namespace: "Grafana"} if fleet.observability.installs_grafana else {}),
        **({PAGE_NAME: "the page for teams"} if fleet.fleet_page is not None else {}),
    }
    owners: dict[str, str] = {}
    for team in fleet.teams:
        names = team.namespace_names
        for index, namespace in enumerate(names):
            path = scope.path(team) if team.namespaces is None else f"{scope.path(team)}.namespaces[{index}]"
            if namespace in reserved_names:
                yield NAME_TAKEN.at(
                    path, f"{namespace} is the namespace of {reserved_names[namespace]}", "use another namespace"
                )
            elif namespace in names[:index]:
                yield listed_twice(path, namespace, "namespace")
            elif namespace in owners and owners[namespace] != team.name:
                yield NAME_TAKEN.at(
                    path,
                    f"{namespace} is already a namespace of team {owners[namespace]}",
                    "give each namespace to one team",
                )
            owners.setdefault(namespace, team.name)
    for entry in fleet.local_queues:
        if entry.namespace in reserved_names:
            yield NAME_TAKEN.at(
                f"{scope.path(entry)}.namespace",
                f"{entry.namespace} is the namespace of {reserved_names[entry.namespace]}",
                "use another namespace",
            )


@fleet_check
def _duplicates(scope: Scope) -> Iterator[Problem]:
    first: dict[tuple[str, str], str] = {}
    for item in _local_queues(scope):
        key = (item.namespace, item.name)
        if key in first:
            yield NAME_TAKEN.at(
                f"{item.path}.name",
                f"{item.name} in namespace {item.namespace} is already declared at {first[key]}",
                "give it another name, or remove one of the two",
            )
        else:
            first[key] = item.path


@where_read
def _leads_somewhere(scope: Scope, item: _Placed) -> Iterator[Problem]:
    """The ClusterQueue exists."""
    yield from scope.unknown("clusterQueues", item.spec.cluster_queue, f"{item.path}.clusterQueue")


@fleet_check
def _take_jobs(scope: Scope) -> Iterator[Problem]:
    """Each queue takes jobs of the namespaces that have a LocalQueue of it."""
    places: dict[str, list[_Placed]] = {}
    for item in _local_queues(scope):
        places.setdefault(item.spec.cluster_queue, []).append(item)
    for queue in scope.entries("clusterQueues"):
        yield from _takes_jobs(scope, queue, places)


def no_selector(at: str) -> Problem:
    """A queue selects no namespace: Kueue takes a missing selector for one that matches none."""
    wrong = "is missing, which matches no namespace, so no job is ever admitted"
    return NAMESPACE_SELECTOR.at(at, wrong, "write {} to take jobs of every namespace")


@where_read
def _takes_jobs(
    scope: Scope, queue: ClusterQueueEntry, queues_by_key: Mapping[str, Sequence[_Placed]]
) -> Iterator[Problem]:
    fleet, selector, places = scope.fleet, queue.namespace_selector, queues_by_key.get(queue.name, ())
    at = f"{scope.path(queue)}.namespaceSelector"
    if selector is None:
        if places:
            yield no_selector(at)
        return
    left_out = [item for item in places if not selector.matches(_labels(fleet, item.namespace))]
    possible = [item for item in left_out if _may_match(fleet, queue, item.namespace)]
    if left_out and len(left_out) == len(places):
        names = list(dict.fromkeys(item.namespace for item in left_out))
        yield NAMESPACE_SELECTOR.at(
            at,
            f"matches no namespace that has a LocalQueue of the queue: {_with_labels(fleet, names)}"
            + (", as far as this file says their labels" if possible else ""),
            _how_to_match(fleet, selector, at, names[0]),
            "warning" if possible else "error",
        )
        return
    for item in left_out:
        yield NAMESPACE_SELECTOR.at(
            f"{item.path}.clusterQueue",
            f"queue {queue.name} takes no jobs of namespace {item.namespace}: its namespaceSelector does not match"
            + (" the labels that this file says" if item in possible else ""),
            f"{_how_to_match(fleet, selector, at, item.namespace)}, or use another queue",
            "warning" if item in possible else "error",
        )


def _labels(fleet: FleetSpec, namespace: str) -> Mapping[str, str]:
    """The labels of a namespace that the file, the fleet and Kubernetes give it."""
    return {NAMESPACE_NAME_LABEL: namespace, **fleet.namespaces[namespace]}


def _may_match(fleet: FleetSpec, queue: ClusterQueueEntry, namespace: str) -> bool:
    """Whether labels that the file does not know of may make the namespace match: clusters that exist have such."""
    selector, labels = queue.namespace_selector, _labels(fleet, namespace)
    if selector is None or all(cluster in fleet.new_clusters for cluster in fleet.clusters):
        return False
    labels_needed = dict(selector.match_labels or {})
    for match_expression in selector.match_expressions or ():
        if match_expression.operator in ("In", "Exists"):
            labels_needed.setdefault(
                match_expression.key, match_expression.values[0] if match_expression.values else ""
            )
    labels_needed.pop(TEAM_LABEL, None)
    return selector.matches({**labels_needed, **labels})


def _with_labels(fleet: FleetSpec, namespaces: Sequence[str]) -> str:
    """The first of the namespaces with the labels that somebody chose, and how many more there are."""
    namespace_labels = {
        key: value for key, value in fleet.namespaces[namespaces[0]].items() if not key.startswith("pod-security.")
    }
    labels = ", ".join(f"{key}={value}" for key, value in namespace_labels.items())
    more = f" and {len(namespaces) - 1} more" if namespaces[1:] else ""
    return f"{namespaces[0]} has {labels or 'no label'}{more}"


def _how_to_match(fleet: FleetSpec, selector: LabelSelector, at: str, namespace: str) -> str:
    """A label of the fleet's own that is meant, or the label that is missing, if a namespace may be given it."""
    labels = _labels(fleet, namespace)
    for key, value in (selector.match_labels or {}).items():
        meant = next((own for own in labels if own.rpartition("/")[2] == key and labels[own] == value), None)
        if meant is not None:
            return f"write {meant}: {value}"
        if labels.get(key) != value and key not in (TEAM_LABEL, NAMESPACE_NAME_LABEL):
            return f"add {key}: {value} to namespaceLabels[{namespace}], or widen {at}"
    return f"widen {at}"


@fleet_check
def _namespace_labels(scope: Scope) -> Iterator[Problem]:
    """Labels of namespaces that the fleet has, and that nothing else gives them."""
    fleet = scope.fleet
    for namespace, labels in fleet.namespace_labels.items():
        path = f"namespaceLabels[{namespace}]"
        if namespace not in fleet.namespaces:
            yield UNUSED.at(
                path,
                "no team and no LocalQueue has this namespace, so the fleet does not make it",
                suggest.instead(namespace, fleet.namespaces, "namespaces"),
            )
        own_labels = {NAMESPACE_NAME_LABEL: "Kubernetes gives it", TEAM_LABEL: "teams gives it"}
        if namespace in fleet.team_of:
            own_labels |= dict.fromkeys(
                (POD_SECURITY_LABEL, POD_SECURITY_WARNING_LABEL), "podSecurity of the team gives it"
            )
        for key in labels:
            if key in own_labels:
                yield EXCLUDED.at(f"{path}[{key}]", f"is set, but {own_labels[key]}", "remove it")


@fleet_check
def _managed(scope: Scope) -> Iterator[Problem]:
    """Kueue manages jobs in the namespaces with LocalQueues: in others it leaves even those that name a queue alone.

    Source: kueue@v0.19.2 pkg/controller/jobframework/reconciler.go (managedJobsNamespaceSelector is always respected).
    """
    fleet = scope.fleet
    own = [("kueue.configuration", fleet.kueue.configuration)]
    own += [(f"{scope.path(cluster)}.kueue.configuration", cluster.kueue.configuration) for cluster in fleet.clusters]
    for path, configuration in own:
        selector = configuration.managed_jobs_namespace_selector
        if selector is None or any(problems_in(selector, "")):
            continue
        left_out = [name for name in fleet.namespaces if not selector.matches(_labels(fleet, name))]
        if left_out:
            at = f"{path}.managedJobsNamespaceSelector"
            yield UNMANAGED_NAMESPACE.at(
                at,
                f"does not match namespaces with LocalQueues, {_with_labels(fleet, left_out)}, and Kueue leaves all "
                "jobs there alone, even those that name a queue",
                _how_to_match(fleet, selector, at, left_out[0]),
            )


@entry_check("teams")
def _members(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    groups = [member for member in team.members if member.startswith("group:")]
    without = [cluster.name for cluster in scope.fleet.gke_clusters if not cluster.rbac_security_group]
    if groups and without:
        yield GROUPS.at(
            f"{scope.path(team)}.members",
            f"{groups[0]} is a group, but {', '.join(without)} look{'' if without[1:] else 's'} up no groups",
            "set clusters[...].rbacSecurityGroup, or name people with user:",
        )


@entry_check("teams")
def _regions(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    """Every queue of a team that is kept to some regions is on some cluster there."""
    fleet, path = scope.fleet, f"{scope.path(team)}.allowedRegions"
    if not team.allowed_regions:
        return
    section, allowed_regions = fleet.controller, fleet.allowed_regions(team)
    groups = section.region_groups if section is not None else {}
    regions = {cluster.name: cluster.place for cluster in fleet.clusters}
    here = dict.fromkeys(regions[name] for name in fleet.job_clusters)
    known_places = scope.known_places
    for index, region in enumerate(team.allowed_regions):
        if region not in known_places and region not in groups:
            yield UNKNOWN_REGION.at(
                f"{path}[{index}]",
                f"{region} is not a known region",
                suggest.instead(region, (*here, *groups), "regions"),
            )
    if not {*allowed_regions, *here}.issubset(known_places):
        return
    if not set(allowed_regions) & set(here):
        yield REGIONS.at(
            path,
            f"no cluster that runs jobs is in {', '.join(team.allowed_regions)}",
            suggest.instead(team.allowed_regions[0], here, "regions"),
        )
        return
    for local in team.local_queues:
        queue = fleet.queue(local.cluster_queue)
        where = [name for name in fleet.queue_clusters(queue) if name in fleet.job_clusters] if queue else []
        queue_regions = tuple(dict.fromkeys(regions[name] for name in where))
        beyond = [region for region in queue_regions if region not in allowed_regions]
        if queue_regions and len(beyond) == len(queue_regions):
            yield REGIONS.at(
                path,
                f"queue {local.cluster_queue} is in {', '.join(queue_regions)} only",
                "allow one of these regions, or use another queue",
            )
        elif beyond and not _keeps_to_regions(scope):
            yield REGIONS_NOT_KEPT.at(
                path,
                f"queue {local.cluster_queue} is in {', '.join(beyond)} too, and Kueue's own dispatchers know no "
                "regions",
                "limit the clusters of the queue, or dispatch with the fleet's own controller",
            )


def _keeps_to_regions(scope: Scope) -> bool:
    """Whether the fleet's own dispatcher decides where jobs go."""
    settings = scope.fleet.multi_kueue
    return settings is not None and settings.dispatcher_name == DISPATCHER_NAME
