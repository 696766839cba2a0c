"""Who may do what in Google Cloud: the nodes of a cluster, the jobs of a team, the members of teams.

Nodes get what a GKE node needs and no more, instead of the project's default account, which is an Editor. Jobs do not
use that account but their team's, by Workload Identity: Kubernetes service accounts of the team's namespaces may act as
it, and there is no key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kueue_fleet.fleet_file.model.accounts import (
    account_id,
    connect_role_id,
    grafana_account_id,
    members_role_id,
    team_account_id,
)
from kueue_fleet.fleet_file.worker_tokens import ManagerAccount
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ROLE
from kueue_fleet.google.resource import CloudResource, joined, workload_pool
from kueue_fleet.google.resource_types import (
    ACCOUNT_MEMBER,
    BUCKET_MEMBER,
    CUSTOM_ROLE,
    PROJECT_MEMBER,
    SERVICE_ACCOUNT,
)
from kueue_fleet.google.storage import READS_OBJECTS
from kueue_fleet.objects.monitoring import GRAFANA_NAME

READS_IMAGES = "roles/artifactregistry.reader"
"""To pull images of a project's registries."""
NODE_ROLES: tuple[str, ...] = ("roles/container.defaultNodeServiceAccount", READS_IMAGES)
"""Logs, metrics and autoscaling; images of the project's registries. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/service-accounts#default-gke-service-agent."""
CREATES_OBJECTS = "roles/storage.objectCreator"
"""To create objects in a bucket, not to read, replace or delete them. Source:
https://cloud.google.com/storage/docs/access-control/iam-roles."""
READS_METRICS = "roles/monitoring.viewer"
"""To query what managed Prometheus collects. Source: https://cloud.google.com/stackdriver/docs/managed-prometheus/query."""
CONNECT_PERMISSIONS: tuple[str, ...] = (
    "container.clusters.connect",
    "container.clusters.get",
    "container.clusters.list",
)
"""To find clusters, get a kubeconfig for them and reach their DNS endpoint. None of them reads or writes an object of
Kubernetes: roles/container.viewer and roles/container.developer do, in every namespace, beside RBAC. Source:
https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based-endpoint."""


def node_account_id(cluster_name: str) -> str:
    """The service account id of a cluster's nodes: `gke-<cluster>`, with a digest where it would not fit."""
    return account_id(f"gke-{cluster_name}", cluster_name)


def node_identity(
    name: str, *, project: Any, cluster_name: str, roles: Sequence[str], images_of: Any = None
) -> list[CloudResource]:
    """The service account of a cluster's nodes, then its roles; with `images_of` it reads that project's images too."""
    account = _account(name, project, node_account_id(cluster_name), f"GKE nodes of {cluster_name}")
    images = [] if images_of is None else [_grant(f"{name}/images", images_of, READS_IMAGES, _member(account))]
    return [account, *_roles(name, project, account, roles), *images]


def team_identity(
    name: str,
    *,
    project: Any,
    fleet: str,
    team: str,
    roles: Sequence[str],
    kubernetes_accounts: Sequence[tuple[str, str]],
    after: Sequence[str],
    elsewhere: Sequence[str] = (),
) -> list[CloudResource]:
    """A team's account, then its roles, then the pods that act as it.

    `kubernetes_accounts` are pairs of namespace and name, and mean the accounts of that name in every cluster of the
    project: the clusters of a project share one Workload Identity pool. The pool is created with the project's first
    cluster; `after` has the key of one. `elsewhere` are other projects whose pods act as it too, each with one in
    `after`. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#identity_sameness.
    """
    account = _account(name, project, team_account_id(fleet, team), f"Jobs of {team} ({fleet})")
    pods = [
        _pods_act_as(f"{name}{at}/{namespace}/{service_account}", pool, account, (namespace, service_account), after)
        for at, pool in _places(project, elsewhere)
        for namespace, service_account in kubernetes_accounts
    ]
    return [account, *_roles(name, project, account, roles), *pods]


def grafana_identity(
    name: str, *, project: Any, fleet: str, namespace: str, after: Sequence[str]
) -> list[CloudResource]:
    """The account by which Grafana's pods in `namespace` read metrics; `after` as above."""
    account = _account(name, project, grafana_account_id(fleet), f"Grafana ({fleet})")
    pods = _pods_act_as(f"{name}/pods", project, account, (namespace, GRAFANA_NAME), after)
    return [account, *_roles(name, project, account, [READS_METRICS]), pods]


