"""Teams and the LocalQueues of others, from namespaces and what is in them.

A team is what the label of its namespaces says; its members, account and guard are read from the objects that a fleet
makes of them, by the names it gives them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from kueue_admission.api.manifests import (
    POD_SECURITY_LABEL,
    POD_SECURITY_WARNING_LABEL,
    TEAM_LABEL,
    namespace_labels,
)
from kueue_admission.forms.manifest import inside, maps_in
from kueue_admission.forms.names import NAMESPACE_NAME_LABEL
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.fleet_file.in_words import in_words, listed
from kueue_fleet.fleet_file.rules.commands import IMPORT_DIFFERENCE
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.team_policy import team_policy_name
from kueue_fleet.objects.teams import GUARD, MEMBERS_ROLE, default_limits


def adopt_teams(platform: Platform) -> Data:
    """`teams`, `localQueues` and `namespaceLabels`; regions and budgets are in the settings of the controller."""
    of_controller = platform.controller_settings or {}
    regions = of_controller.get("teamRegions") or {}
    budgets = (of_controller.get("budgets") or {}).get("teams") or {}
    queues = _local_queues(platform)
    teams = _teams(platform)
    namespaces_of = {namespace: team for team, namespaces in teams.items() for namespace in namespaces}
    labels = _labels(platform, dict.fromkeys([*namespaces_of, *(namespace for namespace, _ in queues)]), namespaces_of)
    entries = []
    for team, namespaces in teams.items():
        first = namespaces[0]
        shared = _shared_queues(queues, namespaces)
        entry: Data = {
            "name": team,
            "namespaces": [] if namespaces == [team] else namespaces,
            "localQueues": [{"name": name, **queues[first, name]} for name in shared],
            **_pod_security(platform, first),
            **_account(platform, team, namespaces),
            **_members(platform, first),
            **_guard(platform, first),
            **_limit_range(platform, first),
            **_claim_templates(platform, first),
            "priorityClasses": _let_through(platform, team, "priorityClasses"),
            "allowedRegions": list(regions.get(first, ())) or _let_through(platform, team, "regions"),
            "budget": budgets.get(team),
        }
        entries.append({field: value for field, value in entry.items() if value})
        for namespace in namespaces:
            for name in shared:
                del queues[namespace, name]
    alone = [{"namespace": namespace, "name": name, **spec} for (namespace, name), spec in queues.items()]
    return {"teams": entries, "localQueues": alone, "namespaceLabels": labels}


def _labels(platform: Platform, namespaces: Iterable[str], of_teams: Container[str]) -> Data:
    """The labels of each namespace that a fleet would not give it by itself."""
    labels_there: Data = {}
    for namespace in namespaces:
        by_team = (
            {TEAM_LABEL, POD_SECURITY_LABEL, POD_SECURITY_WARNING_LABEL} if namespace in of_teams else {TEAM_LABEL}
        )
        own: dict[str, str] = {}
        for cluster, objects in platform.objects.items():
            for key, value in objects.namespaces.get(namespace, {}).items():
                if key == NAMESPACE_NAME_LABEL or key in by_team or (key, value) in namespace_labels().items():
                    continue
                if own.setdefault(key, value) != value:
                    path = f"{cluster}.Namespace {namespace}.metadata.labels[{key}]"
                    platform.problem(
                        path,
                        f"{value}, but {own[key]} elsewhere",
                        "make them the same on every cluster",
                        IMPORT_DIFFERENCE,
                    )
        if own:
            labels_there[namespace] = own
    unknown = [
        name for name in namespaces if not any(name in manifest.namespaces for manifest in platform.objects.values())
    ]
    queues = (spec for specs in platform.found("ClusterQueue").values() for spec in specs.values())
    selectors = [queue.get("namespaceSelector") or {} for queue in queues]
    keys_asked = {key for selector in selectors for key in selector.get("matchLabels") or {}}
    keys_asked |= {condition["key"] for selector in selectors for condition in selector.get("matchExpressions") or ()}
    if unknown and keys_asked - {NAMESPACE_NAME_LABEL, TEAM_LABEL}:
        platform.notes.append(
            f"the labels of {listed(unknown)} are not known, by which queues choose namespaces: give the Namespaces "
            "too, or write namespaceLabels"
        )
    return labels_there


def _local_queues(platform: Platform) -> dict[tuple[str, str], Data]:
    queues: dict[tuple[str, str], Data] = {}
    for cluster, objects in platform.objects.items():
        for key, spec in objects.local_queues.items():
            if key in queues and queues[key] != spec:
                path = f"{cluster}.LocalQueue {'/'.join(key)}"
                wrong = f"{in_words(spec)}, but {in_words(queues[key])} elsewhere"
                platform.problem(path, wrong, "make them the same on every cluster", IMPORT_DIFFERENCE)
            queues.setdefault(key, spec)
    return queues


def _teams(platform: Platform) -> dict[str, list[str]]:
    teams: dict[str, dict[str, None]] = {}
    for objects in platform.objects.values():
        for namespace, labels in objects.namespaces.items():
            if TEAM_LABEL in labels:
                teams.setdefault(labels[TEAM_LABEL], {})[namespace] = None
    return {team: list(namespaces) for team, namespaces in teams.items()}


def _shared_queues(queues: Mapping[tuple[str, str], Data], namespaces: Sequence[str]) -> list[str]:
    """LocalQueues that every namespace of a team has, and has alike."""
    first = {name: spec for (where, name), spec in queues.items() if where == namespaces[0]}
    return [
        name for name, spec in first.items() if all(queues.get((namespace, name)) == spec for namespace in namespaces)
    ]


def _in_namespace(platform: Platform, kind: str, namespace: str) -> dict[str, Mapping[str, Any]]:
    """The objects of a kind in a namespace, of whichever cluster, by name."""
    items = [item for _, item in platform.others(kind) if item["metadata"].get("namespace") == namespace]
    return {item["metadata"]["name"]: item for item in reversed(items)}


def _pod_security(platform: Platform, namespace: str) -> Data:
    """The Pod Security Standard of a namespace; without the label, Kubernetes enforces none."""
    labels = next(
        objects.namespaces[namespace] for objects in platform.objects.values() if namespace in objects.namespaces
    )
    return {"podSecurity": labels.get(POD_SECURITY_LABEL, "privileged")}


def _account(platform: Platform, team: str, namespaces: Sequence[str]) -> Data:
    """The one account that all namespaces of the team have; it acts as a Google one where it says so."""
    accounts = [
        {
            name: (item["metadata"].get("annotations") or {}).get(WORKLOAD_IDENTITY_ANNOTATION)
            for name, item in _in_namespace(platform, "ServiceAccount", namespace).items()
            if name != "default"
        }
        for namespace in namespaces
    ]
    everywhere = [
        name for name in accounts[0] if all(account.get(name, "") == accounts[0][name] for account in accounts)
    ]
    candidates = [name for name in everywhere if accounts[0][name] is not None] or everywhere
    if len(candidates) != 1:
        return {}
    [name] = candidates
    google = accounts[0][name]
    if google is None:
        return {"serviceAccount": name}
    return {**({} if name == team else {"serviceAccount": name}), "existingGoogleServiceAccount": google}


def _members(platform: Platform, namespace: str) -> Data:
    binding = _in_namespace(platform, "RoleBinding", namespace).get(MEMBERS_ROLE, {})
    return {"members": [_member(subject) for subject in binding.get("subjects") or ()]}


def _member(subject: Mapping[str, Any]) -> str:
    name = str(subject.get("name", ""))
    if subject.get("kind") == "Group":
        return f"group:{name}"
    return f"serviceAccount:{name}" if name.endswith(".gserviceaccount.com") else f"user:{name}"


def _let_through(platform: Platform, team: str, variable: str) -> list[str]:
    """The names that the policy on the team's jobs has in a variable; `drop_defaults` drops what is the default."""
    for _, policy in platform.others("ValidatingAdmissionPolicy"):
        if policy["metadata"]["name"] == team_policy_name(team):
            for each in maps_in(inside(policy, "spec").get("variables")):
                if each.get("name") == variable:
                    return re.findall(r"'([^']+)'", str(each.get("expression")))
    return []


