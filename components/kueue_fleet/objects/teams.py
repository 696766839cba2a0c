"""What a team has in its namespaces beside LocalQueues: an account for its jobs, leave for its members, a guard.

In: a fleet, a team, the name of a cluster. Out: ServiceAccount, Role, RoleBinding and ResourceQuota as objects, for
what the team's entry asks for. Members submit where jobs are submitted, to the manager or the standalone cluster; on a
worker, where only the manager submits, they look.
"""

from __future__ import annotations

from typing import Any, Final

from kueue_fleet.fleet_file.model.accounts import team_account_address
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.kueue_api.manifests import Manifest, manifest

MEMBERS_ROLE: Final = "kueue-fleet-members"
"""Name of the Role and RoleBinding of a team's members."""
GUARD: Final = "kueue-fleet"
"""Name of the ResourceQuota."""

_RBAC: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = {"group": "Group", "user": "User", "serviceAccount": "User"}
_LOOK: Final = ["get", "list", "watch"]
_SUBMIT: Final = [*_LOOK, "create", "delete", "patch", "update"]


def render_team_objects(fleet: FleetSpec, team: TeamEntry, cluster: str) -> list[Manifest]:
    """Accounts, access and guards of one team on `cluster`. Raises KeyError for an unknown cluster."""
    objects: list[Manifest] = []
    for namespace in team.namespace_names:
        objects += _service_account(fleet, team, namespace)
        objects += _access(fleet, team, namespace, submits=fleet.cluster(cluster).role != "worker")
        objects += _guard(team, namespace)
    return objects


def _service_account(fleet: FleetSpec, team: TeamEntry, namespace: str) -> list[Manifest]:
    if team.service_account_name is None:
        return []
    made = manifest("v1", "ServiceAccount", team.service_account_name, namespace)
    address = team_account_address(fleet, team)
    if address is not None:
        made["metadata"]["annotations"] = {WORKLOAD_IDENTITY_ANNOTATION: address}
    return [made]


def _access(fleet: FleetSpec, team: TeamEntry, namespace: str, *, submits: bool) -> list[Manifest]:
    if not team.members:
        return []
    subjects = []
    for member in team.members:
        kind, _, name = member.partition(":")
        subjects.append({"apiGroup": _RBAC, "kind": _SUBJECTS[kind], "name": name})
    role_ref = {"apiGroup": _RBAC, "kind": "Role", "name": MEMBERS_ROLE}
    rules = member_rules(job_sets=fleet.job_set.enabled, submits=submits)
    return [
        manifest(f"{_RBAC}/v1", "Role", MEMBERS_ROLE, namespace, rules=rules),
        manifest(f"{_RBAC}/v1", "RoleBinding", MEMBERS_ROLE, namespace, roleRef=role_ref, subjects=subjects),
    ]


def member_rules(*, job_sets: bool, submits: bool) -> list[dict[str, Any]]:
    """What members may do: jobs, where they `submits`; and see how their jobs wait and run. No secrets, no exec."""
    verbs = _SUBMIT if submits else _LOOK
    rules = [_rule(["batch"], ["jobs"], verbs)]
    if job_sets:
        rules.append(_rule(["jobset.x-k8s.io"], ["jobsets"], verbs))
    rules.append(_rule([""], ["configmaps", "services"], verbs))
    rules.append(_rule([""], ["events", "pods", "pods/log", "resourcequotas"], _LOOK))
    rules.append(_rule(["kueue.x-k8s.io"], ["localqueues", "workloads"], _LOOK))
    return rules


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}


def _guard(team: TeamEntry, namespace: str) -> list[Manifest]:
    if not team.resource_quota:
        return []
    hard = {name: str(amount) for name, amount in team.resource_quota.items()}
    return [manifest("v1", "ResourceQuota", GUARD, namespace, spec={"hard": hard})]
