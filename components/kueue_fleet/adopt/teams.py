"""Teams and the LocalQueues of others, from namespaces and what is in them.

A team is what the label of its namespaces says; its members, account and limits are read from the objects that a fleet
makes of them, by the names it gives them, or else from those of others that say what an entry of a team can say.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kueue_admission.api.manifests import (
    POD_SECURITY_LABEL,
    POD_SECURITY_WARNING_LABEL,
    TEAM_LABEL,
    namespace_labels,
)
from kueue_admission.kernel.manifest import inside, maps_in
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL, PRODUCT
from kueue_admission.kernel.problem import errors_of
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.fleet_file.form import read_form
from kueue_fleet.fleet_file.in_words import in_words, listed
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.rules.commands import IMPORT_DIFFERENCE
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.team_policy import team_policy_name
from kueue_fleet.objects.teams import MEMBERS_ROLE, default_limits


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
        shared_queues = _shared_queues(queues, namespaces)
        entry: Data = {
            "name": team,
            "namespaces": [] if namespaces == [team] else namespaces,
            "localQueues": [{"name": name, **queues[first, name]} for name in shared_queues],
            **_pod_security(platform, first),
            **_account(platform, team, namespaces),
            **_members(platform, namespaces),
            **_guard(platform, namespaces),
            **_limit_range(platform, namespaces),
            **_claim_templates(platform, first),
            "allowedPriorityClasses": _let_through(platform, team, "priorityClasses"),
            "allowedRegions": list(regions.get(first, ())) or _let_through(platform, team, "regions"),
            "budget": budgets.get(team),
        }
        entries.append({field: value for field, value in entry.items() if value})
        for namespace in namespaces:
            for name in shared_queues:
                del queues[namespace, name]
    without_team = dict.fromkeys(namespace for namespace, _ in queues if namespace not in namespaces_of)
    platform.notes += _without_team(platform, without_team)
    alone = [{"namespace": namespace, "name": name, **spec} for (namespace, name), spec in queues.items()]
    return {"teams": entries, "localQueues": alone, "namespaceLabels": labels}


def _labels(platform: Platform, namespaces: Iterable[str], of_teams: Container[str]) -> Data:
    """The labels of each namespace that a fleet would not give it by itself."""
    labels: Data = {}
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
            labels[namespace] = own
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
    return labels


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


def _without_team(platform: Platform, namespaces: Iterable[str]) -> Iterator[str]:
    """What to do for objects of teams in namespaces whose labels name no team."""
    unnamed = [item for item in namespaces if could_be_a_teams(platform, item)]
    if unnamed:
        yield (
            f"ResourceQuotas, LimitRanges, RoleBindings and ServiceAccounts of {listed(unnamed)} are in the file once "
            f"the label {TEAM_LABEL} of the namespace names its team, which then gets the other objects of a team too"
        )


def could_be_a_teams(platform: Platform, namespace: str) -> bool:
    """Whether something in it has a field in the entry of a team."""
    bindings, accounts = (_in_namespace(platform, kind, namespace) for kind in ("RoleBinding", "ServiceAccount"))
    return (
        any(map(_hard, _in_namespace(platform, "ResourceQuota", namespace).values()))
        or bool(_in_namespace(platform, "LimitRange", namespace))
        or any(map(_lets_submit, bindings.values()))
        or any(
            WORKLOAD_IDENTITY_ANNOTATION in (item["metadata"].get("annotations") or {}) for item in accounts.values()
        )
    )


def _members(platform: Platform, namespaces: Sequence[str]) -> Data:
    """Who a fleet's binding names; without one, who may make jobs in each of the namespaces."""
    bound = [_in_namespace(platform, "RoleBinding", entry) for entry in namespaces]
    if MEMBERS_ROLE in bound[0]:
        return {"members": [_member(subject) for subject in bound[0][MEMBERS_ROLE].get("subjects") or ()]}
    people = [
        [_member(subject) for each in bindings.values() if _lets_submit(each) for subject in each.get("subjects") or ()]
        for bindings in bound
    ]
    everywhere = [each for each in dict.fromkeys(people[0]) if all(each in others for others in people)]
    return {"members": [item for item in everywhere if _fits("members", [item])]}


