"""Ids of Google service accounts and roles: known before they exist, so that Kubernetes objects can name them.

Making accounts and granting roles is the job of the components.
"""

from __future__ import annotations

from typing import Final

from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.teams import TeamEntry

ACCOUNT_ID_LENGTH: Final = 30
"""Longest id of a service account. Source: https://cloud.google.com/iam/docs/service-accounts-create."""
SHORTEST_ACCOUNT_ID: Final = 6
"""Fewest characters of the id of a service account."""

ROLE_ID_LENGTH: Final = 64
"""Longest id of a custom role."""


def account_id(wanted_id: str, distinct: str) -> str:
    """`wanted_id`; with fewer than 6 characters, or more than 30, which are cut off, with a digest of `distinct`."""
    if SHORTEST_ACCOUNT_ID <= len(wanted_id) <= ACCOUNT_ID_LENGTH:
        return wanted_id
    return with_digest(wanted_id, distinct, ACCOUNT_ID_LENGTH)


def team_account_id(fleet: str, team: str) -> str:
    """The service account id of a team: `<fleet>-<team>`, with a digest where that is too short or too long."""
    return account_id(f"{fleet}-{team}", f"{fleet}-{team}")


def members_role_id(fleet: str) -> str:
    """The id of the custom role of the members of a fleet's teams: 3 to 64 letters, digits, `_` and `.`.

    Source: https://cloud.google.com/iam/docs/creating-custom-roles.
    """
    return _role_id(f"kueue-fleet-{fleet}-members")


def _role_id(wanted_id: str) -> str:
    short = wanted_id if len(wanted_id) <= ROLE_ID_LENGTH else with_digest(wanted_id, wanted_id, ROLE_ID_LENGTH)
    return short.replace("-", "_")


def manager_account_id(fleet: str, account: str) -> str:
    """The service account id of what reaches the workers from the manager: Kueue, or the fleet's own controller."""
    name = f"{account}-{fleet}"
    return account_id(name, name)


def grafana_account_id(fleet: str) -> str:
    """The service account id of the fleet's Grafana."""
    return account_id(f"grafana-{fleet}", fleet)


def grafana_account_address(fleet: FleetSpec) -> str:
    """The Google service account by which the fleet's Grafana reads metrics."""
    return account_address(grafana_account_id(fleet.name), fleet.project)


def connect_role_id(fleet: str) -> str:
    """The id of the custom role by which a fleet's manager connects to its workers."""
    return _role_id(f"kueue-fleet-{fleet}-connect")


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
