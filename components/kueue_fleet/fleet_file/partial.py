"""Builds what can be built of data that fits a model only in part.

The model's own schema reads the data, with one difference: a field that cannot be read is left out, and does not refuse
the whole. Asking the model for it raises NotKnownError. Nothing takes its place, no default either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

from pydantic_core import SchemaValidator

from kueue_admission.kernel.base import DEFER_RULES, SpecModel
from kueue_admission.kernel.schema_path import Location, fields_of

M = TypeVar("M", bound=SpecModel)
_LEFT_OUT: Final = object()
_NO_SCHEMA: Final = frozenset({"metadata", "serialization", "default", "cls", "function"})
"""Keys of a core schema below which there is no schema."""


def read_partly(model: type[M], data: Mapping[str, Any], unknown: Sequence[Location]) -> M:
    """What `model` can take of `data`; `unknown` are the places of fields that are there under a wrong name only."""
    m: M = _validator(model).validate_python(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
    for location in unknown:
        _leave_out(m, location)
    return m


@cache
def _validator(model: type[SpecModel]) -> SchemaValidator:
    model.model_rebuild()
    return SchemaValidator(_lenient(model.__pydantic_core_schema__), {"allow_inf_nan": False})


def _lenient(schema: Any) -> Any:
    """The schema in which no field refuses the model that it is in, and no model what it is in."""
    if isinstance(schema, (list, tuple)):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lenient = {key: value if key in _NO_SCHEMA else _lenient(value) for key, value in schema.items()}
    kind = schema.get("type")
    if kind == "model-field":
        inner = lenient["schema"]
        if inner["type"] == "default":
            inner["schema"] = _or_left_out(inner["schema"])
        else:
            lenient["schema"] = _or_left_out(inner)
    elif kind == "model":
        function = {"type": "no-info", "function": partial(_make, schema["cls"])}
        read = {"type": "function-after", "function": function, "schema": lenient["schema"]}
        default = {"default_factory": partial(_nothing_of, schema["cls"]), "on_error": "default"}
        return {"type": "default", "schema": read, **default, **({"ref": lenient["ref"]} if "ref" in lenient else {})}
    return lenient


def _or_left_out(schema: Any) -> Any:
    return {"type": "default", "schema": schema, "default": _LEFT_OUT, "on_error": "default"}


def _make(model: type[M], read: tuple[dict[str, Any], Any, set[str]]) -> M:
    """The model of the fields that were read."""
    fields, _, fields_given = read
    m = _nothing_of(model)
    m.__dict__.update({name: value for name, value in fields.items() if _is_usable(value)})
    m.__pydantic_fields_set__.update(fields_given)
    return m


def _nothing_of(model: type[M]) -> M:
    """A model none of whose fields could be read."""
    empty: Any = model.model_construct()
    empty.__dict__.clear()
    nothing: M = empty
    return nothing


def _is_usable(value: Any) -> bool:
    return value is not _LEFT_OUT and (not isinstance(value, SpecModel) or not value.read_whole or _is_whole(value))


def _is_whole(value: Any) -> bool:
    """Whether nothing is left out of a value."""
    if isinstance(value, SpecModel):
        return value.__dict__.keys() >= type(value).model_fields.keys() and all(map(_is_whole, value.__dict__.values()))
    return all(map(_is_whole, value)) if isinstance(value, tuple) else True


def _leave_out(part: Any, location: Location) -> None:
    """Leave the field at `location` out, or the whole model that it is in if that is used as a whole."""
    for key in location:
        if isinstance(part, SpecModel):
            name = fields_of(type(part))[str(key)][0]
            inner = part.__dict__.get(name)
            if key is location[-1] or (isinstance(inner, SpecModel) and inner.read_whole):
                part.__dict__.pop(name, None)
                return
            part = inner
        elif isinstance(part, Mapping):
            part = part.get(str(key))
        elif isinstance(part, tuple) and isinstance(key, int) and key < len(part):
            part = part[key]
        else:
            return
