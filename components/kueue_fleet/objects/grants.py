"""Roles, and the bindings that grant them: in a whole cluster, or only in the namespaces that have jobs of the fleet.

Which rules an account needs is decided in `access` and `controller`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.worker_tokens import manager_account, token_credentials

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
"""API group of roles and bindings."""
RBAC_API: Final = f"{RBAC_GROUP}/v1"
"""`apiVersion` of roles and bindings."""
READ_VERBS: Final = ("get", "list", "watch")
"""The verbs that change nothing."""


def policy_rule(group: str, resource: str, verbs: Sequence[str], names: Sequence[str] = ()) -> dict[str, Any]:
    """A rule of a role for one resource; with `names`, for the objects of those names alone."""
    rule: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def service_account_subject(name: str, namespace: str) -> dict[str, str]:
    """A ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def google_subject(address: str) -> dict[str, str]:
    """A Google service account as the subject of a binding: GKE knows it by its address.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/role-based-access-control.
    """
    return {"apiGroup": RBAC_GROUP, "kind": "User", "name": address}


def worker_subject(fleet: FleetSpec, name: str) -> dict[str, str]:
    """Whom a worker grants rights to: the Google account that reaches it, or a ServiceAccount of its own."""
    account = manager_account(fleet, name)
    if account is not None and account.connects:
        return google_subject(account.address)
    return service_account_subject(name, fleet.kueue.namespace)


def worker_service_account(fleet: FleetSpec, name: str) -> list[Manifest]:
    """The ServiceAccount on a worker whose token the manager has; none where it needs no tokens."""
    if token_credentials(fleet) is None:
        return []
    return [manifest("v1", "ServiceAccount", name, fleet.kueue.namespace)]


def cluster_grant(name: str, rules: Sequence[dict[str, Any]], subject: dict[str, str]) -> list[Manifest]:
    """The rules in the whole cluster: a ClusterRole and its ClusterRoleBinding, both called `name`."""
    return [
        manifest(RBAC_API, "ClusterRole", name, rules=list(rules)),
        cluster_binding(name, name, subject),
    ]


def cluster_binding(name: str, role: str, subject: dict[str, str]) -> Manifest:
    """The ClusterRoleBinding that grants a ClusterRole in the whole cluster."""
    return manifest(RBAC_API, "ClusterRoleBinding", name, roleRef=_role_ref(role), subjects=[dict(subject)])


def namespace_grants(
    name: str, rules: Sequence[dict[str, Any]], subject: dict[str, str], namespaces: Sequence[str]
) -> list[Manifest]:
    """The rules in these namespaces and nowhere else: one ClusterRole, which a RoleBinding in each of them grants."""
    return [
        manifest(RBAC_API, "ClusterRole", name, rules=list(rules)),
        *(
            manifest(RBAC_API, "RoleBinding", name, place, roleRef=_role_ref(name), subjects=[dict(subject)])
            for place in namespaces
        ),
    ]


def role_grant(name: str, namespace: str, rules: Sequence[dict[str, Any]], *subjects: dict[str, str]) -> list[Manifest]:
    """The rules in one namespace: a Role and its RoleBinding, both called `name`."""
    role_ref = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": name}
    return [
        manifest(RBAC_API, "Role", name, namespace, rules=list(rules)),
        manifest(
            RBAC_API, "RoleBinding", name, namespace, roleRef=role_ref, subjects=[dict(subject) for subject in subjects]
        ),
    ]


def job_namespaces(fleet: FleetSpec) -> tuple[str, ...]:
    """The namespaces that have jobs of the fleet: the teams', and those of other LocalQueues."""
    return tuple(dict.fromkeys((*fleet.team_of, *(queue.namespace for queue in fleet.local_queues))))


def _role_ref(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
