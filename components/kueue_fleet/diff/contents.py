"""What a change does inside the clusters that stay: to Kueue, to namespaces with their jobs, to queues and their jobs.

What Kueue does with the jobs of a queue that goes was seen with Kueue 0.19.2
(pkg/controller/core/{workload,clusterqueue}_controller.go): a running job is not touched, and the queue stays,
Terminating, until the last one has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kueue_admission.api import LocalQueueSpec, ResourceFlavorSpec
from kueue_admission.api.job_kinds import KINDS
from kueue_admission.kernel.quantity import ZERO
from kueue_fleet.diff.difference import DRAIN, Difference, consequence
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.operators import FRAMEWORKS
from kueue_fleet.fleet_file.model.per_cluster import local_queues, manager_groups
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.settings.dispatch import DISPATCHER_NAME

_NEW_NAME = "Kueue does not let it change, and `pulumi up` fails: give it a new name"


def contents_consequences(old: FleetSpec, new: FleetSpec, stay: list[str]) -> Iterator[Difference]:
    """Kueue, namespaces, queues, LocalQueues, and objects that Kueue does not let change, on the clusters that stay."""
    if not stay:
        return
    yield from _installations(old, new, stay)
    yield from _namespaces(old, new, stay)
    yield from _queues(old, new, stay)
    yield from _workers_that_leave(old, new)
    yield from _local_queues(old, new)
    yield from _stopped(old, new)
    yield from _immutable(old, new)
    yield from _accounts(old, new)
    yield from _credentials(old, new)
    yield from _dispatcher(old, new)
    yield from _cohorts(old, new)
    yield from _manager_flavors(old, new)
    yield from _priorities(old, new)


def _priorities(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """What jobs of teams that name no classes may name now, or no longer, of the classes that stay."""
    before, after = _classes(old), _classes(new)
    names_by_change: dict[str, list[str]] = {}
    for team in new.teams:
        if team.allowed_priority_classes is None and team.name in old.team_of.values():
            was, becomes = (allowed_priority_classes(fleet, team) for fleet in (old, new))
            for verb, names in (
                ("may name {} now", [name for name in becomes if name in before and name not in was]),
                ("may no longer name {}", [name for name in was if name in after and name not in becomes]),
            ):
                if names:
                    names_by_change.setdefault(verb.format(listed(names)), []).append(team.name)
    for change, teams in names_by_change.items():
        text = f"jobs of {listed(teams)} {change}: by default, all classes but the highest of each kind"
        yield consequence("teams", text)


def _classes(fleet: FleetSpec) -> set[str]:
    return {workload_priority_class.name for workload_priority_class in fleet.workload_priority_classes} | {
        priority_class.name for priority_class in fleet.priority_classes
    }


def _dispatcher(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Another dispatcher; what only the fleet's own does is lost without it."""
    if old.multi_kueue is None or new.multi_kueue is None:
        return
    before, after = old.multi_kueue.dispatcher_name, new.multi_kueue.dispatcher_name
    if before != after:
        text = "Kueue on the manager restarts with another Configuration"
        if before == DISPATCHER_NAME:
            text += (
                "; jobs run in any region, whatever allowedRegions or their own label says; one that no worker can "
                "hold keeps its quota on the manager"
            )
        yield consequence("multiKueue.dispatcher", text)


