"""Google service accounts by their ids: known before they exist, so that Kubernetes objects can name them.

In: names. Out: ids and addresses. Making accounts and granting roles is the job of the components.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.teams import TeamEntry

ACCOUNT_ID_LENGTH: Final = 30
"""Longest id of a service account; the shortest has 6 characters.

Source: https://cloud.google.com/iam/docs/service-accounts-create
"""


def shortened_account_id(wanted: str, distinct: str) -> str:
    """`wanted`, beyond 30 characters shortened with a digest of `distinct`."""
    if len(wanted) <= ACCOUNT_ID_LENGTH:
        return wanted
    digest = hashlib.sha256(distinct.encode()).hexdigest()[:6]
    return f"{wanted[: ACCOUNT_ID_LENGTH - 7].rstrip('-')}-{digest}"


def team_account_id(fleet: str, team: str) -> str:
    """The service account id of a team: `<fleet>-<team>`, shortened with a digest beyond 30 characters."""
    return shortened_account_id(f"{fleet}-{team}", f"{fleet}-{team}")


def account_address(account_id: str, project: str) -> str:
    """The address of an account in a project; `example.com:my-project` is `my-project.example.com` there."""
    domain, _, plain = project.rpartition(":")
    return f"{account_id}@{f'{plain}.{domain}' if domain else plain}.iam.gserviceaccount.com"


def team_account_address(fleet: FleetSpec, team: TeamEntry) -> str | None:
    """The Google service account that a team's jobs act as; None if they act as none."""
    if team.existing_google_service_account is not None:
        return team.existing_google_service_account
    if team.google_service_account is None:
        return None
    return account_address(team_account_id(fleet.name, team.name), fleet.project)
