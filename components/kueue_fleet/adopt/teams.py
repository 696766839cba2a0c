"""Teams and the LocalQueues of others, from namespaces and what is in them.

In: the objects of all clusters. Out: entries of `teams` and `localQueues`. A team is what the label of its namespaces
says; its members, account and guard are read from the objects that a fleet makes of them, by the names it gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kueue_fleet.adopt.platform import Data, Platform
from kueue_fleet.fleet_file.in_words import in_words
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.kueue_api.manifests import POD_SECURITY_LABEL, TEAM_LABEL
from kueue_fleet.objects.teams import GUARD, MEMBERS_ROLE


def adopt_teams(platform: Platform, regions: Mapping[str, Sequence[str]]) -> tuple[list[Data], list[Data]]:
    """Entries of `teams` and `localQueues`; `regions` says in which the jobs of a namespace may run."""
    queues = _local_queues(platform)
    entries = []
    for team, namespaces in _teams(platform).items():
        entry: Data = {"name": team}
        if namespaces != [team]:
            entry["namespaces"] = namespaces
        shared = _shared_queues(queues, namespaces)
        if shared:
            entry["localQueues"] = [{"name": name, **queues[namespaces[0], name]} for name in shared]
        entry |= _pod_security(platform, namespaces[0])
        entry |= _account(platform, team, namespaces)
        entry |= _members(platform, namespaces[0])
        entry |= _guard(platform, namespaces[0])
        if namespaces[0] in regions:
            entry["allowedRegions"] = list(regions[namespaces[0]])
        entries.append(entry)
        for namespace in namespaces:
            for name in shared:
                del queues[namespace, name]
    alone = [{"namespace": namespace, "name": name, **spec} for (namespace, name), spec in queues.items()]
    return entries, alone


def _local_queues(platform: Platform) -> dict[tuple[str, str], Data]:
    queues: dict[tuple[str, str], Data] = {}
    for cluster, found in platform.objects.items():
        for key, spec in found.local_queues.items():
            if key in queues and queues[key] != spec:
                path = f"{cluster}.LocalQueue {'/'.join(key)}"
                wrong = f"{in_words(spec)}, but {in_words(queues[key])} elsewhere"
                platform.problem(path, wrong, "make them the same on every cluster")
            queues.setdefault(key, spec)
    return queues


def _teams(platform: Platform) -> dict[str, list[str]]:
    teams: dict[str, dict[str, None]] = {}
    for found in platform.objects.values():
        for namespace, labels in found.namespaces.items():
            if TEAM_LABEL in labels:
                teams.setdefault(labels[TEAM_LABEL], {})[namespace] = None
    return {team: list(namespaces) for team, namespaces in teams.items()}


def _shared_queues(queues: Mapping[tuple[str, str], Data], namespaces: Sequence[str]) -> list[str]:
    """LocalQueues that every namespace of a team has, and has alike."""
    first = {name: spec for (where, name), spec in queues.items() if where == namespaces[0]}
    return [
        name for name, spec in first.items() if all(queues.get((namespace, name)) == spec for namespace in namespaces)
    ]


def _in_namespace(platform: Platform, kind: str, namespace: str) -> Iterator[Mapping[str, Any]]:
    for _, item in platform.others(kind):
        if item["metadata"].get("namespace") == namespace:
            yield item


def _pod_security(platform: Platform, namespace: str) -> Data:
    """The Pod Security Standard of a namespace; without the label, Kubernetes enforces none."""
    labels = next(found.namespaces[namespace] for found in platform.objects.values() if namespace in found.namespaces)
    return {"podSecurity": labels.get(POD_SECURITY_LABEL, "privileged")}


def _account(platform: Platform, team: str, namespaces: Sequence[str]) -> Data:
    """The one account that all namespaces of the team have; it acts as a Google one where it says so."""
    accounts: list[dict[str, str | None]] = []
    for namespace in namespaces:
        found = {}
        for item in _in_namespace(platform, "ServiceAccount", namespace):
            name = item["metadata"]["name"]
            if name != "default":
                found[name] = (item["metadata"].get("annotations") or {}).get(WORKLOAD_IDENTITY_ANNOTATION)
        accounts.append(found)
    first = accounts[0]
    everywhere = [name for name, google in first.items() if all(each.get(name, "") == google for each in accounts)]
    acting = [name for name in everywhere if accounts[0][name] is not None]
    chosen = acting[0] if len(acting) == 1 else everywhere[0] if len(everywhere) == 1 and not acting else None
    if chosen is None:
        return {}
    google = accounts[0][chosen]
    entry: Data = {} if google is not None and chosen == team else {"serviceAccount": chosen}
    return {**entry, "existingGoogleServiceAccount": google} if google is not None else entry


def _members(platform: Platform, namespace: str) -> Data:
    for item in _in_namespace(platform, "RoleBinding", namespace):
        if item["metadata"]["name"] == MEMBERS_ROLE:
            return {"members": [_member(subject) for subject in item.get("subjects") or ()]}
    return {}


def _member(subject: Mapping[str, Any]) -> str:
    name = str(subject.get("name", ""))
    if subject.get("kind") == "Group":
        return f"group:{name}"
    return f"serviceAccount:{name}" if name.endswith(".gserviceaccount.com") else f"user:{name}"


def _guard(platform: Platform, namespace: str) -> Data:
    for item in _in_namespace(platform, "ResourceQuota", namespace):
        if item["metadata"]["name"] == GUARD:
            return {"resourceQuota": dict((item.get("spec") or {}).get("hard") or {})}
    return {}