def manager_identity(
    name: str,
    *,
    project: Any,
    fleet: str,
    accounts: Sequence[ManagerAccount],
    after: Sequence[str],
    elsewhere: Sequence[str] = (),
) -> list[CloudResource]:
    """The accounts of the manager's pods: those that reach the workers may connect, and no more; that of a history in
    a bucket may create and read objects below its path. `after` as above.

    `elsewhere` are other projects with workers.
    """
    roles = {
        at: _connect_role(
            f"{name}{at}",
            place,
            connect_role_id(fleet),
            f"Manager of {fleet}",
            "Connect to the workers. What it may do there is in their ClusterRoles and RoleBindings.",
            ("container.clusters.connect",),
        )
        for at, place in (_places(project, elsewhere) if any(account.connects for account in accounts) else ())
    }
    cloud_resources = [*roles.values()]
    for manager_account in accounts:
        account = _account(
            f"{name}/{manager_account.name}", project, manager_account.account_id, f"{manager_account.name} ({fleet})"
        )
        pods = (manager_account.namespace, manager_account.service_account)
        cloud_resources += [
            account,
            *(
                _grant(
                    f"{name}/{manager_account.name}/connect{at}",
                    role.properties["project"],
                    role.ref("name"),
                    _member(account),
                )
                for at, role in (roles.items() if manager_account.connects else ())
            ),
            *_store_grants(f"{name}/{manager_account.name}", manager_account.store, _member(account)),
            _pods_act_as(f"{name}/{manager_account.name}/pods", project, account, pods, after),
        ]
    return cloud_resources


def _store_grants(name: str, store: str, member: Any) -> list[CloudResource]:
    """Create and read objects below the path of a bucket; listing has another condition, as it names no object.

    Source: https://cloud.google.com/iam/docs/conditions-attribute-reference#extract-storage-object-prefix.
    """
    if not store:
        return []
    bucket, _, path = store.removeprefix("gs://").partition("/")
    folder = f"{path.rstrip('/')}/"
    here = f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{folder}")'
    prefix_condition = f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{folder}")'
    conditions = {CREATES_OBJECTS: here, READS_OBJECTS: f"{here} || {prefix_condition}"}
    return [
        CloudResource(
            BUCKET_MEMBER,
            f"{name}/{role.rpartition('.')[2]}",
            {
                "bucket": bucket,
                "role": role,
                "member": member,
                "condition": {"title": "history", "expression": expression},
            },
        )
        for role, expression in conditions.items()
    ]


def member_access(
    name: str, *, project: Any, fleet: str, members: Sequence[str], elsewhere: Sequence[str] = ()
) -> list[CloudResource]:
    """A role by which `members`, such as `group:ADDRESS`, connect to the clusters, and who has it.

    `elsewhere` are other projects with clusters: a role of a project can be granted in that one alone. Source:
    https://cloud.google.com/iam/docs/roles-overview#custom.
    """
    cloud_resources = []
    for at, place in _places(project, elsewhere):
        role = _connect_role(
            f"{name}{at}",
            place,
            members_role_id(fleet),
            f"Members of teams ({fleet})",
            "Connect to the clusters. What they may do there is in the Roles of their namespaces.",
            CONNECT_PERMISSIONS,
        )
        cloud_resources += [
            role,
            *(_grant(f"{name}{at}/{member}", place, role.ref("name"), member) for member in members),
        ]
    return cloud_resources


def _places(project: Any, elsewhere: Sequence[str]) -> list[tuple[str, Any]]:
    """The fleet's project and the others, each with what is added to names of resources there."""
    return [("", project), *((f"/{other}", other) for other in elsewhere)]


def _account(name: str, project: Any, id_: str, title: str) -> CloudResource:
    properties = {"project": project, "accountId": id_, "displayName": title}
    return CloudResource(SERVICE_ACCOUNT, name, properties)


def _member(account: CloudResource) -> Any:
    """An account as a member of a policy."""
    return joined("serviceAccount:", account.ref("email"))


def _grant(name: str, project: Any, role: Any, member: Any) -> CloudResource:
    return CloudResource(PROJECT_MEMBER, name, {"project": project, "role": role, "member": member})


def _roles(name: str, project: Any, account: CloudResource, roles: Sequence[str]) -> list[CloudResource]:
    member = _member(account)
    return [_grant(f"{name}/{role.removeprefix('roles/')}", project, role, member) for role in roles]


def _pods_act_as(
    name: str, project: Any, account: CloudResource, pods: tuple[str, str], after: Sequence[str]
) -> CloudResource:
    """Pods of the Kubernetes service account `pods`, a namespace and a name, may act as `account`."""
    properties = {
        "serviceAccountId": account.ref("name"),
        "role": WORKLOAD_IDENTITY_ROLE,
        "member": joined("serviceAccount:", workload_pool(project), f"[{'/'.join(pods)}]"),
    }
    return CloudResource(ACCOUNT_MEMBER, name, properties, tuple(after))


def _connect_role(
    name: str, project: Any, role_id: str, title: str, description: str, permissions: Sequence[str]
) -> CloudResource:
    properties = {
        "project": project,
        "roleId": role_id,
        "title": title,
        "description": description,
        "permissions": list(permissions),
    }
    return CloudResource(CUSTOM_ROLE, name, properties)
