"""One entry from the same queue or cohort on several clusters: shared groups, and `perCluster` where amounts differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import TypeVar

from kueue_admission.kernel.problem import Problem
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.fleet_file.in_words import in_words
from kueue_fleet.fleet_file.rules.commands import IMPORT_DIFFERENCE

_T = TypeVar("_T")
_AMOUNTS = ("nominalQuota", "borrowingLimit", "lendingLimit")


def merge_queue(name: str, specs: Mapping[str, Data], flavors: Mapping[str, set[str]]) -> tuple[Data, list[Problem]]:
    """A ClusterQueue on every cluster of `specs`; `flavors` has the ResourceFlavors that exist on each."""
    path = f"ClusterQueue {name}"
    problems = list(differences(path, specs, {"resourceGroups", "admissionChecksStrategy"}))
    entry = {field: value for field, value in next(iter(specs.values())).items() if field != "resourceGroups"}
    entry |= _merge_checks(name, specs, problems)
    entry["resourceGroups"] = _merge_groups(path, specs, problems)
    every = [flavor["name"] for group in entry["resourceGroups"] for flavor in group["flavors"]]
    for cluster, spec in specs.items():
        used_flavors = {flavor["name"] for group in spec.get("resourceGroups", ()) for flavor in group["flavors"]}
        problems += [
            IMPORT_DIFFERENCE.at(
                f"{cluster}.{path}.resourceGroups",
                f"has no quota on flavor {flavor}, which is on {cluster} and in the queue elsewhere",
                "give it a quota of 0 there first",
            )
            for flavor in every
            if flavor in flavors[cluster] and flavor not in used_flavors
        ]
    return entry, problems


def merge_cohort(name: str, specs: Mapping[str, Data]) -> tuple[Data, list[Problem]]:
    """A Cohort on every cluster of `specs`."""
    problems = list(differences(f"Cohort {name}", specs, {"resourceGroups"}))
    base = next(iter(specs.values()))
    entry = {"name": name, **{field: value for field, value in base.items() if field != "resourceGroups"}}
    groups = _merge_groups(f"Cohort {name}", specs, problems)
    return ({**entry, "resourceGroups": groups} if groups else entry), problems


def differences(path: str, specs: Mapping[str, Data], merged_names: Set[str] = frozenset()) -> Iterator[Problem]:
    """Fields, but those that are `merged_names`, that are not the same on every cluster."""
    (first, base), *others = specs.items()
    for cluster, spec in others:
        for field in sorted({*spec, *base} - merged_names):
            if spec.get(field) != base.get(field):
                yield IMPORT_DIFFERENCE.at(
                    f"{cluster}.{path}.{field}",
                    f"{in_words(spec.get(field))}, but {in_words(base.get(field))} on {first}",
                    "make them the same, or import the clusters one at a time",
                )


def _merge_checks(name: str, specs: Mapping[str, Data], problems: list[Problem]) -> Data:
    """The checks of all clusters; a check is left out on a cluster that has not got it or its flavors."""
    merged_rules: dict[str, list[list[str]]] = {}
    for cluster, spec in specs.items():
        for rule in rules_of(spec):
            on: list[str] = rule.get("onFlavors") or []
            flavor_lists = merged_rules.setdefault(rule["name"], [])
            if any(bool(other) != bool(on) for other in flavor_lists):
                problems.append(
                    IMPORT_DIFFERENCE.at(
                        f"{cluster}.ClusterQueue {name}.admissionChecksStrategy",
                        f"{rule['name']} is for some flavors here and for all elsewhere",
                        "make them the same, or import the clusters one at a time",
                    )
                )
            flavor_lists.append(on)
    order = merged_order([[rule["name"] for rule in rules_of(spec)] for spec in specs.values()]) or list(merged_rules)
    flavors = {check: merged_order(value) or [*dict.fromkeys(chain(*value))] for check, value in merged_rules.items()}
    rules = [{"name": check, **({"onFlavors": flavors[check]} if flavors[check] else {})} for check in order]
    return {"admissionChecksStrategy": {"admissionChecks": rules}} if rules else {}


def rules_of(spec: Data) -> list[Data]:
    """The admission checks of a queue."""
    return list((spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ())


def _merge_groups(path: str, specs: Mapping[str, Data], problems: list[Problem]) -> list[Data]:
    """Groups are the same if they cover the same resources; their flavors are put together in order."""
    groups: dict[str, dict[tuple[str, ...], Data]] = {
        cluster: {tuple(group["coveredResources"]): group for group in spec.get("resourceGroups") or ()}
        for cluster, spec in specs.items()
    }
    every = _in_order(path, "resource groups", {cluster: list(of) for cluster, of in groups.items()}, problems)
    merged_groups = []
    for covered_names in every:
        here = {cluster: of[covered_names] for cluster, of in groups.items() if covered_names in of}
        merged_groups.append(
            {"coveredResources": list(covered_names), "flavors": _merge_flavors(path, covered_names, here, problems)}
        )
    return merged_groups


def _merge_flavors(
    path: str, covered_names: tuple[str, ...], groups: Mapping[str, Data], problems: list[Problem]
) -> list[Data]:
    quotas = {
        cluster: {
            flavor["name"]: {resource["name"]: resource for resource in flavor["resources"]}
            for flavor in group["flavors"]
        }
        for cluster, group in groups.items()
    }
    merged_flavors = []
    for name in _in_order(path, "flavors", {cluster: list(of) for cluster, of in quotas.items()}, problems):
        here = {cluster: of[name] for cluster, of in quotas.items() if name in of}
        resources = [{c: of[resource] for c, of in here.items() if resource in of} for resource in covered_names]
        merged_flavors.append(
            {"name": name, "resources": [_merge_quota(by_cluster) for by_cluster in resources if by_cluster]}
        )
    return merged_flavors


def _in_order(path: str, what: str, parts: Mapping[str, list[_T]], problems: list[Problem]) -> list[_T]:
    """All items of all clusters, in an order that is that of each."""
    merged_names = merged_order(parts.values())
    if merged_names is None:
        parts_text = "; ".join(f"{cluster}: {', '.join(map(_named, items))}" for cluster, items in parts.items())
        problems.append(
            IMPORT_DIFFERENCE.at(
                f"{path}.resourceGroups",
                f"{what} are in different orders ({parts_text})",
                "use one order everywhere, or import the clusters one at a time",
            )
        )
        return list(dict.fromkeys(item for items in parts.values() for item in items))
    return merged_names


def merged_order(parts: Iterable[Sequence[_T]]) -> list[_T] | None:
    """Every item once, so that each part is in its own order. None if two parts contradict each other."""
    sorter: TopologicalSorter[_T] = TopologicalSorter()
    for part in parts:
        for first in part[:1]:
            sorter.add(first)
        for before, after in pairwise(part):
            sorter.add(after, before)
    try:
        return list(sorter.static_order())
    except CycleError:
        return None


def _named(item: object) -> str:
    return "+".join(item) if isinstance(item, tuple) else str(item)


def _merge_quota(by_cluster: Mapping[str, Data]) -> Data:
    amounts = {
        cluster: {field: quota[field] for field in _AMOUNTS if field in quota} for cluster, quota in by_cluster.items()
    }
    return {"name": next(iter(by_cluster.values()))["name"], **once(amounts)}


def once(by_cluster: Mapping[str, Data], always: Collection[str] = ()) -> Data:
    """What all clusters have, and the fields of `always`, with what the first one has; the rest for each cluster."""
    shared_fields = {
        field: value
        for field, value in next(iter(by_cluster.values())).items()
        if field in always or all(field in fields_there for fields_there in by_cluster.values())
    }
    own = {
        cluster: {
            field: value
            for field, value in fields_there.items()
            if field not in shared_fields or value != shared_fields[field]
        }
        for cluster, fields_there in by_cluster.items()
    }
    different = {cluster: fields for cluster, fields in own.items() if fields}
    return {**shared_fields, **({"perCluster": different} if different else {})}
