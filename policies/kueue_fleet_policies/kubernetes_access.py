"""Rules about access inside a cluster: roles, who has them, and tokens that do not expire.

What `*` allows is left to the rule about wildcards. Source of most:
https://kubernetes.io/docs/concepts/security/rbac-good-practices/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, Final

from pydantic import ValidationError

from kueue_admission.api.manifests import TOKEN_SECRET_TYPE
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.fleet_file.worker_tokens import ROTATE_BY_ANNOTATION, ROTATE_WITHIN
from kueue_fleet.settings.tokens import CONTROLLER_NAME
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, entries, items

_EVERYBODY: Final = {
    "system:anonymous": "everybody who reaches the cluster is that user",
    "system:unauthenticated": "everybody who reaches the cluster is in it",
    "system:authenticated": "every Google account is in it",
    "system:serviceaccounts": "every pod of the cluster is in it",
}
"""Users and groups that a program should not grant anything to, and who they are."""
_ESCALATION: Final = ("bind", "escalate", "impersonate")
"""Verbs that give rights; impersonation also has verbs such as `impersonate:user-info`."""
_ISSUING: Final = ("approve", "sign")
"""Verbs on signers of certificates, which are a way to log in."""
_CERTIFICATES: Final = "certificates.k8s.io"
_TAKES_ALL: Final = re.compile(r"cluster-admin|system:(?!serviceaccount:).+|kubernetes\.io/.+")
"""Names of Kubernetes' own roles, users, groups and signers, with which an account takes over at least a part of it."""
_EVERYWHERE: Final = re.compile(
    r"admin|edit|system:(?!(aggregate-to-view|auth-delegator|basic-user|discovery|kube-scheduler|monitoring"
    r"|node-problem-detector|public-info-viewer|service-account-issuer-discovery|volume-scheduler)$).+"
)
"""Kubernetes' own roles, with which an account takes over a part of the system if they are not for one namespace."""
_LABELS_OF_CLUSTER_ADMIN: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READING: Final = ("get", "list", "watch")
_WRITING: Final = frozenset({"create", "update", "patch", "*"})
_ADMISSION: Final = "admissionregistration.k8s.io"
_SHELLS: Final = "runs commands in every pod of the cluster"
_WEBHOOKS: Final = "reads and changes what anybody writes to the API server"
_NAMESPACES: Final = "namespaces"
_INDIRECT: Final = {
    ("", "pods/exec"): _SHELLS,
    ("", "pods/attach"): _SHELLS,
    ("", "pods/ephemeralcontainers"): "runs containers in every pod of the cluster",
    ("", "serviceaccounts/token"): "makes tokens of every service account of the cluster",
    ("", "nodes/proxy"): "reaches every kubelet, past the API server's log",
    ("", "persistentvolumes"): "mounts every path of a node, as a hostPath volume",
    ("", _NAMESPACES): "sets the level of Pod Security",
    (_ADMISSION, "validatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "mutatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "mutatingadmissionpolicies"): _WEBHOOKS,
}
"""Group and name of what gives more than it says, and what it gives; of objects, to who writes them."""


_ARGO_CD: Final = re.compile(
    r"(.+-)?argocd-((application|applicationset|clusterprofile|notifications)-controller|server)"
)


def _argo_cd(role: Resource) -> bool:
    """Whether a role is Argo CD's, which applies whatever is committed.

    Source: https://argo-cd.readthedocs.io/en/stable/operator-manual/security/#cluster-rbac
    """
    part_of = entries(role.get("metadata.labels")).get("app.kubernetes.io/part-of") == "argocd"
    named = _ARGO_CD.fullmatch(str(role.get("metadata.name")))
    return part_of and named is not None


def is_rotated(secret: Resource, today: date) -> bool | None:
    """Whether a token Secret says by which day soon, or by whom, it is replaced; None where that is not known."""
    by = _rotate_by(secret)
    if by is UNKNOWN or secret.get("type") is UNKNOWN:
        return None
    day = _day(by)
    in_time = day is not None and day - today <= ROTATE_WITHIN
    return secret.get("type") == TOKEN_SECRET_TYPE and (in_time or by == CONTROLLER_NAME)


def _rotate_by(secret: Resource) -> Any:
    annotations = secret.get("metadata.annotations")
    return annotations.get(ROTATE_BY_ANNOTATION) if isinstance(annotations, dict) else annotations


def _day(text: Any) -> date | None:
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _cluster_admin(binding: Resource, _: Settings) -> Iterator[Breach]:
    name = binding.get("roleRef.name")
    if name == "cluster-admin":
        yield Breach("roleRef.name", "is cluster-admin, which may do everything", "bind a role with what is needed")
    elif binding.kind == "ClusterRoleBinding" and isinstance(name, str) and _EVERYWHERE.fullmatch(name):
        yield Breach(
            "roleRef.name",
            f"is {name} in every namespace, the system's too",
            "use a RoleBinding in a namespace, or bind a role with what is needed",
        )


def _rules(role: Resource) -> Iterator[tuple[str, Any]]:
    """Path and content of every known rule of a role."""
    for index, rule in enumerate(items(role.get("rules"))):
        yield f"rules[{index}]", rule


def _unlimited(rule: Any) -> bool:
    """Whether a rule is known to be for objects of any name."""
    names = at(rule, "resourceNames")
    return names is not UNKNOWN and not any(name != "" for name in items(names))


