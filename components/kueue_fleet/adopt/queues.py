"""Flavors, cohorts, queues and admission checks of all clusters, as entries that say where they are.

What the fleet derives for the manager and the workers (MultiKueue's checks, the check of its own controller) is
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api import ResourceFlavorSpec
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import BUDGET_CHECK, FALLBACK_CHECK, MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.read_model import read_model
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.platform import Platform, Specs
from kueue_fleet.adopt.quotas import merge_cohort, merge_queue, merged_order, rules_of
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.compute_classes import ComputeClass, class_flavor
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.flavor_nodes import derived_flavor
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import resolve_pool
from kueue_fleet.gke.labels import NODE_POOL
from kueue_fleet.settings.dispatch import ASSIGNMENT_CONTROLLER

_MADE_BY_FLEET: Final = (MULTIKUEUE_CONTROLLER, ASSIGNMENT_CONTROLLER)


def adopt_entries(platform: Platform, kind: str, *, placed: bool = False) -> list[Data]:
    """Entries of objects that are the same wherever they are; with `placed` they say where that is."""
    return [
        {"name": name, **(platform.where(specs) if placed else {}), **platform.same(kind, name, specs)}
        for name, specs in platform.found(kind).items()
    ]


def adopt_flavors(platform: Platform, pools: list[Data]) -> list[Data]:
    """Entries of `flavors`; one that is what a node pool gives names the pool."""
    entries = []
    for name, specs in platform.found("ResourceFlavor").items():
        entry = _of_pool(platform, specs, pools) or _of_class(platform, name, specs)
        if entry is None:
            entry = {**platform.where(specs), **platform.same("ResourceFlavor", name, specs)}
        entries.append({"name": name, **entry})
    return entries


def _of_pool(platform: Platform, specs: Specs, pools: list[Data]) -> Data | None:
    """The flavor as one of a node pool: on every cluster it is what the pool there gives, and the same beside it."""
    pool_names = {str((spec.get("nodeLabels") or {}).get(NODE_POOL)) for spec in specs.values()}
    pool = next((entry for entry in pools if {entry["name"]} == pool_names), None)
    if pool is None:
        return None
    on: list[str] = pool.get("clusters", platform.standard_clusters)
    regions = {cluster.name: cluster.region for cluster in platform.clusters}
    beside = [_beside_pool(cluster, regions[cluster], spec, pool) for cluster, spec in specs.items() if cluster in on]
    if len(beside) < len(specs) or any(label is None or label != beside[0] for label in beside):
        return None
    return {**({} if list(specs) == on else {"clusters": list(specs)}), "nodePool": pool["name"], **(beside[0] or {})}


def _of_class(platform: Platform, name: str, specs: Specs) -> Data | None:
    """The flavor as one of a compute class of its name, which is the same on each of its clusters."""
    classes = {cluster: item for cluster, item in platform.others("ComputeClass") if item["metadata"]["name"] == name}
    classes_there = [
        _class_of(classes[cluster].get("spec") or {}, name, spec)
        for cluster, spec in specs.items()
        if cluster in classes
    ]
    if (
        not classes_there
        or len(classes_there) < len(specs)
        or any(label is None or label != classes_there[0] for label in classes_there)
    ):
        return None
    return {**platform.where(specs), **(classes_there[0] or {})}


def _class_of(class_spec: Data, name: str, spec: Data) -> Data | None:
    """The fields that a class and its flavor are said by; None where the file has no place for all of them."""
    creates_pools = not class_spec.get("nodePoolAutoCreation") or inside(class_spec, "nodePoolAutoCreation").get(
        "enabled", False
    )
    fields = {key: value for key, value in class_spec.items() if key != "nodePoolAutoCreation"}
    data = {**fields, **({} if creates_pools else {"nodePoolAutoCreation": False})}
    try:
        class_fields, flavor = read_model(ComputeClass, data), read_model(ResourceFlavorSpec, spec)
    except SpecError:
        return None
    if class_flavor(name, flavor, class_fields).model_copy(update={"topology_name": flavor.topology_name}) != flavor:
        return None
    spot = len(class_flavor(name, ResourceFlavorSpec(), class_fields).tolerations)
    beside = {
        "tolerations": [toleration.wire() for toleration in flavor.tolerations[spot:]],
        "topologyName": flavor.topology_name,
    }
    return {"computeClass": data, **{field: value for field, value in beside.items() if value}}


def _beside_pool(cluster: str, region: str, spec: Data, pool: Data) -> Data | None:
    """What the flavor has beside what the pool gives it on the cluster; None where it is not the pool's."""
    try:
        there = resolve_pool(
            read_model(NodePoolEntry, pool), ClusterEntry(name=cluster, role="worker", region=region, mode="Standard")
        )
        flavor = read_model(ResourceFlavorSpec, spec)
    except (SpecError, ValueError):
        return None
    bare = derived_flavor(FlavorEntry.model_construct(name=""), there)
    beside = flavor.tolerations[len(bare.tolerations) :]
    changes = {"tolerations": (*bare.tolerations, *beside), "topology_name": flavor.topology_name}
    if bare.model_copy(update=changes) != flavor:
        return None
    fields_beside = {"tolerations": [quota.wire() for quota in beside], "topologyName": flavor.topology_name}
    return {field: value for field, value in fields_beside.items() if value}


