"""Reading on past what cannot be read.

In: plain data that may not fit the fleet's models. Out: every problem of reading it, and, where there is enough to go
on with, a fleet in which stand-ins replace what could not be read, with the paths of those. So one mistake hides no
other; `check.scope` keeps the rules quiet about what a stand-in would cause.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kueue_fleet.spec.base import DEFER_RULES
from kueue_fleet.spec.check.scope import SECTIONS, UNREAD
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.messages import errors_in, explain, replacement
from kueue_fleet.spec.problem import Problem
from kueue_fleet.spec.quantity import Quantity
from kueue_fleet.spec.schemapath import Location, is_model, model_at, plain_type, readable

_ROUNDS: Final = 8
"""A renamed field can bring new problems to light, a few levels deep."""
_REMOVED: Final = object()
_TEXTS: Final = {
    "region": "us-central1",
    "zone": "us-central1-a",
    "rotateBy": "2999-01-01",
    "start": "2999-01-01T00:00:00Z",
    "end": "2999-01-01T01:00:00Z",
    "duration": "24h",
    "cidr": "10.0.0.0/8",
}
"""Stand-ins that fit where any other text does not."""


@dataclass
class Reading:
    """What came of reading some data."""

    fleet: FleetSpec | None
    problems: list[Problem] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    """Paths where a stand-in is, or nothing."""
    declared: dict[str, list[str]] = field(default_factory=dict)
    """Names of all entries, those that could not be read too, by section."""


def read_fleet(data: Any) -> Reading:
    """Read `data`, plain data as YAML or JSON gives it."""
    reading = Reading(None, declared=_declared(data))
    original, data, copied = data, data, False
    for _ in range(_ROUNDS):
        try:
            reading.fleet = FleetSpec.model_validate(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
        except ValidationError as error:
            details = errors_in(error)
            if not isinstance(data, Mapping):
                reading.problems += [problem for detail in details for problem in explain(detail, FleetSpec, original)]
                return reading
            if not copied:
                data, copied = copy.deepcopy(data), True
            _repair(data, details, reading)
        else:
            return reading
    return reading


def _declared(data: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        items = data.get(section) if isinstance(data, Mapping) else None
        if isinstance(items, Sequence) and not isinstance(items, str):
            names = [item.get("name") if isinstance(item, Mapping) else item for item in items]
            found[section] = [name for name in names if isinstance(name, str)]
    return found


def _repair(data: Any, details: Sequence[ErrorDetails], reading: Reading) -> None:
    """Report each error, and replace what it is about."""
    meant = {
        (*detail["loc"][:-1], replacement(str(detail["loc"][-1]), model_at(FleetSpec, detail["loc"][:-1], data)))
        for detail in details
        if detail["type"] == "extra_forbidden"
    }
    paths = [readable(FleetSpec, _plain(detail["loc"], data), data) for detail in details]
    for detail, path in zip(details, paths, strict=True):
        if not (detail["type"] == "missing" and detail["loc"] in meant) and path not in reading.unread:
            reading.problems += explain(detail, FleetSpec, data)
    for detail, path in zip(details, paths, strict=True):
        location = _plain(detail["loc"], data)
        parent = _at(data, location[:-1])
        if detail["type"] == "extra_forbidden":
            _rename(parent, str(location[-1]), model_at(FleetSpec, location[:-1], data))
        elif not (detail["type"] == "missing" and detail["loc"] in meant):
            again = path in reading.unread
            reading.unread.add(path)
            if again:
                _give_up(data, location, reading)
            else:
                _replace(parent, detail["loc"], data)
    _drop_removed(data)


def _give_up(data: Any, location: Location, reading: Reading) -> None:
    """Leave out the entry, or the section, that no stand-in fits."""
    short = location[:2] if len(location) > 1 and isinstance(location[1], int) else location[:1]
    reading.unread.add(readable(FleetSpec, short, data))
    parent = _at(data, short[:-1])
    if isinstance(parent, list) and isinstance(short[-1], int):
        parent[short[-1]] = _REMOVED
    elif isinstance(parent, dict):
        parent.pop(short[-1], None)


def _plain(location: Location, data: Any) -> tuple[str | int, ...]:
    """The location without the tag of a union and without the mark of a map's key."""
    plain: list[str | int] = []
    here = data
    for key in location:
        if key == "[key]":
            break
        if isinstance(here, Mapping) and key not in here and here.get("type") == key:
            continue
        plain.append(key)
        here = _child(here, key)
    return tuple(plain)


def _at(data: Any, location: Location) -> Any:
    for key in location:
        data = _child(data, key)
    return data


def _child(data: Any, key: str | int) -> Any:
    if isinstance(data, Mapping):
        return data.get(key)
    return data[key] if isinstance(data, list) and isinstance(key, int) and key < len(data) else None


def _rename(parent: Any, name: str, model: Any) -> None:
    """Put an unknown field's value where it was meant to be, if that is plain; else drop it."""
    if not isinstance(parent, dict) or name not in parent:
        return
    value = parent.pop(name)
    meant = replacement(name, model)
    if meant is not None and meant not in parent:
        parent[meant] = value


def _replace(parent: Any, location: Location, data: Any) -> None:
    """Put a stand-in at `location`, or nothing where that is allowed."""
    key = location[-1]
    text = f"{UNREAD}{'-'.join(str(step) for step in location if isinstance(step, int)) or 0}"
    if isinstance(parent, list) and isinstance(key, int):
        item = model_at(FleetSpec, location, data)
        fits = is_model(item) and isinstance(parent[key], dict)
        parent[key] = _stand_in(item, str(key), text) if fits else _REMOVED
        return
    if not isinstance(parent, dict):
        return
    model = model_at(FleetSpec, location[:-1], data)
    info = next((f for f in model.model_fields.values() if f.alias == key), None) if is_model(model) else None
    if info is None or not info.is_required():
        parent.pop(key, None)
    else:
        parent[key] = _stand_in(plain_type(info.annotation), str(key), text)


def _stand_in(tp: Any, key: str, text: str) -> Any:
    """A value that a field `key` of type `tp` accepts: `text`, where that is text."""
    if isinstance(tp, tuple):
        tp = tp[0]
    if is_model(tp):
        model: type[BaseModel] = tp
        return {
            info.alias or name: _stand_in(plain_type(info.annotation), info.alias or name, text)
            for name, info in model.model_fields.items()
            if info.is_required()
        }
    if get_origin(tp) is Literal:
        return get_args(tp)[0]
    if get_origin(tp) is tuple:
        return [] if key == "clusters" else [_stand_in(plain_type(get_args(tp)[0]), "name", text)]
    if tp is Quantity:
        return 0
    if tp is int:
        return 1
    if tp is bool:
        return False
    return _TEXTS.get(key, text) if not get_origin(tp) else {}


def _drop_removed(data: Any) -> None:
    """Take the removed items out of every list, once all errors of a round are dealt with."""
    if isinstance(data, dict):
        for value in data.values():
            _drop_removed(value)
    elif isinstance(data, list):
        data[:] = [item for item in data if item is not _REMOVED]
        for value in data:
            _drop_removed(value)