def _of_group(rule: Any, group: str) -> bool:
    """Whether a rule is known to be for objects of an API group; that of Kubernetes' core is the empty one."""
    return any(one in (group, "*") for one in items(at(rule, "apiGroups")))


def _secrets(role: Resource, _: Settings) -> Iterator[Breach]:
    for path, rule in _rules(role):
        verbs = [verb for verb in items(at(rule, "verbs")) if verb in _READING]
        if verbs and "secrets" in items(at(rule, "resources")) and _of_group(rule, "") and _unlimited(rule):
            yield Breach(
                f"{path}.resources",
                f"hold secrets, with {', '.join(verbs)}: every secret of the cluster",
                "use a Role in the namespace, or name the Secrets in resourceNames",
            )


def _wildcards(role: Resource, _: Settings) -> Iterator[Breach]:
    for path, rule in _rules(role):
        for key in ("apiGroups", "resources", "verbs", "nonResourceURLs"):
            if "*" in items(at(rule, key)):
                yield Breach(f"{path}.{key}", 'holds "*", which also covers what is added later', "list what is needed")
    for index, selector in enumerate(items(role.get("aggregationRule.clusterRoleSelectors"))):
        if _selects_cluster_admin(selector):
            yield Breach(
                f"aggregationRule.clusterRoleSelectors[{index}]",
                "selects cluster-admin too, and takes over what it allows",
                "select by a label of your own",
            )


def _selects_cluster_admin(selector: Any) -> bool:
    """Whether a selector is known to match cluster-admin, as the empty one does."""
    try:
        return LabelSelector.model_validate(selector).matches(_LABELS_OF_CLUSTER_ADMIN)
    except ValidationError:
        return False


def _masters(binding: Resource, _: Settings) -> Iterator[Breach]:
    for index, subject in enumerate(items(binding.get("subjects"))):
        if at(subject, "name") == "system:masters":
            yield Breach(
                f"subjects[{index}].name",
                "is system:masters, whose members pass every check, and cannot be removed from it",
                "bind the role to a group of your own",
            )


def _escalation(role: Resource, _: Settings) -> Iterator[Breach]:
    for path, rule in _rules(role):
        issuing = _ISSUING if _of_group(rule, _CERTIFICATES) else ()
        given = [str(verb) for verb in items(at(rule, "verbs"))]
        verbs = [verb for verb in given if verb.partition(":")[0] in (*_ESCALATION, *issuing)]
        names = [str(name) for name in items(at(rule, "resourceNames")) if _TAKES_ALL.fullmatch(str(name))]
        if "escalate" in verbs or (verbs and (names or _unlimited(rule))):
            of = f" of {', '.join(names)}" if names else ""
            yield Breach(
                f"{path}.verbs",
                f"hold {', '.join(verbs)}{of}, with which an account takes rights that it was not given",
                "remove them; for all but escalate, roles, users or signers of your own in resourceNames will do",
            )


def _indirect(role: Resource, _: Settings) -> Iterator[Breach]:
    for path, rule in _rules(role):
        for resource in items(at(rule, "resources")) if _unlimited(rule) else ():
            grants = [
                gives
                for (group, name), gives in _INDIRECT.items()
                # RBAC reads */exec as the exec of every resource.
                if resource in (name, f"*/{name.partition('/')[2]}")
                and _of_group(rule, group)
                and (role.kind == "ClusterRole" or name == _NAMESPACES)
                and any("/" in name or verb in _WRITING for verb in items(at(rule, "verbs")))
            ]
            if grants:
                yield Breach(
                    f"{path}.resources",
                    f"hold {resource}, which {grants[0]}",
                    "remove it; a Role in a namespace will do for pods and their accounts, resourceNames for the rest",
                )


def _public_binding(binding: Resource, _: Settings) -> Iterator[Breach]:
    for index, subject in enumerate(items(binding.get("subjects"))):
        name = at(subject, "name")
        if isinstance(name, str) and name in _EVERYBODY:
            yield Breach(f"subjects[{index}].name", f"is {name}: {_EVERYBODY[name]}", "name who needs it")


def _token_secret(secret: Resource, settings: Settings) -> Iterator[Breach]:
    if secret.get("type") != TOKEN_SECRET_TYPE or is_rotated(secret, settings.today) is not False:
        return
    annotations = secret.get("metadata.annotations")
    account = annotations.get("kubernetes.io/service-account.name") if isinstance(annotations, dict) else None
    if account is UNKNOWN or account in settings.names("accounts"):
        return
    if day := _day(_rotate_by(secret)):
        yield Breach(
            f"metadata.annotations[{ROTATE_BY_ANNOTATION}]",
            f"is {day}, and the token never expires until then",
            f"replace the token within {ROTATE_WITHIN.days} days, and write by which",
        )
    else:
        yield Breach(
            "type",
            f"is {TOKEN_SECRET_TYPE}: a token that never expires",
            "remove it, and mount a projected token or use `kubectl create token`",
        )


RULES: Final = rules_of(
    "Kubernetes access",
    {
        "kube-no-cluster-admin": _cluster_admin,
        "kube-secret-access": _secrets,
        "kube-no-wildcard-roles": _wildcards,
        "kube-no-masters": _masters,
        "kube-no-escalation": _escalation,
        "kube-no-public-bindings": _public_binding,
        "kube-no-indirect-access": _indirect,
        "kube-no-token-secrets": _token_secret,
    },
    exemptions=dict.fromkeys(("kube-secret-access", "kube-no-wildcard-roles", "kube-no-indirect-access"), _argo_cd),
)
"""The rules of this module."""
