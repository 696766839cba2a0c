"""Rules about identities in Google Cloud: who gets which role, and how workloads become a service account.

Source of most: https://cloud.google.com/iam/docs/using-iam-securely.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION, WORKLOAD_IDENTITY_ROLE
from kueue_fleet_policies.gke_nodes import is_default_account
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, items

_PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
_PROJECT: Final = r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]"
_ACCOUNT: Final = re.compile(rf"^[a-z]([a-z0-9-]*[a-z0-9])?@{_PROJECT}\.iam\.gserviceaccount\.com$")
_POOL_MEMBER: Final = re.compile(
    rf"^serviceAccount:{_PROJECT}\.svc\.id\.goog\[[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?\]$"
)
_APP_ENGINE: Final = re.compile(r"@appspot\.gserviceaccount\.com$")


def _members(grant: Resource) -> list[str]:
    members = [grant.get("member"), *items(grant.get("members"))]
    return [member for member in members if isinstance(member, str)]


def _bindings(grant: Resource) -> list[Any]:
    """Those of an authoritative policy, which is a text of JSON; none where the text is not known."""
    text = grant.get("policyData")
    try:
        return items(at(json.loads(text), "bindings")) if isinstance(text, str) else []
    except ValueError:
        return []


def _grantees(grant: Resource) -> Iterator[tuple[str, Any]]:
    """Path and name of everybody to whom a grant, an access control list or a dataset gives access."""
    for path in ("member", "entity", "specialGroup", "iamMember"):
        yield path, grant.get(path)
    for path in ("members", "roleEntities"):
        yield from ((f"{path}[{index}]", one) for index, one in enumerate(items(grant.get(path))))
    for index, access in enumerate(items(grant.get("accesses"))):
        yield from ((f"accesses[{index}].{key}", at(access, key)) for key in ("specialGroup", "iamMember"))
    for index, binding in enumerate(_bindings(grant)):
        yield from ((f"policyData.bindings[{index}]", member) for member in items(at(binding, "members")))


def _public(grant: Resource, _: Settings) -> Iterator[Breach]:
    for path, grantee in _grantees(grant):
        # An entry of an access control list is `ROLE:entity`.
        name = grantee.rpartition(":")[2] if isinstance(grantee, str) else ""
        if name in _PUBLIC:
            yield Breach(path, f"is {name}: everyone on the internet", "name who needs it")
    if str(grant.get("predefinedAcl")).startswith("public"):
        yield Breach("predefinedAcl", f"is {grant.get('predefinedAcl')}: everyone on the internet", "use private")


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
    if grant.get("role") != WORKLOAD_IDENTITY_ROLE:
        return
    for member in _members(grant):
        if member.startswith("serviceAccount:") and ".svc.id.goog" in member and not _POOL_MEMBER.match(member):
            yield Breach(
                "member",
                f'is "{member}", which is not a Kubernetes service account',
                "write serviceAccount:PROJECT.svc.id.goog[NAMESPACE/NAME]",
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
