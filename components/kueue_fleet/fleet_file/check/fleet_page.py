"""The page for teams and the rest of the file: the controller whose image it runs, and the members of teams.

Source: https://cloud.google.com/iap/docs/signed-headers-howto (what IAP's header says: an address, no groups).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.form_rules import NEEDED, UNKNOWN_NAME
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import instead
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.fleet_page import FleetPage, FleetPageIap
from kueue_fleet.fleet_file.rules.teams import NO_AUDIENCE, NO_VIEWERS

_AT = "fleetPage"


@entry_check("fleetPage")
def _page(scope: Scope, page: FleetPage) -> Iterator[Problem]:
    """It has an image; behind IAP it lets somebody in, and knows who is in which team."""
    if scope.fleet.controller is None:
        yield NEEDED.at(_AT, "needs the controller, whose image it runs", "add the section controller")
    if page.iap is not None:
        yield from _viewers(scope, page.iap)


def _viewers(scope: Scope, iap: FleetPageIap) -> Iterator[Problem]:
    if iap.audience is None:
        yield NO_AUDIENCE.at(
            f"{_AT}.iap.audience",
            "is absent, so the page refuses everybody",
            "write that of the ingress once it is made (docs/live-page.md)",
        )
    members = {member for team in scope.fleet.teams for member in team.members}
    groups = sorted(member.partition(":")[2] for member in members if member.startswith("group:"))
    for group in iap.groups:
        if group not in groups:
            yield UNKNOWN_NAME.at(
                f"{_AT}.iap.groups[{group}]",
                f"{group} is a member of no team",
                instead(group, groups, "groups that are members of teams"),
            )
    for team in scope.fleet.teams:
        missing_groups = [m.partition(":")[2] for m in team.members if m.startswith("group:")]
        missing_groups = [group for group in missing_groups if group not in iap.groups]
        if missing_groups:
            yield NO_VIEWERS.at(
                f"{scope.path(team)}.members",
                f"{missing_groups[0]} is not among fleetPage.iap.groups, so its members see nothing on the page",
                "add the group there with who is in it",
            )
