"""The page for teams beside the fleet's controller: who is asked who they are, and by whom.

Frozen models with the rules of the section alone; what it has to do with the rest of the file is in `check.fleet_page`.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field

from kueue_admission.kernel.base import DnsSubdomain, RuledModel, SpecModel, Text, syntax_of
from kueue_admission.kernel.form_rules import LISTED_TWICE
from kueue_admission.kernel.given import ListOfText
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.gcp_names import EmailAddress
from kueue_fleet.gke import google_syntax

PAGE_NAME: Final = "kueue-fleet-page"
"""Name of the page's Deployment, of its account and namespace, and of all else that belongs to it."""
Audience = Annotated[Text, syntax_of(google_syntax.iap_audience)]
"""For whom IAP signs its header: a backend service."""


class FleetPageIap(RuledModel):
    """The page behind GKE's ingress with Identity-Aware Proxy (IAP), which signs in the viewers.

    Source: https://cloud.google.com/iap/docs/signed-headers-howto.
    """

    host: DnsSubdomain
    """Name of the page, such as jobs.example.com; create its DNS record yourself."""
    audience: Audience | None = None
    """`/projects/NUMBER/global/backendServices/ID` of the ingress, once it exists; until then the page refuses all
    viewers."""
    groups: Mapping[EmailAddress, ListOfText[EmailAddress]] = Field(default_factory=dict)
    """Members of the groups that are members of teams, since IAP does not provide them: addresses by the address of the
    group."""

    def own_problems(self) -> Iterator[Problem]:
        """Addresses once in each group."""
        for group, users in self.groups.items():
            for user in sorted({user for user in users if users.count(user) > 1}):
                yield LISTED_TWICE.at(f"groups[{group}]", f"{user} is listed twice", "keep one of them")


class FleetPage(SpecModel):
    """A page on which members of teams see their jobs, and why they wait: read only, each with their own rights.

    Without `iap` it is reached by `kubectl port-forward`, and viewers give their own token.
    """

    iap: FleetPageIap | None = None
    """GKE's ingress with Identity-Aware Proxy, which signs viewers in; default: no ingress."""
