"""The form of a fleet's data: that every field is known, and holds what it may hold.

This is the first of two phases. The second, the rules of `check`, goes by what could be read here, and by nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kueue_fleet.spec.base import DEFER_RULES
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.messages import errors_in, explain, guessed, respelt
from kueue_fleet.spec.partial import read_partly
from kueue_fleet.spec.problem import Problem
from kueue_fleet.spec.schemapath import model_at, plain_location, value_at


def read_form(data: Any) -> tuple[FleetSpec | None, list[Problem]]:
    """What could be read of `data`, plain data as YAML or JSON gives it, and every problem of its form.

    Without problems it is a whole fleet, whose rules are still to be checked. With some, asking it for what could not
    be read raises NotReadError. None where nothing could be read.
    """
    problems: list[Problem] = []
    original = data
    while True:
        try:
            whole = FleetSpec.model_validate(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
        except ValidationError as error:
            details = errors_in(error)
        else:
            return whole, problems
        if not isinstance(data, Mapping):
            return None, [problem for detail in details for problem in explain(detail, FleetSpec, data)]
        misspelt = {index: field for index, detail in enumerate(details) if (field := _respelt(detail, data))}
        if not misspelt:
            break
        data = copy.deepcopy(data) if data is original else data
        for index, field in misspelt.items():
            problems += explain(details[index], FleetSpec, data)
            *above, written = plain_location(details[index]["loc"], data)
            parent = value_at(above, data)
            parent[field] = parent.pop(written)
    unknown = [meant for detail in details if (meant := _guessed(detail, data))]
    for detail in details:
        if not (detail["type"] == "missing" and plain_location(detail["loc"], data) in unknown):
            problems += explain(detail, FleetSpec, data)
    return read_partly(FleetSpec, data, unknown), problems


def _respelt(detail: ErrorDetails, data: Any) -> str | None:
    """The field that an unknown field is, if that is beyond doubt and the field is not there too."""
    if detail["type"] != "extra_forbidden":
        return None
    *above, written = plain_location(detail["loc"], data)
    field = respelt(str(written), model_at(FleetSpec, detail["loc"][:-1], data))
    return field if field is not None and field not in value_at(above, data) else None


def _guessed(detail: ErrorDetails, data: Any) -> tuple[str | int, ...] | None:
    """The place of the field that an unknown field may have been meant for: nobody knows what it was to hold."""
    if detail["type"] != "extra_forbidden":
        return None
    *above, written = plain_location(detail["loc"], data)
    field = guessed(str(written), model_at(FleetSpec, detail["loc"][:-1], data))
    return (*above, field) if field is not None and field not in value_at(above, data) else None