def _guard(platform: Platform, namespace: str) -> Data:
    guard = _in_namespace(platform, "ResourceQuota", namespace).get(GUARD, {})
    hard = (guard.get("spec") or {}).get("hard")
    if not isinstance(hard, Mapping):
        return {}
    defaults = default_limits(submits=True)
    own = {name: amount for name, amount in hard.items() if defaults.get(name) != str(amount)}
    return {"resourceQuota": own} if own else {}


def _limit_range(platform: Platform, namespace: str) -> Data:
    """The LimitRange that a fleet makes; others stay as they are."""
    limit_range = _in_namespace(platform, "LimitRange", namespace).get(GUARD, {})
    items = maps_in(inside(limit_range, "spec").get("limits"))
    if len(items) != 1 or items[0].get("type") != "Container":
        return {}
    return {"limitRange": {name: amounts for name, amounts in items[0].items() if name != "type"}}


def _claim_templates(platform: Platform, namespace: str) -> Data:
    """Templates with one request for a number of devices, as a fleet makes them; others stay as they are."""
    templates = []
    for name, item in _in_namespace(platform, "ResourceClaimTemplate", namespace).items():
        requests = maps_in(inside(item, "spec", "spec", "devices").get("requests")) or [{}]
        devices = inside(requests[0], "exactly")
        if len(requests) == 1 and devices.get("allocationMode", "ExactCount") == "ExactCount" and devices:
            count = devices.get("count", 1)
            templates.append({"name": name, "deviceClassName": devices.get("deviceClassName"), "count": count})
    return {"resourceClaimTemplates": templates} if templates else {}
