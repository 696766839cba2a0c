"""The form of data from a file: that every field is known, and holds what it may hold.

This is the first of two phases. The second, the rules, goes by what could be read here, and by nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kueue_admission.kernel.base import DEFER_RULES, SpecModel
from kueue_admission.kernel.messages import errors_in, explain, guessed, respelt
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.schema_path import Location, child_of, model_at
from kueue_fleet.fleet_file.partial import read_partly

M = TypeVar("M", bound=SpecModel)


def read_form(model: type[M], data: Any) -> tuple[M | None, list[Problem]]:
    """What could be read of `data` as `model`, plain data as YAML or JSON gives it, and every problem of its form.

    Without problems it is whole, and its rules are still to be checked. With some, asking it for what could not be read
    raises NotKnownError. None where nothing could be read.
    """
    problems: list[Problem] = []
    original = data
    while True:
        try:
            whole = model.model_validate(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
        except ValidationError as error:
            details = errors_in(error)
        else:
            return whole, problems
        if not isinstance(data, Mapping):
            return None, [problem for detail in details for problem in explain(detail, model, data)]
        misspelt = {index: field for index, detail in enumerate(details) if (field := _respelt(model, detail, data))}
        if not misspelt:
            break
        data = copy.deepcopy(data) if data is original else data
        for index, field in misspelt.items():
            problems += explain(details[index], model, data)
            *above, key = _plain_location(details[index]["loc"], data)
            parent = _value_at(above, data)
            parent[field] = parent.pop(key)
    unknown = [meant for detail in details if (meant := _guessed(model, detail, data))]
    for detail in details:
        if not (detail["type"] == "missing" and _plain_location(detail["loc"], data) in unknown):
            problems += explain(detail, model, data)
    return read_partly(model, data, unknown), problems


def _respelt(model: type[SpecModel], detail: ErrorDetails, data: Any) -> str | None:
    """The field that an unknown field is, if that is beyond doubt and the field is not there too."""
    if detail["type"] != "extra_forbidden":
        return None
    *above, key = _plain_location(detail["loc"], data)
    field = respelt(str(key), model_at(model, detail["loc"][:-1], data))
    return field if field is not None and field not in _value_at(above, data) else None


def _guessed(model: type[SpecModel], detail: ErrorDetails, data: Any) -> tuple[str | int, ...] | None:
    """The place of the field that an unknown field may have been meant for: what it was to hold is not known."""
    if detail["type"] != "extra_forbidden":
        return None
    *above, key = _plain_location(detail["loc"], data)
    field = guessed(str(key), model_at(model, detail["loc"][:-1], data))
    return (*above, field) if field is not None else None


def _plain_location(location: Location, data: Any) -> tuple[str | int, ...]:
    """The location without the tag of a union and without the mark of a map's key."""
    plain: list[str | int] = []
    for key in location:
        if key == "[key]":
            break
        if isinstance(data, Mapping) and key not in data and data.get("type") == key:
            continue
        plain.append(key)
        data = child_of(data, key)
    return tuple(plain)


def _value_at(location: Location, data: Any) -> Any:
    """What is at a plain location in `data`; None where nothing is."""
    for key in location:
        data = child_of(data, key)
    return data
