"""What a team has in its namespaces beside LocalQueues: accounts and rights, limits, and a wall around its pods.

ServiceAccount, Role, RoleBinding and LimitRange, for what the team's entry asks for; ResourceQuota and NetworkPolicy,
always; and the policy on its jobs (`team_policy`). Members submit where jobs are submitted, to the manager or the
standalone cluster; on a worker, where only the manager submits, they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kueue_admission.api.job_kinds import KINDS, JobKind, enabled_kinds
from kueue_admission.api.manifests import TEAM_LABEL, manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL, PRODUCT
from kueue_fleet.fleet_file.model.accounts import team_account_address
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.teams import ClaimTemplate, TeamEntry, TeamLimitRange
from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.objects.grants import RBAC_GROUP, READ_VERBS, role_grant
from kueue_fleet.objects.team_policy import render_team_policy

MEMBERS_ROLE: Final = "kueue-fleet-members"
"""Name of the Role and RoleBinding of a team's members."""
_SERVICE_LIMITS: Final = {"services.loadbalancers": "0", "services.nodeports": "0"}
"""Limits of every team unless its resourceQuota says otherwise: no Services that can be reached from outside.

Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-on-object-count.
"""
_OBJECT_LIMITS: Final = dict.fromkeys(("count/jobs.batch", "count/configmaps", "count/services"), "1000")
"""Limits of every team where jobs are submitted, unless its resourceQuota says otherwise: what exists at once, ended
Jobs included. Kueue takes the Jobs of all teams in turn, so that thousands of one team's keep those of others waiting
for their Workloads. A ConfigMap is up to 1 MiB, and operators make ConfigMaps and Services for jobs.

Kinds of CustomResourceDefinitions are not among them: while the quota controller does not know such a kind yet, for up
to five minutes, a quota for it refuses each object.
Source: kubernetes@v1.36.3 pkg/controller/resourcequota/resource_quota_controller.go (Sync).
"""

_SUBJECTS: Final = {"group": "Group", "user": "User", "serviceAccount": "User"}
_SUBMIT: Final = (*READ_VERBS, "create", "delete", "patch", "update")


def render_team_objects(fleet: FleetSpec, team: TeamEntry, cluster: str) -> list[Manifest]:
    """Accounts, rights, limits, network and policy of one team on `cluster`. Raises KeyError for an unknown cluster."""
    objects: list[Manifest] = []
    for namespace in team.namespace_names:
        objects += _service_account(fleet, team, namespace, cluster)
        objects += _access(fleet, team, namespace, cluster)
        objects.append(_limits(fleet, team, namespace, cluster))
        if team.limit_range is not None:
            spec = {"limits": [limit_range_item(team.limit_range)]}
            objects.append(manifest("v1", "LimitRange", PRODUCT, namespace, spec=spec))
        objects.append(_network(fleet, team, namespace))
        objects += (
            _claim_template(resource_claim_template, namespace)
            for resource_claim_template in team.resource_claim_templates
        )
    return objects + render_team_policy(fleet, team, cluster)


def _claim_template(template: ClaimTemplate, namespace: str) -> Manifest:
    """One request, of a number: Kueue refuses claims of all devices of a node."""
    devices = {"deviceClassName": template.device_class_name, "allocationMode": "ExactCount", "count": template.count}
    spec = {"spec": {"devices": {"requests": [{"name": template.name.replace(".", "-"), "exactly": devices}]}}}
    return manifest("resource.k8s.io/v1", "ResourceClaimTemplate", template.name, namespace, spec=spec)


def _service_account(fleet: FleetSpec, team: TeamEntry, namespace: str, cluster: str) -> list[Manifest]:
    """Outside GKE, without Workload Identity, it acts as no Google account."""
    if team.service_account_name is None:
        return []
    address = None if fleet.cluster(cluster).outside_gke else team_account_address(fleet, team)
    acts_as = {WORKLOAD_IDENTITY_ANNOTATION: address} if address is not None else {}
    return [manifest("v1", "ServiceAccount", team.service_account_name, namespace, annotations=acts_as)]


