"""One entry from the same queue or cohort on several clusters: shared groups, and `perCluster` where amounts differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from kueue_fleet.kueue_api.problem import Problem

Data = dict[str, Any]
"""A part of a fleet file as plain data."""
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
        used = {flavor["name"] for group in spec.get("resourceGroups", ()) for flavor in group["flavors"]}
        problems += [
            Problem(
                f"{cluster}.{path}.resourceGroups",
                f"has no quota on flavor {flavor}, which is on {cluster} and in the queue elsewhere",
                "give it a quota of 0 there first",
            )
            for flavor in every
            if flavor in flavors[cluster] and flavor not in used
        ]
    return entry, problems


def merge_cohort(name: str, specs: Mapping[str, Data]) -> tuple[Data, list[Problem]]:
    """A Cohort on every cluster of `specs`."""
    problems = list(differences(f"Cohort {name}", specs, {"resourceGroups"}))
    base = next(iter(specs.values()))
    entry = {"name": name, **{field: value for field, value in base.items() if field != "resourceGroups"}}
    groups = _merge_groups(f"Cohort {name}", specs, problems)
    return ({**entry, "resourceGroups": groups} if groups else entry), problems


def differences(path: str, specs: Mapping[str, Data], merged: Set[str] = frozenset()) -> Iterator[Problem]:
    """Fields, but those that are `merged`, that are not the same on every cluster."""
    (first, base), *others = specs.items()
    for cluster, spec in others:
        for field in sorted({*spec, *base} - merged):
            if spec.get(field) != base.get(field):
                yield Problem(
                    f"{cluster}.{path}.{field}",
                    f"{spec.get(field)}, but {base.get(field)} on {first}",
                    "make them the same, or import the clusters one at a time",
                )


def _merge_checks(name: str, specs: Mapping[str, Data], problems: list[Problem]) -> Data:
    """The checks of all clusters; a check is left out on a cluster that has not got it or its flavors."""
    merged: dict[str, dict[str, None] | None] = {}
    for cluster, spec in specs.items():
        for rule in (spec.get("admissionChecksStrategy") or {}).get("admissionChecks", ()):
            on = rule.get("onFlavors")
            known = merged.setdefault(rule["name"], {} if on else None)
            if (known is None) == bool(on):
                problems.append(
                    Problem(
                        f"{cluster}.ClusterQueue {name}.admissionChecksStrategy",
                        f"{rule['name']} is for some flavors here and for all elsewhere",
                        "make them the same, or import the clusters one at a time",
                    )
                )
            elif known is not None:
                known.update(dict.fromkeys(on))
    if not merged:
        return {}
    rules = [{"name": check, **({"onFlavors": list(on)} if on else {})} for check, on in merged.items()]
    return {"admissionChecksStrategy": {"admissionChecks": rules}}


def _merge_groups(path: str, specs: Mapping[str, Data], problems: list[Problem]) -> list[Data]:
    """Groups are the same if they cover the same resources; their flavors are put together in order."""
    merged: dict[tuple[str, ...], dict[str, dict[str, dict[str, Data]]]] = {}
    for cluster, spec in specs.items():
        for group in spec.get("resourceGroups", ()):
            covered = tuple(group["coveredResources"])
            flavors = merged.setdefault(covered, {})
            names = [flavor["name"] for flavor in group["flavors"]]
            before = [flavor for flavor in flavors if flavor in names]
            if before != [flavor for flavor in names if flavor in flavors]:
                problems.append(
                    Problem(
                        f"{cluster}.{path}.resourceGroups",
                        f"tries flavors in the order {', '.join(names)}, and another cluster {', '.join(flavors)}",
                        "use one order everywhere, or import the clusters one at a time",
                    )
                )
            for flavor in group["flavors"]:
                for quota in flavor["resources"]:
                    flavors.setdefault(flavor["name"], {}).setdefault(quota["name"], {})[cluster] = quota
    return [
        {
            "coveredResources": list(covered),
            "flavors": [
                {
                    "name": flavor,
                    "resources": [_merge_quota(f"{path}.{flavor}.{name}", by, problems) for name, by in quotas.items()],
                }
                for flavor, quotas in flavors.items()
            ],
        }
        for covered, flavors in merged.items()
    ]


def _merge_quota(path: str, by_cluster: Mapping[str, Data], problems: list[Problem]) -> Data:
    (first, base), *others = by_cluster.items()
    quota = dict(base)
    different = {}
    for cluster, other in others:
        changed = {field: other[field] for field in _AMOUNTS if field in other and other[field] != base.get(field)}
        lost = [field for field in _AMOUNTS if field in base and field not in other]
        if lost:
            problems.append(
                Problem(
                    f"{cluster}.{path}",
                    f"has no {lost[0]}, but {base[lost[0]]} on {first}",
                    "write one there too; a fleet file cannot take a limit away on one cluster",
                )
            )
        if changed:
            different[cluster] = changed
    return {**quota, "perCluster": different} if different else quota
