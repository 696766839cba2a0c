"""Properties of a resource as plain data, with what is not known yet as `UNKNOWN`.

Dicts, lists and scalars in which such a value is `UNKNOWN`, so that a rule judges what is known and leaves the rest to
the update, when everything is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from pulumi_policy import proxy
from pulumi_policy.secret import Secret

from kueue_admission.kernel.unknown import UNKNOWN

_TARGET: Final = "__target"
_UNKNOWN_MARKS: Final = frozenset(
    {
        proxy.UNKNOWN_BOOLEAN_VALUE,
        proxy.UNKNOWN_NUMBER_VALUE,
        proxy.UNKNOWN_STRING_VALUE,
        proxy.UNKNOWN_ARRAY_VALUE,
        proxy.UNKNOWN_ASSET_VALUE,
        proxy.UNKNOWN_ARCHIVE_VALUE,
        proxy.UNKNOWN_OBJECT_VALUE,
    }
)


def plain(value: Any) -> Any:
    """`value` without pulumi-policy's proxies: dicts, lists, scalars; unknowns as `UNKNOWN`, secrets opened."""
    if isinstance(value, Secret):
        return plain(value.value)
    if isinstance(value, str):
        return UNKNOWN if value in _UNKNOWN_MARKS else value
    if isinstance(value, Mapping):
        target = _target_of(value)
        return {key: plain(target[key]) for key in target if not str(key).startswith("__")}
    if isinstance(value, list) or _is_list_proxy(value):
        return [plain(item) for item in _target_of(value)]
    return value


def unwrapped(value: Any) -> Any:
    """A copy of `value` for a remediation to change and return, secrets marked and unknowns as the engine has them."""
    if isinstance(value, Secret):
        return Secret(unwrapped(value.value))
    if isinstance(value, Mapping):
        target = _target_of(value)
        return {key: unwrapped(target[key]) for key in target}
    if isinstance(value, list) or _is_list_proxy(value):
        return [unwrapped(item) for item in _target_of(value)]
    return copy.copy(value)


def _is_list_proxy(value: Any) -> bool:
    return type(value).__module__.startswith("pulumi_policy.") and hasattr(value, "__len__")


def _target_of(value: Any) -> Any:
    if type(value).__module__.startswith("pulumi_policy."):
        return value[_TARGET]
    return value


def at(value: Any, path: str) -> Any:
    """What lies at a dotted `path`; None where nothing does, `UNKNOWN` where that depends on an unknown value.

    A list in between is read by its first item, as Pulumi has some objects of Terraform that occur once.
    """
    for key in path.split("."):
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, Mapping):
            return UNKNOWN if value is UNKNOWN else None
        value = value.get(key)
    return value


def truth(value: Any) -> Any:
    """`value` as true or false, for it may be text; None and `UNKNOWN` as they are."""
    if isinstance(value, str):
        return value.lower() == "true"
    return value if value is None or value is UNKNOWN else bool(value)


def number(value: Any) -> float | None:
    """`value` as a number, for it may be text; None if it is none, or not known."""
    if value is None or value is UNKNOWN or isinstance(value, bool):
        return None
    try:
        return float(cast("float | str", value))
    except (TypeError, ValueError):
        return None


def items(value: Any) -> list[Any]:
    """The known items of a list; none if it is absent or not known, one if it is a single object."""
    if value is None or value is UNKNOWN:
        return []
    return [item for item in (value if isinstance(value, list) else [value]) if item is not UNKNOWN]


def entries(value: Any) -> dict[str, Any]:
    """The known entries of a mapping; none if it is absent or not known."""
    return {key: item for key, item in value.items() if item is not UNKNOWN} if isinstance(value, Mapping) else {}


def objects_in(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and content of every known object in `value`, from the outside in."""
    if isinstance(value, Mapping):
        yield path, value
        for key, item in value.items():
            yield from objects_in(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects_in(item, f"{path}[{index}]")