def _access(fleet: FleetSpec, team: TeamEntry, namespace: str, cluster: str) -> list[Manifest]:
    if not team.members:
        return []
    kinds = enabled_kinds(kueue_configuration(fleet, cluster))
    rules = member_rules(kinds, submits=fleet.cluster(cluster).role != "worker")
    return role_grant(MEMBERS_ROLE, namespace, rules, *member_subjects(team.members))


def member_subjects(members: Iterable[str]) -> list[dict[str, str]]:
    """Members of teams as the subjects of a binding."""
    pairs = (member.partition(":")[::2] for member in members)
    return [{"apiGroup": RBAC_GROUP, "kind": _SUBJECTS[kind], "name": name} for kind, name in pairs]


def member_rules(kinds: Iterable[JobKind], *, submits: bool) -> list[dict[str, Any]]:
    """What members may do in a cluster where Kueue manages `kinds`: submit these, or read them; read what they become.

    No secrets, no exec. Jobs that Kueue does not manage would run beside every quota, so they can only be read.
    """
    verbs = _SUBMIT if submits else READ_VERBS
    by_group: dict[str, list[str]] = {}
    for kind in kinds:
        by_group.setdefault(kind.group, []).append(kind.plural)
    rules = [_rule(group, resources, verbs) for group, resources in by_group.items()]
    rules.append(_rule("", ["configmaps", "services"], verbs))
    jobs = KINDS["batch/job"]
    if jobs.plural not in by_group.get(jobs.group, ()):
        rules.append(_rule(jobs.group, [jobs.plural]))
    return [
        *rules,
        _rule("", ["events", "limitranges", "pods", "pods/log", "resourcequotas"]),
        _rule("events.k8s.io", ["events"]),
        _rule("kueue.x-k8s.io", ["localqueues", "workloads"]),
        _rule("autoscaling.x-k8s.io", ["provisioningrequests"]),
    ]


def _rule(group: str, resources: list[str], verbs: Sequence[str] = READ_VERBS) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def default_limits(*, submits: bool) -> dict[str, str]:
    """What the ResourceQuota of a team says that its resourceQuota does not; `submits`: where jobs are submitted."""
    return {**_SERVICE_LIMITS, **(_OBJECT_LIMITS if submits else {})}


def _limits(fleet: FleetSpec, team: TeamEntry, namespace: str, cluster: str) -> Manifest:
    own = {name: str(amount) for name, amount in team.resource_quota.items()}
    defaults = default_limits(submits=fleet.cluster(cluster).role != "worker")
    return manifest("v1", "ResourceQuota", PRODUCT, namespace, spec={"hard": {**defaults, **own}})


def limit_range_item(team_limit_range: TeamLimitRange) -> dict[str, Any]:
    """The item of a LimitRange; what is not given stays out."""
    return {"type": "Container", **{name: amounts for name, amounts in team_limit_range.wire().items() if amounts}}


def _network(fleet: FleetSpec, team: TeamEntry, namespace: str) -> Manifest:
    """Pods are reached from the team's own namespaces, and from those that run no jobs, such as operators'."""
    jobs = sorted({"default", *(queue.namespace for queue in fleet.local_queues)} - fleet.team_of.keys())
    own = {"matchLabels": {TEAM_LABEL: team.name}}
    system = {
        "matchExpressions": [
            {"key": TEAM_LABEL, "operator": "DoesNotExist"},
            {"key": NAMESPACE_NAME_LABEL, "operator": "NotIn", "values": jobs},
        ]
    }
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"namespaceSelector": own}, {"namespaceSelector": system}]}],
    }
    return manifest("networking.k8s.io/v1", "NetworkPolicy", PRODUCT, namespace, spec=spec)
