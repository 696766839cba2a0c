"""Checks of the form "this property is, or is not, such a value", for rules that say no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, Remedy, ResourceCheck, Settings

Wrong = Callable[[Resource, str], bool]
"""Whether the property of a resource at a path breaks the rule."""

is_on: Wrong = Resource.is_on
"""It is known to be true."""
is_off: Wrong = Resource.is_off
"""It is known not to be true: false, or absent."""
lacks: Wrong = Resource.lacks
"""There is certainly nothing."""


def is_false(resource: Resource, path: str) -> bool:
    """It is known to be false, not just absent."""
    return resource.flag(path) is False


def standard(wrong: Wrong) -> Wrong:
    """The same of Standard clusters only."""
    return lambda resource, path: resource.standard and wrong(resource, path)


def prohibit(wrong: Wrong, path: str, said: str, fix: str) -> ResourceCheck:
    """A check for which a resource breaks the rule where the property at `path` is `wrong`."""

    def check(resource: Resource, _: Settings) -> Iterator[Breach]:
        if wrong(resource, path):
            yield Breach(path, said, fix)

    return check


def put(path: str, value: Any) -> Remedy:
    """A remedy that sets the property at `path`, and leaves all beside it."""

    def remedy(props: dict[str, Any]) -> None:
        *above, name = path.split(".")
        for part in above:
            props[part] = props = {**(props.get(part) or {})}
        props[name] = value

    return remedy
