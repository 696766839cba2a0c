"""Rules about Kueue's queues, each by itself and with what they refer to.

Problems that Kueue reports only while it runs, as an inactive queue or as a job that is never admitted. Source:
kueue@v0.19.2 pkg/cache/scheduler/clusterqueue.go (reasons of an inactive ClusterQueue),
pkg/webhooks/clusterqueue_webhook.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER
from kueue_admission.kernel.unknown import UNKNOWN, holds_unknown, is_known
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet_policies.estate import Estate, KubernetesObjects, object_name, objects_by_name
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, entries, items, number

Finding = tuple[Resource | None, Breach]
"""A problem, and the resource that has it, if it is one."""


def flavors_of(queue: Resource) -> Iterator[tuple[str, Any]]:
    """Path and content of every known flavor of a ClusterQueue."""
    for group, entry in enumerate(items(queue.get("spec.resourceGroups"))):
        for index, flavor in enumerate(items(at(entry, "flavors"))):
            yield f"spec.resourceGroups[{group}].flavors[{index}]", flavor


def quotas_of(queue: Resource) -> Iterator[tuple[str, str, str, Any]]:
    """Path, flavor, resource and nominal quota of every entry of a ClusterQueue whose names are known."""
    for path, flavor in flavors_of(queue):
        name = at(flavor, "name")
        for index, resource in enumerate(items(at(flavor, "resources"))):
            kind = at(resource, "name")
            if isinstance(name, str) and isinstance(kind, str):
                where = f"{path}.resources[{index}].nominalQuota"
                yield where, name, kind, at(resource, "nominalQuota")


def checks_of(queue: Resource) -> Iterator[tuple[str, Any, tuple[str, ...] | None]]:
    """Path, name and flavors of every admission check of a ClusterQueue; no flavors means all of them."""
    for index, check in enumerate(items(queue.get("spec.admissionChecksStrategy.admissionChecks"))):
        path = f"spec.admissionChecksStrategy.admissionChecks[{index}]"
        flavors = at(check, "onFlavors")
        yield path, at(check, "name"), tuple(items(flavors)) if flavors else None
    for index, name in enumerate(items(queue.get("spec.admissionChecks"))):
        yield f"spec.admissionChecks[{index}]", name, None


def dispatches(queue: Resource, objects: KubernetesObjects) -> bool:
    """Whether a ClusterQueue sends its jobs to other clusters, so that its flavors need no nodes of its own."""
    checks = objects_by_name(objects.get("AdmissionCheck", ()))
    used = [checks.get(name) for _, name, _ in checks_of(queue) if isinstance(name, str)]
    return any(check is not None and check.get("spec.controllerName") == MULTIKUEUE_CONTROLLER for check in used)


def _references(estate: Estate, _: Settings) -> Iterator[Finding]:
    for objects in estate.providers.values():
        for queue in objects.get("ClusterQueue", ()):
            for path, flavor in flavors_of(queue):
                yield from _missing(queue, f"{path}.name", at(flavor, "name"), "ResourceFlavor", objects)
            for path, check, _flavors in checks_of(queue):
                yield from _missing(queue, path, check, "AdmissionCheck", objects)


def _local_queues(estate: Estate, _: Settings) -> Iterator[Finding]:
    for objects in estate.providers.values():
        for queue in objects.get("LocalQueue", ()):
            yield from _missing(queue, "spec.clusterQueue", queue.get("spec.clusterQueue"), "ClusterQueue", objects)


def _missing(
    queue: Resource, path: str, name: Any, kind: str, objects: KubernetesObjects
) -> Iterator[tuple[Resource, Breach]]:
    """The problem of a name that no object of that kind has; none where the stack declares no object of the kind."""
    known: Sequence[Resource] = objects.get(kind, ())
    if not known or not isinstance(name, str) or not all(is_known(object_name(one)) for one in known):
        return
    names = sorted(objects_by_name(known))
    if name not in names:
        yield (
            queue,
            Breach(
                path, f"is {name}, but this cluster has no such {kind}", f"use one of {', '.join(names)}, or add it"
            ),
        )


def _same_queues_on_workers(estate: Estate, _: Settings) -> Iterator[Finding]:
    """A manager's LocalQueues are found on the workers by namespace and name."""
    elsewhere = {
        urn: {_place(queue) for queue in objects.get("LocalQueue", ())} for urn, objects in estate.providers.items()
    }
    for urn, objects in estate.providers.items():
        others = [pairs for other, pairs in elsewhere.items() if other != urn and pairs]
        sends = {object_name(queue) for queue in objects.get("ClusterQueue", ()) if dispatches(queue, objects)}
        if not others or any(UNKNOWN in pair for pairs in others for pair in pairs):
            continue
        for queue in objects.get("LocalQueue", ()):
            pair, target = _place(queue), queue.get("spec.clusterQueue")
            sent = isinstance(target, str) and target in sends
            if sent and UNKNOWN not in pair and not any(pair in pairs for pairs in others):
                yield (
                    queue,
                    Breach(
                        "metadata.name",
                        f"is {pair[1]} in namespace {pair[0]}, but no worker has a LocalQueue of that name there, so "
                        "MultiKueue can send its jobs nowhere",
                        "declare it on the workers too",
                    ),
                )


