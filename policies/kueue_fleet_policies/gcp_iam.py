"""Rules about identities in Google Cloud: who gets which role, and how workloads become a service account.

Source of most: https://cloud.google.com/iam/docs/using-iam-securely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet_policies.gke_nodes import is_default_account
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import items

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


RULES: Final = rules_of(
    "Identity",
    {
        "iam-no-public-members": _public,
        "iam-no-default-service-account": _default_account,
        "iam-additive": _authoritative,
        "iam-no-service-account-keys": _keys,
        "iam-workload-identity-member": _workload_identity_member,
        "iam-workload-identity-annotation": _workload_identity_annotation,
    },
)
"""The rules of this module."""
