"""Kueue's Configuration on each cluster, and what the queues take for granted of it.

Source: kueue@v0.19.2 pkg/config/validation.go, apis/config/v1beta2/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.api.job_kinds import DISPATCHED_FRAMEWORKS, KINDS
from kueue_admission.kernel.base import DEFER_RULES
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_admission.kernel.versions import numbers_of
from kueue_fleet.fleet_file.check.kueue_configuration import configuration_problems, frameworks_of
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.clusters import ClusterEntry, ClusterProfile
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, LocalQueueEntry
from kueue_fleet.fleet_file.model.kueue_installation import CLUSTER_PROFILE_GATE, JOBSET_FRAMEWORK, kueue_configuration
from kueue_fleet.fleet_file.model.operators import BUILT_IN, FRAMEWORKS
from kueue_fleet.fleet_file.model.teams import TeamQueue
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.rules.teams import FEATURE_GATE, OPERATOR, OPERATOR_NEEDED, REPLICAS, SET_ELSEWHERE

_SET_BY_FLEET: Final = {
    "gc_interval": ("gcInterval", "multiKueue.gcInterval"),
    "origin": ("origin", "multiKueue.origin"),
    "worker_lost_timeout": ("workerLostTimeout", "multiKueue.workerLostTimeout"),
    "dispatcher_name": ("dispatcherName", "multiKueue.dispatcher"),
    "incremental_dispatcher_config": ("incrementalDispatcherConfig", "multiKueue.incremental"),
    "cluster_profile": ("clusterProfile", "multiKueue.credentials"),
}
_TRAINER: Final = (("0.20.0", "2.3.0"), ("0.17.0", "2.2.0"))
"""The least Trainer from a release of Kueue on. Source: https://github.com/kubernetes-sigs/kueue/issues/11931 (Kueue
writes runtimePatches, which older TrainJobs do not have), the release notes of 0.20.0."""


@fleet_check
def _of_fleet(scope: Scope) -> Iterator[Problem]:
    kueue = scope.fleet.kueue
    for problem in (
        *_set_elsewhere(scope, kueue.configuration),
        *configuration_problems(kueue.configuration, kueue.namespace, kueue.release),
    ):
        yield problem.at("kueue.configuration")


@entry_check("clusters")
def _of_cluster(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """What is wrong with the Configuration of one cluster, and not already with that of the fleet."""
    kueue, own = scope.fleet.kueue, cluster.kueue.configuration
    if not own.model_fields_set and cluster.kueue.version is None:
        return
    path = f"{scope.path(cluster)}.kueue.configuration"
    for problem in _set_elsewhere(scope, own):
        yield problem.at(path)
    known_problems, problems = (
        dict.fromkeys((*problems_in(configuration), *configuration_problems(configuration, kueue.namespace, of)))
        for configuration, of in (
            (kueue.configuration, kueue.release),
            (merged_configuration(scope, cluster), scope.fleet.kueue_on(cluster.name).release),
        )
    )
    for problem in problems:
        if problem not in known_problems:
            yield problem.at(path)


def merged_configuration(scope: Scope, cluster: ClusterEntry) -> KueueConfiguration:
    """The Configuration that `cluster` gets, as a model, whatever rules it breaks."""
    plain = kueue_configuration(scope.fleet, cluster.name)
    data = {key: value for key, value in plain.items() if key not in ("apiVersion", "kind")}
    return KueueConfiguration.model_validate(data, context={DEFER_RULES: True})


@where_read
def _set_elsewhere(scope: Scope, own: KueueConfiguration) -> Iterator[Problem]:
    """Fields of the Configuration that the fleet sets from its own sections."""
    if own.namespace is not None and own.namespace != scope.fleet.kueue.namespace:
        yield SET_ELSEWHERE.at(
            "namespace",
            f"{own.namespace}, but kueue.namespace is {scope.fleet.kueue.namespace}",
            "remove it here: kueue.namespace sets it",
        )
    for field, (alias, instead) in _SET_BY_FLEET.items():
        value = getattr(own.multi_kueue, field) if own.multi_kueue is not None else None
        if value is not None:
            yield SET_ELSEWHERE.at(
                f"multiKueue.{alias}", "is set here, but belongs to the fleet's multiKueue section", f"set {instead}"
            )


@fleet_check
def _relied_on(scope: Scope) -> Iterator[Problem]:
    configurations = {cluster.name: merged_configuration(scope, cluster) for cluster in scope.fleet.clusters}
    yield from _leader(scope, configurations)
    yield from _multi_kueue(scope, configurations)
    yield from _topologies(scope, configurations)
    yield from _operators(scope, configurations)
    if scope.fleet.operators.trainer is not None:
        yield from _trainer(scope, scope.fleet.operators.trainer.version)
    yield from _unused_fields(scope, configurations)


@where_read
def _leader(scope: Scope, kueue_configurations: Mapping[str, KueueConfiguration]) -> Iterator[Problem]:
    """Of one cluster; that of the whole fleet is a rule of `KueueInstallation`."""
    for cluster in scope.entries("clusters"):
        election = kueue_configurations[cluster.name].leader_election or {}
        own = cluster.kueue.configuration.leader_election
        if scope.fleet.kueue.replicas > 1 and own is not None and election.get("leaderElect") is False:
            yield REPLICAS.at(
                f"{scope.path(cluster)}.kueue.configuration.leaderElection.leaderElect",
                f"false, but there are {scope.fleet.kueue.replicas} replicas, which would all admit jobs",
                "remove it, or set kueue.replicas to 1",
            )


@where_read
def _topologies(scope: Scope, kueue_configurations: Mapping[str, KueueConfiguration]) -> Iterator[Problem]:
    off = [
        name
        for name, own in kueue_configurations.items()
        if not scope.fleet.kueue_on(name).release.gate_is_on("TopologyAwareScheduling", own.feature_gates)
    ]
    for topology in scope.fleet.topologies:
        here = [name for name in off if name in scope.fleet.clusters_of(topology)]
        if here:
            yield FEATURE_GATE.at(
                scope.path(topology),
                f"feature gate TopologyAwareScheduling is off on {', '.join(here)}, where the topology exists",
                "remove the override of the gate, or the topology",
            )


@where_read
def _operators(scope: Scope, kueue_configurations: Mapping[str, KueueConfiguration]) -> Iterator[Problem]:
    """Each kind of job has its operator, and each operator a Kueue that manages its kinds."""
    fleet = scope.fleet
    installed_operators = {
        f"operators.{name}": (FRAMEWORKS[name], "remove the operator") for name in fleet.operators.installed
    }
    if fleet.job_set.enabled:
        installed_operators["jobSet"] = ((JOBSET_FRAMEWORK,), "set jobSet.enabled to false")
    for path, (frameworks, otherwise) in installed_operators.items():
        without = [name for name, own in kueue_configurations.items() if not set(frameworks) & set(frameworks_of(own))]
        if without:
            yield OPERATOR.at(
                path,
                f"is installed, but Kueue on {', '.join(without)} does not manage it",
                f"add {frameworks[0]} to integrations.frameworks, or {otherwise}",
            )
    job_set = fleet.job_set.enabled or JOBSET_FRAMEWORK in fleet.operators.installed_elsewhere
    if fleet.operators.trainer is not None and not job_set:
        fix = f"set jobSet.enabled to true, or add {JOBSET_FRAMEWORK} to operators.installedElsewhere"
        yield OPERATOR_NEEDED.at("operators.trainer", "makes JobSets, and the fleet does not install JobSet", fix)
    there = {
        *BUILT_IN,
        *fleet.operators.installed_elsewhere,
        *(kind for kinds, _ in installed_operators.values() for kind in kinds),
    }
    enabled_frameworks = dict.fromkeys(
        framework for own in kueue_configurations.values() for framework in frameworks_of(own)
    )
    for framework in enabled_frameworks:
        if framework in KINDS and framework not in there:
            path = next((name for name, kinds in FRAMEWORKS.items() if framework in kinds), "")
            fix = "set jobSet.enabled to true" if framework == JOBSET_FRAMEWORK else f"add operators.{path}: {{}}"
            other = f"add {framework} to operators.installedElsewhere if it is in the clusters"
            yield OPERATOR.at(
                "kueue.configuration.integrations.frameworks",
                f"{framework}: the fleet does not install its operator, and Kueue does nothing with "
                f"{KINDS[framework].kind}s without it",
                f"{fix}, or {other}" if path or framework == JOBSET_FRAMEWORK else other,
            )


@where_read
def _trainer(scope: Scope, own: str) -> Iterator[Problem]:
    """TrainJobs have the field by which Kueue starts them."""
    for cluster in scope.fleet.clusters:
        version = scope.fleet.kueue_on(cluster.name).version
        least = next((trainer for kueue, trainer in _TRAINER if numbers_of(version) >= numbers_of(kueue)), "")
        if least and numbers_of(own) < numbers_of(least):
            at = f"Kueue {version} on {cluster.name}"
            wrong = f"{own}, whose TrainJobs {at} admits and cannot start: they stay suspended"
            yield OPERATOR.at("operators.trainer.version", wrong, f"use {least} or a newer one")
            return


@where_read
def _multi_kueue(scope: Scope, kueue_configurations: Mapping[str, KueueConfiguration]) -> Iterator[Problem]:
    fleet = scope.fleet
    if fleet.manager is None or fleet.multi_kueue is None:
        return
    manager, release = kueue_configurations[fleet.manager.name], fleet.kueue_on(fleet.manager.name).release
    if not release.gate_is_on("MultiKueue", manager.feature_gates):
        yield FEATURE_GATE.at(
            "multiKueue",
            f"feature gate MultiKueue is off on {fleet.manager.name}, so nothing is dispatched",
            "remove the override of the gate",
        )
    profiles = isinstance(fleet.multi_kueue.credentials, ClusterProfile)
    if profiles and not release.gate_is_on(CLUSTER_PROFILE_GATE, manager.feature_gates):
        yield FEATURE_GATE.at(
            "multiKueue.credentials.type",
            f"ClusterProfile, but feature gate {CLUSTER_PROFILE_GATE} is off on {fleet.manager.name}",
            "remove the override of the gate, or use ServiceAccountToken",
        )
    for name in frameworks_of(manager):
        for worker in fleet.worker_names:
            if name in DISPATCHED_FRAMEWORKS and name not in frameworks_of(kueue_configurations[worker]):
                yield OPERATOR.at(
                    f"{scope.path(fleet.cluster(worker))}.kueue.configuration.integrations.frameworks",
                    f"{name} is missing, but the manager dispatches jobs of this kind",
                    f"add {name}",
                )


@where_read
def _unused_fields(scope: Scope, kueue_configurations: Mapping[str, KueueConfiguration]) -> Iterator[Problem]:
    """Fields of queues and cohorts that Kueue ignores as it is configured."""
    fair = any(configuration.fair_sharing is not None for configuration in kueue_configurations.values())
    usage = any(configuration.admission_fair_sharing is not None for configuration in kueue_configurations.values())
    times = [
        own.admission_fair_sharing.usage_half_life_time
        for own in kueue_configurations.values()
        if own.admission_fair_sharing
    ]
    if times and all(time is None or not time.nanoseconds for time in times):
        yield NO_EFFECT.at(
            "kueue.configuration.admissionFairSharing",
            "has no effect, since usageHalfLifeTime is 0s, the default, with which past usage does not count",
            "set usageHalfLifeTime, such as 168h",
        )
    concurrent = any(
        not release.has_gate("ConcurrentAdmission") or release.gate_is_on("ConcurrentAdmission", own.feature_gates)
        for release, own in ((scope.fleet.kueue_on(name).release, own) for name, own in kueue_configurations.items())
    )
    for entry in (*scope.entries("clusterQueues"), *scope.entries("cohorts")):
        yield from _weight(scope, entry, fair=fair)
    excluded_prefixes = {
        prefix
        for own in kueue_configurations.values()
        if own.resources is not None
        for prefix in own.resources.exclude_resource_prefixes or ()
    }
    for queue in scope.entries("clusterQueues"):
        yield from _unused_by_queue(scope, queue, fair=fair, usage=usage, concurrent=concurrent)
        yield from _uncounted(scope, queue, tuple(excluded_prefixes))
    for team in scope.entries("teams"):
        for local in team.local_queues:
            yield from _unused_weight(scope, f"{scope.path(team)}.localQueues[{local.name}]", local, usage=usage)
    for local in scope.entries("localQueues"):
        yield from _unused_weight(scope, scope.path(local), local, usage=usage)


@where_read
def _weight(scope: Scope, entry: ClusterQueueEntry | CohortEntry, *, fair: bool) -> Iterator[Problem]:
    if entry.fair_sharing.weight != Quantity(1) and not fair:
        yield NO_EFFECT.at(
            f"{scope.path(entry)}.fairSharing.weight",
            f"{entry.fair_sharing.weight} has no effect, since fair sharing is off",
            "add kueue.configuration.fairSharing, or remove it",
        )


@where_read
def _unused_weight(scope: Scope, path: str, local: TeamQueue | LocalQueueEntry, *, usage: bool) -> Iterator[Problem]:
    queue = scope.fleet.queue(local.cluster_queue)
    weight = Quantity(1) if local.fair_sharing is None else local.fair_sharing.weight
    if queue is None or weight == Quantity(1) or weight < ZERO:
        return
    mode = queue.admission_scope.admission_mode if queue.admission_scope is not None else None
    if mode != "UsageBasedAdmissionFairSharing" or not usage:
        yield NO_EFFECT.at(
            f"{path}.fairSharing.weight",
            f"{weight} has no effect, since {queue.name} does not order its LocalQueues by usage",
            f"set admissionScope of {queue.name} and kueue.configuration.admissionFairSharing, or remove it",
        )


@where_read
def _uncounted(scope: Scope, queue: ClusterQueueEntry, excluded_prefixes: tuple[str, ...]) -> Iterator[Problem]:
    """Kueue leaves requests for excluded resources out, so that any number of them is admitted."""
    for g, group in enumerate(queue.resource_groups):
        for name in group.covered_resources:
            if name.startswith(excluded_prefixes):
                yield NO_EFFECT.at(
                    f"{scope.path(queue)}.resourceGroups[{g}].coveredResources",
                    f"the quota for {name} has no effect, since resources.excludeResourcePrefixes leaves it out",
                    "remove the quota, or the prefix",
                )


@where_read
def _unused_by_queue(
    scope: Scope, queue: ClusterQueueEntry, *, fair: bool, usage: bool, concurrent: bool
) -> Iterator[Problem]:
    path = scope.path(queue)
    if fair and queue.preemption.borrow_within_cohort.policy != "Never":
        yield NO_EFFECT.at(
            f"{path}.preemption.borrowWithinCohort",
            "is not meant for fair sharing, which is on",
            "remove it, or kueue.configuration.fairSharing",
        )
    if queue.admission_scope is not None and not usage:
        yield NO_EFFECT.at(
            f"{path}.admissionScope",
            f"{queue.admission_scope.admission_mode} has no effect, since admission fair sharing is off",
            "add kueue.configuration.admissionFairSharing, or remove it",
        )
    if queue.concurrent_admission_policy is not None and not concurrent:
        yield NO_EFFECT.at(
            f"{path}.concurrentAdmissionPolicy",
            "has no effect, since feature gate ConcurrentAdmission is off",
            "set kueue.configuration.featureGates.ConcurrentAdmission to true, or remove it",
        )
