"""From text or plain data to a checked fleet.

In: the text of a bare fleet file or of a Pulumi.<env>.yaml, or the data in it. Out: `FleetSpec`, or SpecError with
every problem there is. A field that cannot be read hides no problem elsewhere: `standins` replaces it, and the rules go
on, with what they would say about the stand-in left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from kueue_fleet.spec.base import DEFER_RULES
from kueue_fleet.spec.check import check_fleet
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.messages import explain
from kueue_fleet.spec.problem import Problem, SpecError, errors_of
from kueue_fleet.spec.yamltext import load_yaml

PULUMI_KEY: Final = "kueue-fleet:fleet"
"""Config key of a Pulumi.<env>.yaml that holds the fleet."""


def parse_fleet_text(text: str, source: str) -> FleetSpec:
    """The fleet in `text`, which came from `source` (for messages). Raises SpecError with all problems."""
    return parse_fleet(fleet_data(load_yaml(text, source), source))


def fleet_data(document: Any, source: str) -> Any:
    """The fleet's part of a document: the whole of it, or its config value if it is a Pulumi stack file."""
    if not isinstance(document, Mapping) or "config" not in document:
        return document
    config = document["config"]
    if not isinstance(config, Mapping) or PULUMI_KEY not in config:
        raise SpecError(
            [Problem(f"{source}: config", f"has no {PULUMI_KEY}", f"add {PULUMI_KEY}: with the fleet below it")]
        )
    return config[PULUMI_KEY]


def parse_fleet(data: Any) -> FleetSpec:
    """The fleet in `data`, plain data as YAML or JSON gives it. Raises SpecError with all problems."""
    try:
        fleet = FleetSpec.model_validate(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
    except ValidationError as error:
        raise SpecError([p for e in error.errors(include_url=False) for p in explain(e, FleetSpec, data)]) from None
    problems = check_fleet(fleet)
    if errors_of(problems):
        raise SpecError(problems)
    return fleet