def _place(queue: Resource) -> tuple[Any, Any]:
    """Namespace and name of an object, each `UNKNOWN` where it is not known."""
    namespace = queue.get("metadata.namespace")
    return (namespace if isinstance(namespace, str) else UNKNOWN, object_name(queue))


def _limits(queue: Resource, _: Settings) -> Iterator[Breach]:
    for key in ("cohortName", "cohort"):
        if not queue.lacks(f"spec.{key}"):
            return
    for path, flavor in flavors_of(queue):
        for index, resource in enumerate(items(at(flavor, "resources"))):
            for limit in ("borrowingLimit", "lendingLimit"):
                if limit in entries(resource):
                    yield Breach(
                        f"{path}.resources[{index}].{limit}",
                        "is set, but the queue has no cohort to borrow from or lend to",
                        "set spec.cohortName, or remove the limit",
                    )


def _covers(queue: Resource, settings: Settings) -> Iterator[Breach]:
    groups = items(queue.get("spec.resourceGroups"))
    covered = [resource for group in groups for resource in items(at(group, "coveredResources"))]
    sure = not any(holds_unknown(at(group, "coveredResources")) for group in groups)
    missing = [needed for needed in settings.names("resources") if needed not in covered]
    if sure and GPU_RESOURCE in covered and missing:
        yield Breach(
            "spec.resourceGroups",
            f"cover {GPU_RESOURCE} but not {', '.join(missing)}: a job that asks for these is never admitted",
            "add them to coveredResources, with a quota for each flavor",
        )


def _cohort_of(queue: Resource) -> Any:
    """The cohort that a queue names; None where it has none, `UNKNOWN` where that is not known."""
    names = [queue.get(f"spec.{key}") for key in ("cohortName", "cohort")]
    unknown = queue.is_patch or UNKNOWN in names
    return next((name for name in names if is_known(name) and name), UNKNOWN if unknown else None)


def _admits(estate: Estate, _: Settings) -> Iterator[Finding]:
    for objects in estate.providers.values():
        parents = {name: one.get("spec.parentName") for name, one in objects_by_name(objects.get("Cohort", ())).items()}
        for queue in objects.get("ClusterQueue", ()):
            cohort = _cohort_of(queue)
            for breach in chain(_selects_nothing(queue), _without_quota(queue, cohort), _in_cycle(cohort, parents)):
                yield queue, breach


def _selects_nothing(queue: Resource) -> Iterator[Breach]:
    if queue.get("spec.namespaceSelector") is None and not queue.is_patch:
        yield Breach("spec.namespaceSelector", "is missing, which selects no namespace", "write {} for all of them")


def _without_quota(queue: Resource, cohort: Any) -> Iterator[Breach]:
    if queue.lacks("spec.resourceGroups"):
        yield Breach("spec.resourceGroups", "are missing or empty, so no request has a quota", "add one with a quota")
    if holds_unknown(queue.get("spec.resourceGroups")):
        return
    quotas: dict[str, list[tuple[str, Any]]] = {}
    for path, _flavor, resource, quota in quotas_of(queue):
        quotas.setdefault(resource, []).append((path, quota))
    for resource, of_flavors in quotas.items():
        if cohort is None and all(number(quota) == 0 for _, quota in of_flavors):
            yield Breach(
                of_flavors[0][0],
                f"is 0, as in every flavor, and there is no cohort to borrow from: no job that asks for {resource} is "
                "admitted",
                "give it a quota, or the queue a cohort",
            )


def _in_cycle(cohort: Any, parents: Mapping[str, Any]) -> Iterator[Breach]:
    """Source: kueue@v0.19.2 pkg/cache/hierarchy/cycle.go; Kueue stops the queues below a cycle."""
    line: list[Any] = []
    while isinstance(cohort, str) and cohort not in line:
        line.append(cohort)
        cohort = parents.get(cohort)
    if isinstance(cohort, str):
        above = " < ".join([*line[line.index(cohort) :], cohort])
        yield Breach("spec.cohortName", f"leads to cohorts in a cycle ({above})", "take a spec.parentName out of it")


RULES: Final = rules_of(
    "Kueue queues",
    {
        "kueue-queue-references": _references,
        "kueue-local-queue-reference": _local_queues,
        "kueue-multikueue-local-queues": _same_queues_on_workers,
        "kueue-limits-need-cohort": _limits,
        "kueue-covers-cpu-and-memory": _covers,
        "kueue-queue-admits": _admits,
    },
)
"""The rules of this module."""
