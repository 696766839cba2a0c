"""Raw Kubernetes objects against the models of Kueue's API.

Objects of Kueue's v1beta2 and both kinds of priority class are checked; others are passed over. References between the
given objects are checked where both ends are given; what is not given may be on the cluster already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    MultiKueueClusterSpec,
    MultiKueueConfigSpec,
    PriorityClassFields,
    ProvisioningRequestConfigSpec,
    ResourceFlavorSpec,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_admission.api.cohort_tree import Parents, with_ancestors
from kueue_admission.kernel import suggest
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.form_rules import COHORT_CYCLE, Fault
from kueue_admission.kernel.job_rules import CHECKS_EXCLUDE, OBJECT_KIND
from kueue_admission.kernel.names import KUEUE_API, KUEUE_GROUP, MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.read_model import read_model

SPECS: Final[Mapping[str, type[SpecModel]]] = {
    "AdmissionCheck": AdmissionCheckSpec,
    "ClusterQueue": ClusterQueueSpec,
    "Cohort": CohortSpec,
    "LocalQueue": LocalQueueSpec,
    "MultiKueueCluster": MultiKueueClusterSpec,
    "MultiKueueConfig": MultiKueueConfigSpec,
    "ProvisioningRequestConfig": ProvisioningRequestConfigSpec,
    "ResourceFlavor": ResourceFlavorSpec,
    "Topology": TopologySpec,
}
"""Kinds of Kueue's v1beta2 with a spec."""
SYSTEM_PRIORITIES: Final = "system-"
"""How the names of the PriorityClasses begin that Kubernetes makes itself, with values that it refuses to others."""
_NOT_WRITTEN: Final = frozenset({"Workload"})
_METADATA: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def check_objects(docs: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """Every problem of the objects, in their order; paths begin with kind and name: `ClusterQueue[dws].spec`."""
    objects = list(docs)
    problems = [problem for doc in objects for problem in _check_one(doc)]
    return problems + list(_check_queues(objects))


def _check_one(doc: Mapping[str, Any]) -> Iterator[Problem]:
    version, kind, path = str(doc.get("apiVersion", "")), str(doc.get("kind", "")), _path(doc)
    if version == "scheduling.k8s.io/v1" and kind == "PriorityClass":
        if not _name(doc).startswith(SYSTEM_PRIORITIES):
            yield from _check_model(PriorityClassFields, _own_fields(doc), path)
    elif not version.startswith(f"{KUEUE_GROUP}/") or kind in _NOT_WRITTEN:
        return
    elif version != KUEUE_API:
        yield OBJECT_KIND.at(f"{path}.apiVersion", f"{version} is not {KUEUE_API}", f"write it as {KUEUE_API}")
    elif kind == "WorkloadPriorityClass":
        yield from _check_model(WorkloadPriorityClassFields, _own_fields(doc), path)
    elif kind in SPECS:
        yield from _check_model(SPECS[kind], doc.get("spec", {}), f"{path}.spec")
    else:
        kinds = (*SPECS, "WorkloadPriorityClass")
        yield OBJECT_KIND.at(f"{path}.kind", f"Kueue has no kind {kind}", suggest.instead(kind, kinds, "kinds"))


def _check_model(model: type[SpecModel], data: Any, path: str) -> Iterator[Problem]:
    try:
        read_model(model, data, path)
    except SpecError as error:
        yield from error.problems


def _own_fields(doc: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in doc.items() if key not in _METADATA}


def _check_queues(objects: list[Mapping[str, Any]]) -> Iterator[Problem]:
    """What Kueue would report as Active=False, for queues whose checks are among the objects."""
    controllers = {
        _name(doc): _spec(doc).get("controllerName") for doc in objects if doc.get("kind") == "AdmissionCheck"
    }
    for doc in objects:
        if doc.get("kind") != "ClusterQueue":
            continue
        strategy = _spec(doc).get("admissionChecksStrategy")
        rules = strategy.get("admissionChecks") if isinstance(strategy, Mapping) else None
        rule_list = [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []
        path = f"{_path(doc)}.spec.admissionChecksStrategy.admissionChecks"
        dispatch = [rule for rule in rule_list if controllers.get(str(rule.get("name"))) == MULTIKUEUE_CONTROLLER]
        provision = [rule for rule in rule_list if controllers.get(str(rule.get("name"))) == PROVISIONING_CONTROLLER]
        if len(dispatch) > 1:
            names = ", ".join(str(rule.get("name")) for rule in dispatch)
            yield CHECKS_EXCLUDE.at(
                path, f"{names} are all MultiKueue checks, but a queue may have one", "keep one of them"
            )
        for rule in dispatch:
            if rule.get("onFlavors"):
                yield CHECKS_EXCLUDE.at(
                    f"{path}[{rule.get('name')}].onFlavors",
                    f"{rule.get('name')} is a MultiKueue check, which is for every flavor",
                    "remove onFlavors",
                )
        if dispatch and provision:
            yield CHECKS_EXCLUDE.at(
                path,
                f"{dispatch[0].get('name')} dispatches to other clusters and {provision[0].get('name')} asks for "
                "capacity here, and Kueue allows no queue both",
                f"remove {provision[0].get('name')} here, and put it on the workers' queues",
            )


def _spec(doc: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = doc.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _name(doc: Mapping[str, Any]) -> str:
    metadata = doc.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _path(doc: Mapping[str, Any]) -> str:
    return f"{doc.get('kind', 'object')}[{_name(doc)}]"


def cycles(parents: Parents) -> list[tuple[str, ...]]:
    """Each cycle once, from its first cohort in `parents` upwards and back to it: `("a", "b", "a")`."""
    cycles_of_names: list[tuple[str, ...]] = []
    for cohort in parents:
        walk = with_ancestors(cohort, parents)
        if parents.get(walk[-1]) == cohort and not any(cohort in cycle for cycle in cycles_of_names):
            cycles_of_names.append((*walk, cohort))
    return cycles_of_names


def cycle_faults(parents: Parents) -> Iterator[tuple[str, Fault]]:
    """The first cohort of each cycle, and what is wrong with its parent."""
    for cycle in cycles(parents):
        wrong = f"the cohorts form a cycle, {' -> '.join(cycle)}, and Kueue admits nothing in that tree"
        yield cycle[0], Fault(wrong, "remove one of these parents", COHORT_CYCLE)
