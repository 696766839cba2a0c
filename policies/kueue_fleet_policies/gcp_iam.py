"""Rules about identities in Google Cloud: who gets which role, and how workloads become a service account.

Source of most: https://cloud.google.com/iam/docs/using-iam-securely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pulumi_policy import Severity

from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet_policies.gke_nodes import is_default_account
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, ResourceRule, Settings
from kueue_fleet_policies.values import items

PROJECT_MEMBER: Final = "gcp:projects/iAMMember:IAMMember"
"""Pulumi type: one member of one role of a project."""
PROJECT_BINDING: Final = "gcp:projects/iAMBinding:IAMBinding"
"""Pulumi type: all members of one role of a project."""
PROJECT_POLICY: Final = "gcp:projects/iAMPolicy:IAMPolicy"
"""Pulumi type: all roles of a project."""
ACCOUNT_MEMBER: Final = "gcp:serviceaccount/iAMMember:IAMMember"
"""Pulumi type: one member of one role on a service account."""
ACCOUNT_BINDING: Final = "gcp:serviceaccount/iAMBinding:IAMBinding"
"""Pulumi type: all members of one role on a service account."""
ACCOUNT_KEY: Final = "gcp:serviceaccount/key:Key"
"""Pulumi type: a key of a service account."""
KUBERNETES_ACCOUNT: Final = "kubernetes:core/v1:ServiceAccount"
"""Pulumi type: a Kubernetes service account."""

_GRANTS: Final = (PROJECT_MEMBER, PROJECT_BINDING)
_BASIC_ROLES: Final = ("roles/owner", "roles/editor")
_IMPERSONATION: Final = ("roles/iam.serviceAccountUser", "roles/iam.serviceAccountTokenCreator")
_PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
_WORKLOAD_ROLE: Final = "roles/iam.workloadIdentityUser"
_PROJECT: Final = r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_ACCOUNT: Final = re.compile(rf"^[a-z]([a-z0-9-]*[a-z0-9])?@{_PROJECT}\.iam\.gserviceaccount\.com$")
_POOL_MEMBER: Final = re.compile(
    rf"^serviceAccount:{_PROJECT}\.svc\.id\.goog\[[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?\]$"
)
_APP_ENGINE: Final = re.compile(r"@appspot\.gserviceaccount\.com$")


def _members(grant: Resource) -> list[str]:
    found = [grant.get("member"), *items(grant.get("members"))]
    return [member for member in found if isinstance(member, str)]


def _basic_roles(grant: Resource, _: Settings) -> Iterator[Breach]:
    role = grant.get("role")
    if role in _BASIC_ROLES:
        yield Breach("role", f"is {role}, which covers every service", "grant the roles of the services it uses")


def _project_impersonation(grant: Resource, _: Settings) -> Iterator[Breach]:
    role = grant.get("role")
    if role in _IMPERSONATION:
        yield Breach(
            "role",
            f"is {role} in the whole project, which allows to act as every service account",
            "grant it on the one service account, with gcp.serviceaccount.IAMMember",
        )


def _public(grant: Resource, _: Settings) -> Iterator[Breach]:
    for member in _members(grant):
        if member in _PUBLIC:
            yield Breach("member", f"is {member}: everyone on the internet", "name who needs it")


def _default_account(grant: Resource, _: Settings) -> Iterator[Breach]:
    for member in _members(grant):
        address = member.removeprefix("serviceAccount:")
        if address != member and (is_default_account(address) or _APP_ENGINE.search(address)):
            yield Breach(
                "member",
                f"is {address}, which everything without an account of its own runs as",
                "make a service account for what needs the role",
            )


def _authoritative(policy: Resource, _: Settings) -> Iterator[Breach]:
    project = policy.get("project")
    yield Breach(
        "policyData",
        f"replaces every grant of {project if isinstance(project, str) else 'the project'}, "
        "those of Google's own service agents included",
        "use gcp.projects.IAMMember for each grant",
    )


def _keys(key: Resource, _: Settings) -> Iterator[Breach]:
    account = key.get("serviceAccountId")
    yield Breach(
        "serviceAccountId",
        f"{account if isinstance(account, str) else 'an account'} gets a key that never expires and is in the state",
        "use Workload Identity, or impersonation, and remove the key",
    )


def _workload_identity_member(grant: Resource, _: Settings) -> Iterator[Breach]:
    if grant.get("role") != _WORKLOAD_ROLE:
        return
    for member in _members(grant):
        if member.startswith("serviceAccount:") and ".svc.id.goog" in member and not _POOL_MEMBER.match(member):
            yield Breach(
                "member",
                f'is "{member}", which is not a Kubernetes service account',
                "write serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME]",
            )
        elif member in _PUBLIC:
            yield Breach(
                "member",
                f"is {member}: everyone on the internet may act as this account",
                "name a Kubernetes service account",
            )


def _workload_identity_annotation(account: Resource, _: Settings) -> Iterator[Breach]:
    annotations = account.get("metadata.annotations")
    address = annotations.get(WORKLOAD_IDENTITY_ANNOTATION) if isinstance(annotations, dict) else None
    if isinstance(address, str) and not _ACCOUNT.match(address):
        yield Breach(
            f"metadata.annotations[{WORKLOAD_IDENTITY_ANNOTATION}]",
            f'is "{address}", which is not the address of a Google service account',
            "write NAME@PROJECT.iam.gserviceaccount.com",
        )


_IAM: Final = "https://cloud.google.com/iam/docs"
_WORKLOAD: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity"
_GROUP: Final = "Identity"

RULES: Final = (
    ResourceRule(
        name="iam-no-basic-roles",
        asks="Owner and Editor of a project must not be granted.",
        severity=Severity.HIGH,
        source=f"{_IAM}/roles-overview#basic",
        group=_GROUP,
        types=_GRANTS,
        check=_basic_roles,
    ),
    ResourceRule(
        name="iam-no-project-impersonation",
        asks="The right to act as every service account of a project must not be granted.",
        severity=Severity.HIGH,
        source=f"{_IAM}/service-account-permissions",
        group=_GROUP,
        types=_GRANTS,
        check=_project_impersonation,
    ),
    ResourceRule(
        name="iam-no-public-members",
        asks="Roles must not be granted to the public.",
        severity=Severity.CRITICAL,
        source=f"{_IAM}/principals-overview#all-users",
        group=_GROUP,
        types=_GRANTS,
        check=_public,
    ),
    ResourceRule(
        name="iam-no-default-service-account",
        asks="Roles must not be granted to default service accounts.",
        cis="5.2.1",
        severity=Severity.HIGH,
        source=f"{_IAM}/service-account-types#default",
        group=_GROUP,
        types=_GRANTS,
        check=_default_account,
    ),
    ResourceRule(
        name="iam-additive",
        asks="Programs must not replace all grants of a project.",
        severity=Severity.HIGH,
        source="https://www.pulumi.com/registry/packages/gcp/api-docs/projects/iampolicy/",
        group=_GROUP,
        types=(PROJECT_POLICY,),
        check=_authoritative,
    ),
    ResourceRule(
        name="iam-no-service-account-keys",
        asks="Service accounts must not have keys.",
        cis="5.2.2",
        severity=Severity.HIGH,
        source=f"{_IAM}/best-practices-for-managing-service-account-keys",
        group=_GROUP,
        types=(ACCOUNT_KEY,),
        check=_keys,
    ),
    ResourceRule(
        name="iam-workload-identity-member",
        asks="Workload Identity must name one Kubernetes service account.",
        cis="5.2.2",
        severity=Severity.HIGH,
        source=_WORKLOAD,
        group=_GROUP,
        types=(ACCOUNT_MEMBER, ACCOUNT_BINDING),
        check=_workload_identity_member,
    ),
    ResourceRule(
        name="iam-workload-identity-annotation",
        asks="A Kubernetes service account must name a Google service account that can exist.",
        cis="5.2.2",
        source=_WORKLOAD,
        group=_GROUP,
        types=(KUBERNETES_ACCOUNT,),
        check=_workload_identity_annotation,
    ),
)
"""The rules of this module."""
