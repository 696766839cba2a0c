"""Pydantic's findings in plain words.

Unknown fields name the nearest known one; fields that Kueue's v1beta1 had name what replaced them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kueue_admission.kernel import suggest
from kueue_admission.kernel.described import Described, formerly, hint_of, known_as
from kueue_admission.kernel.form_rules import (
    EXCLUDED,
    FORMER_NAME,
    MISSING,
    NOT_ALLOWED,
    OUT_OF_RANGE,
    REMOVED_FIELD,
    UNKNOWN_FIELD,
    WRONG_TYPE,
    Fault,
)
from kueue_admission.kernel.printable import printable
from kueue_admission.kernel.problem import Problem, join_path
from kueue_admission.kernel.schema_path import fields_of, is_model, model_at, paths_below, readable, renamed, tags_of
from kueue_admission.kernel.syntax import strange_character
from kueue_admission.kernel.unknown import IN_TEXT, NOT_LATER, OUTPUT_TEXT, is_late, is_of_pulumi

_MUCH_ALIKE: Final = 0.8
"""From this likeness on, a name is a misspelt one of the same place."""
_MOST_MEANT: Final = 3
_REPLACED_VALUES: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}


def errors_in(error: ValidationError) -> list[ErrorDetails]:
    """The errors of pydantic that are about the data.

    Items that cannot be read do not count as items, so a list can be reported as too short only because of them.
    """
    return [
        detail
        for detail in error.errors(include_url=False)
        if not (detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"])
    ]


def problems_of(error: ValidationError, model: type[BaseModel], data: Any, *, in_python: bool = False) -> list[Problem]:
    """Everything that is wrong with `data`, which could not be read as `model`."""
    return [problem for detail in errors_in(error) for problem in explain(detail, model, data, in_python=in_python)]


def explain(error: ErrorDetails, model: type[BaseModel], data: Any, *, in_python: bool = False) -> list[Problem]:
    """The problems that `error`, found while reading `data` as `model`, stands for.

    With `in_python`, `data` is what a program makes the model of, and fixes are in its spelling.
    """
    kind, location, value = error["type"], error["loc"], error["input"]
    context = error.get("ctx") or {}
    path = readable(model, location, data)
    if kind == "rules":
        return [problem.at(path) for problem in context["problems"]]
    if kind == "extra_forbidden":
        if new := _new_name(error, model, data, in_python=in_python):
            if renamed(data, location, new) is None:
                return [EXCLUDED.at(path, f"set, but so is {new}, its new name", "remove it")]
            return [FORMER_NAME.at(path, "is an old name, which the next release does not have", f"write {new}")]
        known_fields = model.model_fields if in_python and len(location) == 1 else None
        above = {
            readable(model, location[:end], data): model_at(model, location[:end], data)
            for end in range(len(location) - 2, -1, -1)
        }
        return [unknown_field(path, str(location[-1]), model_at(model, location[:-1], data), known_fields, above)]
    if kind == "missing":
        hint, name = hint_of(model_at(model, location[:-1], data), str(location[-1])), location[-1]
        if in_python and len(location) == 1:
            path = name = fields_of(model)[path][0]
        return [MISSING.at(path, "is missing", hint or f"add {name}")]
    if isinstance(value, type):
        return [WRONG_TYPE.at(path, f"the class {value.__name__} itself is given", f"make one: {value.__name__}(...)")]
    if location and location[-1] == "[key]":
        fault = fault_of(kind, location[-2], context, error["msg"])
        path = readable(model, location[:-2], data)
        return [fault.rule.at(path, f"the key {value_text(location[-2])} {fault.wrong}", fault.fix)]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return [_wrong_tag(path, value, model_at(model, location, data))]
    if kind in ("too_long", "too_short"):
        most, least, count = context.get("max_length"), context.get("min_length"), len(value)
        fix = f"use at most {most}" if kind == "too_long" else f"list at least {least}"
        return [OUT_OF_RANGE.at(path, f"{count or 'no'} items", fix)]
    fault = fault_of(kind, value, context, error["msg"])
    if in_python and fault.rule is WRONG_TYPE and kind in _IN_PYTHON and not is_late(value):
        fault = fault._replace(fix=_in_python(kind, model_at(model, location, data)))
    return [fault.rule.at(path, f"{value_text(value)} {fault.wrong}", fault.fix)]


def _new_name(error: ErrorDetails, model: type[BaseModel], data: Any, *, in_python: bool) -> str | None:
    *above, name = error["loc"]
    return formerly(str(name), model_at(model, above, data), in_python=in_python and not above)


def in_new_names(
    error: ValidationError, model: type[BaseModel], data: Any, *, in_python: bool = False
) -> tuple[Any, list[Problem]]:
    """DATA, which could not be read as `model`, with new names in place of old ones, and the warnings about these."""
    old_names: list[Problem] = []
    for detail in errors_in(error):
        new = _new_name(detail, model, data, in_python=in_python) if detail["type"] == "extra_forbidden" else None
        if new and (data_there := renamed(data, detail["loc"], new)) is not None:
            old_names += explain(detail, model, data, in_python=in_python)
            data = data_there
    return data, old_names


def warn_in_program(problems: Iterable[Problem]) -> None:
    """Warn on standard error, in the line of the program that called the caller."""
    for problem in problems:
        warnings.warn(problem.coded, FutureWarning, stacklevel=3)


def _in_python(kind: str, wanted: Any) -> str:
    """What to give in a program where a model, a list or a map is needed."""
    models = [model.__name__ for model in (wanted if isinstance(wanted, tuple) else (wanted,)) if is_model(model)]
    return f"give {' or '.join(f'{name}(...)' for name in models)}" if models else _IN_PYTHON[kind]


def _wrong_tag(path: str, value: Any, members: Sequence[type[BaseModel]]) -> Problem:
    """The problem of a union of MEMBERS at `path` whose `type` says of none of them."""
    fields = value if isinstance(value, Mapping) else {}
    if "type" not in fields:
        for name in map(str, fields):
            if guessed(name, members[0]) == "type":
                return unknown_field(join_path(path, name), name, members[0])
    at, tags = join_path(path, "type"), ", ".join(tag for member in members for tag in tags_of(member))
    type_name = fields.get("type")
    if type_name is None:
        return MISSING.at(at, "is missing", f"set it to one of {tags}")
    fault = _not_one_of(type_name, tags)
    return fault.rule.at(at, f"{value_text(type_name)} {fault.wrong}", fault.fix)


def unknown_field(
    path: str, name: str, model: Any, names: Iterable[str] | None = None, above: Mapping[str, Any] | None = None
) -> Problem:
    """The problem of a field that `model` does not have; it goes by other `names` in programs.

    `above`: the models around it by their path, the nearest first. Where no name here is much alike, a field of that
    name in one of them or inside this model may be meant too.
    """
    if fix := _removed(name, model, in_python=names is not None):
        return REMOVED_FIELD.at(path, "was removed in Kueue's v1beta2", fix)
    if is_model(model) and issubclass(model, Described) and (elsewhere := model.not_here(name)):
        return UNKNOWN_FIELD.at(path, *elsewhere)
    known_names = sorted(names or fields_of(model)) if is_model(model) else []
    field, colon, value = name.partition(":")
    if colon and field in known_names:
        return UNKNOWN_FIELD.at(path, "is not a known field", f"put a space after the colon: {field}: {value.strip()}")
    strange = strange_character(name)
    wrong = f"is not a known field{strange and f', as it has the character {strange}'}"
    near = known_as(name, model, in_python=names is not None) or suggest.nearest(name, known_names, _MUCH_ALIKE)
    meant = [near] if near else _around(path, name, above or {})
    if not meant:
        meant = paths_below(model, name) if is_model(model) else []
        if near := suggest.nearest(name, known_names):
            meant.insert(0, near)
    if 0 < len(meant) <= _MOST_MEANT:
        return UNKNOWN_FIELD.at(path, wrong, f"did you mean {suggest.either(meant)}?")
    return UNKNOWN_FIELD.at(
        path,
        wrong,
        f"remove it, or use one of {', '.join(known_names)}" if known_names else "remove it",
    )


def _around(path: str, name: str, above: Mapping[str, Any]) -> list[str]:
    """The path of the nearest field of that name around; not one that the unknown field is in."""
    for outer, place in above.items():
        field = respelt(name, place) or known_as(name, place)
        if field is not None and not path.startswith(f"{join_path(outer, field)}."):
            return [join_path(outer, field) if outer else f"{field} (top level)"]
    return []


def _removed(name: str, model: Any, *, in_python: bool) -> str:
    """What to do about a field that `model` had in Kueue's v1beta1; empty for others."""
    if not is_model(model) or not issubclass(model, Described):
        return ""
    new = model.replaced.get(name)
    if new is None:
        return str(model.removed.get(name, ""))
    return f"write {fields_of(model)[new][0] if in_python and new in fields_of(model) else new}"