def adopt_cohorts(platform: Platform) -> list[Data]:
    """Entries of `cohorts`; the manager's quotas are the sum of the workers'. A cohort that queues only name is one."""
    entries = []
    for name, specs in platform.found("Cohort", platform.job_clusters).items():
        entry, problems = merge_cohort(name, specs)
        platform.problems += problems
        entries.append(entry)
    declared_names = {entry["name"] for entry in entries}
    queues = platform.found("ClusterQueue", platform.job_clusters).values()
    cohort_names = [spec.get("cohortName") for specs in queues for spec in specs.values()]
    cohort_names += [entry.get("parentName") for entry in entries]
    for cohort in dict.fromkeys(name for name in cohort_names if name and name not in declared_names):
        entries.append({"name": cohort})
        platform.notes.append(f"Cohort {cohort} existed by name only; it becomes an object")
    return entries


def adopt_queues(platform: Platform) -> list[Data]:
    """Entries of `clusterQueues`, with the manager's quotas of those that it dispatches."""
    checks, dispatched_names = _made_checks(platform), dispatched_queues(platform)
    on_manager = platform.of_manager.of("ClusterQueue")
    fallback = (platform.controller_settings or {}).get("fallback") or {}
    following = {cluster_queue["name"]: cluster_queue for cluster_queue in platform.following.get("clusterQueues", ())}
    entries = []
    for name, specs in platform.found("ClusterQueue").items():
        is_dispatched = name in dispatched_names
        workers = {cluster: _without(spec, checks) for cluster, spec in specs.items() if cluster != platform.manager}
        if is_dispatched and not workers:
            platform.problem(
                f"{platform.manager}.ClusterQueue {name}",
                "is on the manager and on no worker, so its jobs can go nowhere",
                "leave it out, or give the worker that has it",
            )
            continue
        # A queue that the manager does not dispatch is one like any other there.
        own = workers if is_dispatched else {cluster: _without(spec, checks) for cluster, spec in specs.items()}
        flavors = {cluster: set(platform.objects[cluster].of("ResourceFlavor")) for cluster in own}
        entry, problems = merge_queue(name, own, flavors)
        platform.problems += problems
        if is_dispatched:
            _add_managers(entry, _without(on_manager[name], checks))
        if name in fallback:
            entry["fallback"] = fallback[name]["fallback"]
        following_fields = following.get(name, {})
        if following_fields.get("quotaFollows") == "capacity" or _has_windows(following_fields):
            # Those of the file: what the cluster has may be others for a while.
            fields = ("quotaFollows", "slack", "resourceGroups", "manager")
            entry |= {field: following_fields.get(field) for field in fields}
        entries.append({"name": name, **platform.where(own), **entry})
    return entries


def _has_windows(settings: Data) -> bool:
    flavors = (flavor for group in settings.get("resourceGroups") or () for flavor in group["flavors"])
    quotas = (quota for flavor in flavors for quota in flavor["resources"])
    return any(
        cluster_quota.get("during")
        for quota in quotas
        for cluster_quota in (quota, *(quota.get("perCluster") or {}).values())
    )


def dispatched_queues(platform: Platform) -> list[str]:
    """Names of the queues that the manager dispatches."""
    checks = _made_checks(platform)
    on_manager = platform.of_manager.of("ClusterQueue")
    return [name for name, spec in on_manager.items() if any(rule["name"] in checks for rule in rules_of(spec))]


def _made_checks(platform: Platform) -> set[str]:
    """Checks that the fleet derives."""
    return {
        name
        for name, specs in platform.found("AdmissionCheck").items()
        if name in (BUDGET_CHECK, FALLBACK_CHECK)
        or any(spec.get("controllerName") in _MADE_BY_FLEET for spec in specs.values())
    }


def _without(spec: Data, checks: set[str]) -> Data:
    rules = [rule for rule in rules_of(spec) if rule["name"] not in checks]
    own = {key: value for key, value in spec.items() if key != "admissionChecksStrategy"}
    return {**own, "admissionChecksStrategy": {"admissionChecks": rules}} if rules else own


def _add_managers(entry: Data, spec: Data) -> None:
    """What only the manager's copy of a queue says: its quotas, and checks that are answered there alone."""
    entry["manager"] = {"resourceGroups": spec.get("resourceGroups") or []}
    rules = {rule["name"]: rule for rule in (*rules_of(spec), *rules_of(entry))}
    order = merged_order([rule["name"] for rule in rules_of(rules_owner)] for rules_owner in (entry, spec))
    if rules:
        entry["admissionChecksStrategy"] = {"admissionChecks": [rules[name] for name in order or rules]}


def adopt_checks(platform: Platform) -> list[Data]:
    """Entries of `admissionChecks`, each with its ProvisioningRequestConfig."""
    entries = []
    checks, configs = _made_checks(platform), platform.found("ProvisioningRequestConfig")
    for name, specs in platform.found("AdmissionCheck").items():
        spec = platform.same("AdmissionCheck", name, specs)
        if name in checks:
            continue
        entry: Data = {"name": name, **platform.where(specs)}
        if spec.get("controllerName") != PROVISIONING_CONTROLLER:
            entries.append({**entry, **spec})
            continue
        config = (spec.get("parameters") or {}).get("name", "")
        config_there = configs.get(config)
        if config_there is None:
            platform.problem(
                f"AdmissionCheck {name}.spec.parameters.name",
                f"there is no ProvisioningRequestConfig {config or '(none named)'}",
                "give it too, or leave the check out",
            )
            continue
        request = platform.same("ProvisioningRequestConfig", config, config_there)
        config_fields: Mapping[str, Any] = {} if config == name else {"configName": config}
        entries.append({**entry, "provisioningRequest": {**config_fields, **request}})
    return entries
