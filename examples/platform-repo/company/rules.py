"""The company's own rule, made as the library makes its rules; `policies/__main__.py` puts them into one pack."""

import re
from collections.abc import Iterator, Mapping

from company.team_space import COST_CENTRE_LABEL, SPACE_LABEL
from kueue_fleet_policies import UNKNOWN, Breach, Resource, ResourceRule, Settings


def _cost_centre(namespace: Resource, settings: Settings) -> Iterator[Breach]:
    labels = namespace.get("metadata.labels")
    if not isinstance(labels, Mapping) or labels.get(SPACE_LABEL) != "true":
        return
    who = labels.get(COST_CENTRE_LABEL)
    # A rule never judges what a preview does not know.
    if who is UNKNOWN or (isinstance(who, str) and re.fullmatch(settings["pattern"], who)):
        return
    yield Breach(
        f"metadata.labels[{COST_CENTRE_LABEL}]",
        "is missing, so no cost centre pays for this space" if who is None else f"is {who}, which is not a cost centre",
        f"set it to one that finance knows, like {settings['pattern']}",
    )


COST_CENTRE = ResourceRule(
    name="space-cost-centre",
    asks="Every team's space says who pays for it.",
    source="https://intranet.company.example/cost-centres",
    group="Company",
    types=("kubernetes:core/v1:Namespace",),
    check=_cost_centre,
    options={
        "pattern": {
            "type": "string",
            "description": "Regular expression that cost centres match.",
            "default": r"cc-\d{4}",
        }
    },
)

RULES = (COST_CENTRE,)
"""Every rule of the company."""
