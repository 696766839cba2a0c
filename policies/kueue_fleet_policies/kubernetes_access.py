"""Rules about access inside a cluster: roles, who has them, and tokens that do not expire.

What `*` allows is left to the rule about wildcards. Source of most:
https://kubernetes.io/docs/concepts/security/rbac-good-practices/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pulumi_policy import Severity

from kueue_fleet.fleet_file.worker_tokens import ROTATE_BY_ANNOTATION
from kueue_fleet.kueue_api import Problem
from kueue_fleet.kueue_api.manifests import TOKEN_SECRET_TYPE
from kueue_fleet.objects.monitoring import READER_ROLE
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import ResourceRule, Settings, list_option
from kueue_fleet_policies.values import UNKNOWN, at, items

_RBAC: Final = "kubernetes:rbac.authorization.k8s.io/v1:"
_BINDINGS: Final = (f"{_RBAC}ClusterRoleBinding", f"{_RBAC}RoleBinding")
_ROLES: Final = (f"{_RBAC}ClusterRole", f"{_RBAC}Role")
_CLUSTER_ROLE: Final = (f"{_RBAC}ClusterRole",)
_EVERYBODY: Final = ("system:anonymous", "system:unauthenticated", "system:authenticated")
_ESCALATION: Final = ("bind", "escalate", "impersonate")
_READING: Final = ("get", "list", "watch")
_INDIRECT: Final = {
    "pods/exec": "runs commands in every pod of the cluster",
    "pods/attach": "runs commands in every pod of the cluster",
    "pods/ephemeralcontainers": "runs containers in every pod of the cluster",
    "serviceaccounts/token": "makes tokens of every service account of the cluster",
    "nodes/proxy": "reaches every kubelet, past the API server's log",
}
"""Subresources that give more than their name says, and what they give."""


def _argo_cd(role: Resource) -> str | None:
    """Why Argo CD's roles are left alone.

    Source: https://argo-cd.readthedocs.io/en/stable/operator-manual/security/#cluster-rbac
    """
    name = role.get("metadata.name")
    labels = role.get("metadata.labels")
    named = isinstance(name, str) and (name == "argocd" or name.startswith("argocd-"))
    part_of = isinstance(labels, dict) and labels.get("app.kubernetes.io/part-of") == "argocd"
    return "Argo CD applies whatever is committed" if named or part_of else None


def is_rotated(secret: Resource) -> bool | None:
    """Whether a Secret says by which day its token has to be replaced; None where that is not known."""
    annotations = secret.get("metadata.annotations")
    if annotations is UNKNOWN:
        return None
    return isinstance(annotations, dict) and ROTATE_BY_ANNOTATION in annotations


def _cluster_admin(binding: Resource, _: Settings) -> Iterator[Problem]:
    if binding.get("roleRef.name") == "cluster-admin":
        yield Problem("roleRef.name", "is cluster-admin, which may do everything", "bind a role with what is needed")


def _rules(role: Resource) -> Iterator[tuple[str, Any]]:
    """Path and content of every known rule of a role."""
    for index, rule in enumerate(items(role.get("rules"))):
        yield f"rules[{index}]", rule


def _unlimited(rule: Any) -> bool:
    """Whether a rule is known to be for objects of any name."""
    names = at(rule, "resourceNames")
    return names is not UNKNOWN and not items(names)


def _secrets(role: Resource, _: Settings) -> Iterator[Problem]:
    for path, rule in _rules(role):
        verbs = [verb for verb in items(at(rule, "verbs")) if verb in _READING]
        if "secrets" in items(at(rule, "resources")) and verbs and _unlimited(rule):
            yield Problem(
                f"{path}.resources",
                f"hold secrets, with {', '.join(verbs)}: every secret of the cluster",
                "use a Role in the namespace, or name the Secrets in resourceNames",
            )


def _wildcards(role: Resource, _: Settings) -> Iterator[Problem]:
    for path, rule in _rules(role):
        for key in ("apiGroups", "resources", "verbs"):
            if "*" in items(at(rule, key)):
                yield Problem(
                    f"{path}.{key}", 'holds "*", which also covers what is added later', "list what is needed"
                )


def _masters(binding: Resource, _: Settings) -> Iterator[Problem]:
    for index, subject in enumerate(items(binding.get("subjects"))):
        if at(subject, "name") == "system:masters":
            yield Problem(
                f"subjects[{index}].name",
                "is system:masters, whose members pass every check, and cannot be removed from it",
                "bind the role to a group of your own",
            )


def _escalation(role: Resource, _: Settings) -> Iterator[Problem]:
    for path, rule in _rules(role):
        verbs = [verb for verb in items(at(rule, "verbs")) if verb in _ESCALATION]
        if "escalate" in verbs or (verbs and _unlimited(rule)):
            yield Problem(
                f"{path}.verbs",
                f"hold {', '.join(verbs)}, with which an account takes rights that it was not given",
                "remove them; name the roles or users of bind and impersonate in resourceNames",
            )


def _indirect(role: Resource, _: Settings) -> Iterator[Problem]:
    for path, rule in _rules(role):
        for resource in items(at(rule, "resources")):
            what = _INDIRECT.get(resource) if isinstance(resource, str) else None
            if what is not None and items(at(rule, "verbs")) and _unlimited(rule):
                yield Problem(
                    f"{path}.resources", f"hold {resource}, which {what}", "use a Role in the namespace, or remove it"
                )


def _public_binding(binding: Resource, _: Settings) -> Iterator[Problem]:
    for index, subject in enumerate(items(binding.get("subjects"))):
        name = at(subject, "name")
        if name in _EVERYBODY:
            yield Problem(f"subjects[{index}].name", f"is {name}: every Google account is in it", "name who needs it")


def _token_secret(secret: Resource, settings: Settings) -> Iterator[Problem]:
    if secret.get("type") != TOKEN_SECRET_TYPE or is_rotated(secret) is None:
        return
    annotations = secret.get("metadata.annotations")
    account = annotations.get("kubernetes.io/service-account.name") if isinstance(annotations, dict) else None
    if account is not UNKNOWN and account not in settings.names("accounts"):
        yield Problem(
            "type",
            f"is {TOKEN_SECRET_TYPE}: a token that never expires",
            "remove it, and mount a projected token or use `kubectl create token`",
        )


def _rotated(secret: Resource) -> str | None:
    return "its token is replaced by a day that it names" if is_rotated(secret) else None


_GOOD_PRACTICES: Final = "https://kubernetes.io/docs/concepts/security/rbac-good-practices/"
_GROUP: Final = "Kubernetes access"

RULES: Final = (
    ResourceRule(
        name="kube-no-cluster-admin",
        asks="cluster-admin must not be bound.",
        cis="4.1.1",
        severity=Severity.HIGH,
        source=_GOOD_PRACTICES,
        group=_GROUP,
        types=_BINDINGS,
        check=_cluster_admin,
    ),
    ResourceRule(
        name="kube-secret-access",
        asks="ClusterRoles must not read all Secrets.",
        cis="4.1.2",
        severity=Severity.HIGH,
        source=f"{_GOOD_PRACTICES}#listing-secrets",
        group=_GROUP,
        types=_CLUSTER_ROLE,
        check=_secrets,
    ),
    ResourceRule(
        name="kube-no-wildcard-roles",
        asks="Roles must list what they allow.",
        cis="4.1.3",
        severity=Severity.HIGH,
        source=_GOOD_PRACTICES,
        group=_GROUP,
        types=_ROLES,
        check=_wildcards,
        exemption=_argo_cd,
        exempts="roles of Argo CD, by the name `argocd-...` or the label app.kubernetes.io/part-of: argocd",
    ),
    ResourceRule(
        name="kube-no-masters",
        asks="Roles must not be bound to system:masters.",
        cis="4.1.6",
        severity=Severity.CRITICAL,
        source=_GOOD_PRACTICES,
        group=_GROUP,
        types=_BINDINGS,
        check=_masters,
    ),
    ResourceRule(
        name="kube-no-escalation",
        asks="Roles must not allow bind, escalate or impersonate without names.",
        cis="4.1.7",
        severity=Severity.HIGH,
        source=f"{_GOOD_PRACTICES}#escalate-verb",
        group=_GROUP,
        types=_ROLES,
        check=_escalation,
    ),
    ResourceRule(
        name="kube-no-public-bindings",
        asks="Roles must not be bound to all who can reach the cluster.",
        cis="4.1.8, 4.1.9, 4.1.10",
        severity=Severity.CRITICAL,
        source="https://cloud.google.com/kubernetes-engine/docs/best-practices/rbac#default-roles-groups",
        group=_GROUP,
        types=_BINDINGS,
        check=_public_binding,
    ),
    ResourceRule(
        name="kube-no-indirect-access",
        asks="ClusterRoles must not give shells in pods, tokens of service accounts or kubelets.",
        severity=Severity.HIGH,
        source=f"{_GOOD_PRACTICES}#kubernetes-rbac-privilege-escalation-risks",
        group=_GROUP,
        types=_CLUSTER_ROLE,
        check=_indirect,
    ),
    ResourceRule(
        name="kube-no-token-secrets",
        asks="Service account tokens must expire.",
        severity=Severity.HIGH,
        source="https://kubernetes.io/docs/concepts/security/service-accounts/#get-a-token",
        group=_GROUP,
        types=("kubernetes:core/v1:Secret",),
        check=_token_secret,
        exemption=_rotated,
        exempts=f"Secrets with {ROTATE_BY_ANNOTATION}, by which MultiKueue and its controller reach workers",
        options={
            "accounts": list_option(
                "Service accounts whose token is read by what cannot ask for one, such as a scraper.", [READER_ROLE]
            )
        },
    ),
)
"""The rules of this module."""