def _lets_submit(binding: Mapping[str, Any]) -> bool:
    """Whether it gives all that members of a team have, and more."""
    role = binding.get("roleRef") or {}
    return role.get("kind") == "ClusterRole" and role.get("name") in ("edit", "admin", "cluster-admin")


def _fits(field: str, value: Any) -> bool:
    """Whether an entry of a team can have it."""
    entry, problems = read_form(TeamEntry, {"name": "team", field: value})
    return entry is not None and not errors_of([*problems, *problems_in(entry)])


def _member(subject: Mapping[str, Any]) -> str:
    name = str(subject.get("name", ""))
    if subject.get("kind") == "ServiceAccount":
        return name
    if subject.get("kind") == "Group":
        return f"group:{name}"
    return f"serviceAccount:{name}" if name.endswith(".gserviceaccount.com") else f"user:{name}"


def _let_through(platform: Platform, team: str, variable: str) -> list[str]:
    """The names that the policy on the team's jobs has in a variable; `drop_defaults` drops what is the default."""
    for _, policy in platform.others("ValidatingAdmissionPolicy"):
        if policy["metadata"]["name"] == team_policy_name(team):
            for item in maps_in(inside(policy, "spec").get("variables")):
                if item.get("name") == variable:
                    return re.findall(r"'([^']+)'", str(item.get("expression")))
    return []


def _guard(platform: Platform, namespaces: Sequence[str]) -> Data:
    """The limits of a fleet's ResourceQuota; without one, those that the namespaces have alike."""
    there = [_in_namespace(platform, "ResourceQuota", item) for item in namespaces]
    own = dict(inside(there[0][PRODUCT], "spec", "hard")) if PRODUCT in there[0] else _smallest(there)
    defaults = default_limits(submits=True)
    own = {name: amount for name, amount in own.items() if defaults.get(name) != str(amount)}
    return {"resourceQuota": own} if own else {}


def _smallest(there: Sequence[Mapping[str, Mapping[str, Any]]]) -> Data:
    """Of the ResourceQuotas that all namespaces have alike, the smallest limits, which are those that count."""
    limits = [{name: _hard(quota) for name, quota in quotas.items()} for quotas in there]
    smallest: Data = {}
    for quota, hard in limits[0].items():
        for name, amount in hard.items() if all(others.get(quota) == hard for others in limits) else ():
            if name not in smallest or Quantity(str(amount)) < Quantity(str(smallest[name])):
                smallest[name] = amount
    return smallest


def _hard(quota: Mapping[str, Any]) -> Data:
    """Limits of a ResourceQuota; empty where it has others than a team can have, such as of a scope."""
    spec = inside(quota, "spec")
    hard = spec.get("hard")
    fits = isinstance(hard, Mapping) and not spec.keys() - {"hard"} and _fits("resourceQuota", hard)
    return dict(hard) if isinstance(hard, Mapping) and fits else {}


def _limit_range(platform: Platform, namespaces: Sequence[str]) -> Data:
    """A fleet's LimitRange; without one, the only one that the namespaces have alike, if a team can have it."""
    there = [_in_namespace(platform, "LimitRange", each) for each in namespaces]
    found = [ranges.get(PRODUCT) or (next(iter(ranges.values())) if len(ranges) == 1 else {}) for ranges in there]
    limits = [inside(entry, "spec").get("limits") for entry in found]
    items = maps_in(limits[0])
    if len(items) != 1 or items[0].get("type") != "Container" or any(item != limits[0] for item in limits):
        return {}
    amounts_by_field = {name: amounts for name, amounts in items[0].items() if name != "type"}
    return {"limitRange": amounts_by_field} if PRODUCT in there[0] or _fits("limitRange", amounts_by_field) else {}


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
