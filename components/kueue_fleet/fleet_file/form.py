"""The form of data from a file: that every field is known, and holds what it may hold.

This is the first of two phases. The second, the rules, goes by what could be read here, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kueue_admission.kernel.base import DEFER_RULES, SpecModel
from kueue_admission.kernel.messages import errors_in, explain, guessed, respelt
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.schema_path import Location, child_of, is_model, model_at, renamed
from kueue_fleet.fleet_file.partial import read_partly

M = TypeVar("M", bound=SpecModel)


def read_form(model: type[M], data: Any) -> tuple[M | None, list[Problem]]:
    """What could be read of `data` as `model`, plain data as YAML or JSON gives it, and every problem of its form.

    Without errors it is whole, and its rules are still to be checked. With some, asking it for what could not be read
    raises NotKnownError. None where nothing could be read.
    """
    problems: list[Problem] = []
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
        for index, field in misspelt.items():
            problems += explain(details[index], model, data)
            data = renamed(data, details[index]["loc"], field) or data
    unknown = [meant for detail in details if (meant := _guessed(model, detail, data))]
    for detail in details:
        if not (detail["type"] == "missing" and _plain_location(detail["loc"], data) in unknown):
            problems += explain(detail, model, data)
    return read_partly(model, data, unknown), problems


def _respelt(model: type[SpecModel], detail: ErrorDetails, data: Any) -> str | None:
    """The field that an unknown field is, if that is beyond doubt and the field is not there too."""
    if detail["type"] != "extra_forbidden":
        return None
    field = respelt(str(detail["loc"][-1]), model_at(model, detail["loc"][:-1], data))
    return field if field is not None and renamed(data, detail["loc"], field) is not None else None


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


def models_in(model: type[BaseModel], seen_models: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """`model` and every model that its fields lead to."""
    if model in seen_models:
        return
    seen_models.add(model)
    yield model
    for field in model.model_fields.values():
        for found in _classes_in(field.annotation):
            yield from models_in(found, seen_models)


def _classes_in(tp: Any) -> Iterator[type[BaseModel]]:
    if is_model(tp):
        yield tp
    for argument in getattr(tp, "__args__", ()):
        yield from _classes_in(argument)
