"""From pydantic's locations to the paths that people read.

The path `clusterQueues[dws].resourceGroups`, and the model class that a location ends in. List items are called by
their name where that is unique in the list, keys of maps stand in brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from kueue_admission.kernel.problem import item_labels, join_path
from kueue_admission.kernel.suggest import plain

Location = Sequence["str | int"]
"""A place in a document, as pydantic gives it."""
_DEPTH: Final = 4
"""How deep a field is looked for in the models inside one."""
_LONG: Final = 7
"""Letters of a field whose name says enough behind another word: gpuSharing is meant by accelerator.sharing."""


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, tuple[str, Any]]:
    """For each field of `model`, by its name in files: the name in Python and the type."""
    return {field.alias or name: (name, field.annotation) for name, field in model.model_fields.items()}


def paths_below(model: type[BaseModel], name: str) -> list[str]:
    """Where the models inside `model` have a field of that name, in the nearest depth: `capacity.type`.

    If there is none, those whose long name ends it: `accelerator.partitionSize` for `gpuPartitionSize`.
    """
    same = _paths_where(model, lambda field: plain(field) == plain(name))
    return same or _paths_where(model, lambda field: len(field) >= _LONG and plain(name).endswith(plain(field)))


def _paths_where(model: type[BaseModel], meant: Callable[[str], bool]) -> list[str]:
    here = [("", model)]
    for _ in range(_DEPTH):
        here = list(
            dict.fromkeys((join_path(path, below), model) for path, outer in here for below, model in _inside(outer))
        )
        if paths := dict.fromkeys(
            join_path(path, field) for path, model in here for field in fields_of(model) if meant(field)
        ):
            return list(paths)
    return []


@cache
def _inside(model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    """The models of the fields of `model`, each with its path from there."""
    fields = ((field, annotation) for field, (_, annotation) in fields_of(model).items())
    return [(field + step, model) for field, annotation in fields for step, model in _models_in(annotation)]


def _models_in(tp: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models that a value of type `tp` is made of, and the step from it to each."""
    tp = plain_type(tp)
    if is_model(tp):
        yield "", tp
    elif isinstance(tp, tuple):
        yield from (model for member in tp for model in _models_in(member))
    elif (item := _item_type(tp)) is not None:
        yield from (("[]" + step, model) for step, model in _models_in(item))


def is_model(tp: Any) -> bool:
    """Whether `tp` is a model class."""
    return isinstance(tp, type) and issubclass(tp, BaseModel)


def readable(model: type[BaseModel], location: Location, data: Any) -> str:
    """The path of `location` in `data`, which should be a `model`."""
    path = ""
    for step in _walk(model, location, data)[0]:
        path = join_path(path, step)
    return path


def model_at(model: type[BaseModel], location: Location, data: Any) -> Any:
    """The type at `location`: a model class where it is one."""
    return _walk(model, location, data)[1]


def _walk(model: type[BaseModel], location: Location, data: Any) -> tuple[list[str], Any]:
    """The steps of `location` as text in the path, and the type it ends in."""
    steps: list[str] = []
    tp: Any = plain_type(model)
    for key in location:
        if key == "[key]":
            break
        if isinstance(tp, tuple):
            tagged_member = next((member for member in tp if key in tags_of(member)), None)
            if tagged_member is not None:
                tp = tagged_member
                continue
            tp = None
        if isinstance(key, int):
            text = f"[{_label(data, key)}]"
            tp = _item_type(tp)
        elif is_model(tp):
            field = tp.model_fields.get(key)  # Programs give fields by their names in Python.
            text, tp = key, field.annotation if field else fields_of(tp).get(key, (None, None))[1]
        elif tp is None:
            text = key
        else:
            text, tp = f"[{key}]", _item_type(tp)
        tp = plain_type(tp)
        data = child_of(data, key)
        steps.append(text)
    return steps, tp


def plain_type(tp: Any) -> Any:
    """The type without Annotated and None; a union of models becomes a tuple of them."""
    while get_origin(tp) is Annotated:
        tp = get_args(tp)[0]
    if get_origin(tp) in (Union, UnionType):
        members = tuple(plain_type(member) for member in get_args(tp) if member is not NoneType)
        return members[0] if len(members) == 1 else members
    return tp


def tags_of(tp: Any) -> tuple[Any, ...]:
    """The values of `type` that a member of a union goes by."""
    return get_args(tp.model_fields["type"].annotation) if is_model(tp) and "type" in tp.model_fields else ()


def _item_type(tp: Any) -> Any:
    arguments = get_args(tp)
    if not arguments:
        return None
    return arguments[1] if len(arguments) == 2 and arguments[1] is not Ellipsis else arguments[0]


def child_of(data: Any, key: str | int) -> Any:
    """What is at a key of a map or an index of a list; None where nothing is."""
    if isinstance(data, Mapping):
        return data.get(key)
    if isinstance(data, Sequence) and not isinstance(data, str) and isinstance(key, int) and key < len(data):
        return data[key]
    return None


def renamed(data: Any, location: Location, name: str) -> Any:
    """A copy of `data` in which the key at `location` is called `name`, in its place; None where that is there too."""
    key, *below = location
    if isinstance(data, Mapping) and key not in data:  # The tag of a union is no key.
        return renamed(data, below, name)
    if not below:
        return None if name in data else {name if entry == key else entry: value for entry, value in data.items()}
    inner = renamed(data[key], below, name)
    if inner is None or isinstance(data, Mapping):
        return inner and {**data, key: inner}
    return [inner if index == key else item for index, item in enumerate(data)]


def _label(items: Any, index: int) -> str:
    if not isinstance(items, Sequence) or isinstance(items, str):
        return str(index)
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    labels = item_labels([name if isinstance(name, str) else "" for name in names])
    return labels[index] if index < len(labels) and len(labels[index]) <= 253 else str(index)