def respelt(name: str, model: Any) -> str | None:
    """The field that the unknown field `name` is beyond doubt: written otherwise, or as in an earlier release."""
    if former := formerly(name, model):
        return former
    fields = fields_of(model) if is_model(model) else {}
    new = model.replaced.get(name) if fields and issubclass(model, Described) else None
    return next((field for field in fields if field == new or suggest.plain(field) == suggest.plain(name)), None)


def guessed(name: str, model: Any) -> str | None:
    """The field that the unknown field `name` may have been meant for."""
    return suggest.nearest(name, fields_of(model)) if is_model(model) else None


def value_text(value: Any) -> str:
    """The offending value, short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str) and OUTPUT_TEXT in value:
        return "the text"
    if is_late(value):
        return "what is known later"
    if is_of_pulumi(type(value)):
        return suggest.with_article(type(value).__name__)
    if isinstance(value, BaseModel):
        return suggest.with_article(type(value).__name__)
    text = printable(str(value))
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return f'"{text}"' if isinstance(value, str) else text


def fault_of(kind: str, value: Any, context: Mapping[str, Any], message: str) -> Fault:
    """What an error of pydantic says of a value."""
    if value is None:
        return Fault("is given where a value is needed", "write a value, or remove the line", WRONG_TYPE)
    if isinstance(value, str) and OUTPUT_TEXT in value:
        return Fault(*IN_TEXT, WRONG_TYPE)
    if is_late(value):
        return Fault("is given where plain data is needed", NOT_LATER, WRONG_TYPE)
    if kind == "fault":
        fault: Fault = context["fault"]
        return fault
    if kind == "literal_error":
        return _not_one_of(value, str(context["expected"]))
    if kind in _TYPES:
        return _wrong_type(kind, value)
    if kind == "string_too_short" and not value:
        return Fault("is empty", "write a value", OUT_OF_RANGE)
    if kind in _LIMITS:
        wrong, fix = _LIMITS[kind]
        return Fault(wrong, fix.format(**context), OUT_OF_RANGE)
    return Fault(f"is refused ({message})", "correct it", NOT_ALLOWED)


def _not_one_of(value: Any, expected_text: str) -> Fault:
    allowed_values = [item.strip().strip("'") for item in expected_text.replace(" or ", ", ").split(",")]
    if isinstance(value, str) and _REPLACED_VALUES.get(value) in allowed_values:
        return Fault("was removed in Kueue's v1beta2", f"write {_REPLACED_VALUES[value]}", REMOVED_FIELD)
    near = suggest.nearest(value, allowed_values) if isinstance(value, str) else None
    value_text = ", ".join(allowed_values)
    fix = f"did you mean {near}? Allowed: {value_text}" if near else f"use one of {value_text}"
    return Fault("is not allowed", fix, NOT_ALLOWED)


_TYPES: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "date_type": "a date",
    "date_parsing": "a date",
    "date_from_datetime_parsing": "a date",
    "date_from_datetime_inexact": "a date",
    "invalid_key": "text as key",
}

_IN_PYTHON: Final = {
    "tuple_type": "write a list: [...]",
    "dict_type": "write a dict: {...}",
    "mapping_type": "write a dict: {...}",
    "model_type": "write a dict: {...}",
    "model_attributes_type": "write a dict: {...}",
}
"""What to do in a program about a value of another type, where files have words of their own."""
_LIMITS: Final = {
    "string_too_long": ("is too long", "use at most {max_length} characters"),
    "string_too_short": ("is too short", "use at least {min_length} characters"),
    "greater_than_equal": ("is too small", "use at least {ge}"),
    "less_than_equal": ("is too large", "use at most {le}"),
    "greater_than": ("is too small", "use more than {gt}"),
    "less_than": ("is too large", "use less than {lt}"),
}


def in_quotes(text: str) -> str:
    """What to do about a value that YAML reads as another type than text."""
    return f'put it in quotes: "{text}"'


def _wrong_type(kind: str, value: Any) -> Fault:
    type_words = _TYPES[kind]
    wrong = f"is given where {type_words} is needed"
    if is_of_pulumi(type(value)):
        return Fault(wrong, f"write {type_words}", WRONG_TYPE)
    if type_words == "text" and isinstance(value, (int, float)):
        value_text = str(value).lower() if isinstance(value, bool) else str(value)
        return Fault(wrong, in_quotes(value_text), WRONG_TYPE)
    if type_words == "a whole number" and isinstance(value, str) and value.lstrip("+-").isdigit():
        return Fault(wrong, f"remove the quotes: {value}", WRONG_TYPE)
    if type_words == "true or false":
        return Fault(wrong, "write true or false, without quotes", WRONG_TYPE)
    if type_words == "a list":
        return Fault(wrong, "write each item on its own line, beginning with '- '", WRONG_TYPE)
    if type_words == "a map":
        return Fault(wrong, "write its fields as 'name: value', one on each line", WRONG_TYPE)
    if type_words == "a date":
        return Fault(wrong, "write it as year-month-day, such as 2027-02-01", WRONG_TYPE)
    return Fault(wrong, f"write {type_words}", WRONG_TYPE)