def _cohorts(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Queues that stay, and leave their cohort."""
    for queue in old.cluster_queues:
        after = new.queue(queue.name)
        if after is not None and queue.cohort_name is not None and after.cohort_name != queue.cohort_name:
            text = f"it borrows nothing from the other queues of {queue.cohort_name} any more, and lends them nothing"
            yield consequence(f"clusterQueues[{queue.name}].cohortName", text)


def _manager_flavors(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Queues whose quota on the manager goes to another flavor; what Kueue does with jobs on one that a queue loses.

    Seen with Kueue 0.19.2: `per_cluster.manager_groups` says why.
    """
    names_by_change: dict[str, list[str]] = {}
    for queue in new.cluster_queues:
        before = old.queue(queue.name)
        if before is None or not (old.is_dispatched(queue.name) and new.is_dispatched(queue.name)):
            continue
        sides = [_flavors(old, before), _flavors(new, queue)]
        had, has = ([name for name, quota in side.items() if quota] for side in sides)
        if lost := [name for name in sides[0] if name not in sides[1]]:
            field = "multiKueue.formerManagerFlavorNames" if queue.manager is None else "manager.resourceGroups with 0"
            text = (
                f"no flavor {listed(lost)} on the manager any more, and jobs that hold it there lose their MultiKueue "
                "check: Kueue admits those that wait for a worker without one, and may not see others end; keep it in "
                f"{field}, until no job holds it"
            )
            names_by_change.setdefault(text, []).append(queue.name)
        elif had != has:
            text = (
                f"quota on the manager moves from {listed(had)} to {listed(has)}: no job is evicted; those with quota "
                f"keep it on {listed(had)} until they end, and do not count against the new quota, so that until then "
                "more jobs may wait on the workers"
            )
            names_by_change.setdefault(text, []).append(queue.name)
    for text, queues in names_by_change.items():
        yield consequence("clusterQueues", f"{listed(queues)}: {text}")


def _flavors(fleet: FleetSpec, queue: ClusterQueueEntry) -> dict[str, bool]:
    """The queue's flavors on the manager, and whether it has quota on them."""
    return {
        flavor.name: any(quota.nominal_quota > ZERO for quota in flavor.resources)
        for group in manager_groups(fleet, queue)
        for flavor in group.flavors
    }


def _credentials(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Other credentials for the workers: their bindings change first, and the manager last."""
    if old.multi_kueue is None or new.multi_kueue is None:
        return
    if old.multi_kueue.credentials.type != new.multi_kueue.credentials.type:
        lost = new.multi_kueue.worker_lost_timeout or "15m"
        text = (
            "Kueue on the manager restarts, and until it has, it does not reach the workers: for these minutes no job "
            f"starts; running jobs continue, unless it takes longer than {lost}"
        )
        yield consequence("multiKueue.credentials.type", text)


def _installations(old: FleetSpec, new: FleetSpec, stay: list[str]) -> Iterator[Difference]:
    upgraded_clusters: dict[tuple[str, str], list[str]] = {}
    for name in stay:
        before, after = old.kueue_on(name).version, new.kueue_on(name).version
        if before != after:
            upgraded_clusters.setdefault((before, after), []).append(name)
    for (before, after), names in upgraded_clusters.items():
        text = (
            f"Kueue {before} becomes {after} and restarts on {listed(names)}: no job is admitted "
            "until it has; running jobs continue"
        )
        yield consequence("kueue.version", text, whole=True)
    yield from _other_configuration(
        old,
        new,
        [
            name
            for name in stay
            if not any(name in clusters_upgraded for clusters_upgraded in upgraded_clusters.values())
        ],
    )
    if old.kueue.namespace != new.kueue.namespace:
        protected_names = [name for name in stay if old.protects(name)]
        text = (
            f"Kueue is uninstalled on {listed(stay)} and installed again, and with it go all queues and Workloads; "
            "running jobs are stopped, and queue again"
        )
        if protected_names:
            text += (
                f"; it is protected on {listed(protected_names)}: set deletionProtection to false and apply that first"
            )
        yield consequence("kueue.namespace", text)
    if old.job_set.enabled and not new.job_set.enabled:
        text = f"JobSet is uninstalled on {listed(stay)}: jobs of JobSets no longer start or end"
        yield consequence("jobSet.enabled", text)
    for name in old.operators.installed:
        if name not in new.operators.installed:
            kinds = ", ".join(KINDS[framework].kind for framework in FRAMEWORKS[name])
            text = f"the operator is uninstalled on {listed(stay)}: jobs of kind {kinds} no longer start or end"
            yield consequence(f"operators.{name}", text)
    without = [name for name in stay if old.dra_pools_on(name) and not new.dra_pools_on(name)]
    if without:
        text = f"NVIDIA's DRA driver is uninstalled on {listed(without)}: pods that claim its devices no longer start"
        yield consequence("nvidiaDraDriver", text)


def _other_configuration(old: FleetSpec, new: FleetSpec, stay: list[str]) -> Iterator[Difference]:
    """The clusters where Kueue restarts for what the file says in its section `kueue`, or of a cluster."""
    written_names = [
        name
        for name in stay
        if (old.kueue.configuration, old.cluster(name).kueue) != (new.kueue.configuration, new.cluster(name).kueue)
        and kueue_configuration(old, name) != kueue_configuration(new, name)
    ]
    if written_names:
        text = f"Kueue restarts on {listed(written_names)}: no job is admitted until it has; running jobs continue"
        yield consequence("kueue.configuration", text)


def _namespaces(old: FleetSpec, new: FleetSpec, stay: list[str]) -> Iterator[Difference]:
    """Namespaces that go, with everything in them; and those that another entry is to make."""
    after = _owners(new)
    gone: dict[str, list[str]] = {}
    moved_namespaces: dict[str, list[str]] = {}
    for namespace, owner in _owners(old).items():
        if after.get(namespace) != owner:
            (moved_namespaces if namespace in after else gone).setdefault(owner, []).append(namespace)
    for owner, names in gone.items():
        subject, there = _counted(names)
        text = f"{subject} deleted on {listed(stay)}, with all jobs in {there}"
        yield consequence(owner, text, whole=owner.startswith("teams[") and owner not in set(after.values()))
    for owner, names in moved_namespaces.items():
        subject, there = _counted(names)
        text = (
            f"{subject} to be made for {listed([*dict.fromkeys(after[name] for name in names)])} now, and `pulumi up` "
            f"fails, since {there} would be there already; keep the owner, or remove {there} first, with all jobs"
        )
        yield consequence(owner, text)


def _counted(names: list[str]) -> tuple[str, str]:
    return (f"namespace {names[0]} is", "it") if len(names) == 1 else (f"namespaces {listed(names)} are", "them")


def _owners(fleet: FleetSpec) -> dict[str, str]:
    """Every namespace that the fleet makes for jobs, and the path of the entry that it is made for."""
    owners = {namespace: f"teams[{team}]" for namespace, team in fleet.team_of.items()}
    for queue in fleet.local_queues:
        if queue.namespace != "default":
            owners.setdefault(queue.namespace, "localQueues")
    return owners


def _queues(old: FleetSpec, new: FleetSpec, stay: list[str]) -> Iterator[Difference]:
    """ClusterQueues that go from a cluster: what runs ends there, what waits goes where its LocalQueue leads now."""
    after = {queue.name: new.queue_clusters(queue) for queue in new.cluster_queues}
    leads = _leads(new)
    for queue in old.cluster_queues:
        where = [name for name in old.queue_clusters(queue) if name in stay and name not in after.get(queue.name, ())]
        if not where:
            continue
        entrances = [key for key, to in _leads(old).items() if to == queue.name]
        moves = dict.fromkeys(leads[key] for key in entrances if leads.get(key, queue.name) != queue.name)
        waits = f"waiting jobs move to {listed([*moves])}" if moves else "waiting jobs are no longer admitted there"
        text = (
            f"the queue is deleted on {listed(where)}: running jobs continue and keep their quota until they end; "
            f"`pulumi up` waits ten minutes for that, and then fails; {waits}"
        )
        yield consequence(f"clusterQueues[{queue.name}]", text, whole=queue.name not in after)


def _workers_that_leave(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Workers that stay and lose queues: jobs of these queues that run there go on, and Kueue no longer sees them."""
    lost: dict[str, list[str]] = {}
    for queue in old.cluster_queues:
        after = new.dispatch_workers(queue.name)
        for worker in old.dispatch_workers(queue.name):
            if worker not in after and worker in new.cluster_names and new.queue(queue.name) is not None:
                lost.setdefault(worker, []).append(queue.name)
    for worker, queues in lost.items():
        yield consequence(f"clusters[{worker}]", f"gets no more jobs of {listed(queues)}; {DRAIN}")


def _leads(fleet: FleetSpec) -> dict[tuple[str, str], str]:
    return {(namespace, name): spec.cluster_queue for namespace, name, spec in local_queues(fleet)}


def _local_queues(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """LocalQueues that go, or lead to another queue, in namespaces that stay."""
    owners, leads = (_owners(old), _owners(new)), _leads(new)
    lines_once: dict[tuple[str, str], None] = {}
    for (namespace, name), queue in _leads(old).items():
        if namespace != "default" and owners[0].get(namespace) != owners[1].get(namespace):
            continue
        becomes, owner = leads.get((namespace, name)), owners[0].get(namespace, "localQueues")
        path = f"{owner}.localQueues[{name}]" if owner.startswith("teams[") else f"localQueues[{namespace}/{name}]"
        if becomes is None:
            lines_once[path, "waiting jobs are not admitted until a LocalQueue of that name exists again"] = None
        elif becomes != queue and new.queue(queue) is not None:
            lines_once[path, f"waiting jobs move to {becomes}; running jobs stay in {queue}"] = None
    for path, text in lines_once:
        yield consequence(path, text)


def _stopped(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    before: Mapping[object, object] = {
        **{queue.name: queue for queue in old.cluster_queues},
        **{(namespace, name): spec for namespace, name, spec in local_queues(old)},
    }
    for queue in new.cluster_queues:
        if _drains(before.get(queue.name), queue):
            yield consequence(f"clusterQueues[{queue.name}].stopPolicy", "every running job of the queue is evicted")
    for namespace, name, spec in local_queues(new):
        if _drains(before.get((namespace, name)), spec):
            yield consequence(f"LocalQueue {namespace}/{name}", "every running job that came by it is evicted")


def _drains(before: object, after: LocalQueueSpec | object) -> bool:
    was, becomes = (getattr(side, "stop_policy", None) for side in (before, after))
    return was is not None and was != becomes == "HoldAndDrain"


def _immutable(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Fields that Kueue's CRDs do not let change (CEL rules of kueue@v0.19.2 apis/kueue/v1beta2)."""
    topologies = {entry.name: entry.levels for entry in new.topologies}
    for topology in old.topologies:
        if topologies.get(topology.name, topology.levels) != topology.levels:
            yield consequence(f"topologies[{topology.name}].levels", _NEW_NAME)
    checks = {entry.name: entry.check_spec.controller_name for entry in new.admission_checks}
    for check in old.admission_checks:
        own = check.check_spec.controller_name
        if checks.get(check.name, own) != own:
            yield consequence(f"admissionChecks[{check.name}].controllerName", _NEW_NAME)
    for flavor in old.flavors:
        other = new.flavor(flavor.name)
        clusters = [name for name in old.clusters_of(flavor) if name in new.clusters_of(other)] if other else []
        if other and any(_is_refused(old.flavor_on(flavor, name), new.flavor_on(other, name)) for name in clusters):
            yield consequence(f"flavors[{flavor.name}]", f"with a topologyName, {_NEW_NAME}")


def _is_refused(before: ResourceFlavorSpec, after: ResourceFlavorSpec) -> bool:
    """A flavor with a topology keeps it, and its labels and tolerations."""
    fixed_fields = [(side.topology_name, dict(side.node_labels), side.tolerations) for side in (before, after)]
    return before.topology_name is not None and fixed_fields[0] != fixed_fields[1]


def _accounts(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    after = {team.name: team.google_service_account for team in new.teams}
    for team in old.teams:
        if team.google_service_account is not None and after.get(team.name) is None:
            path = f"teams[{team.name}].googleServiceAccount"
            yield consequence(path, "the account is deleted, and what only it may reach is closed to the team's jobs")
