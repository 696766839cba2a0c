"""Settings, field by field: what is new, what is removed, and what becomes something else.

Items of lists are paired by their name. Nothing is printed as JSON: values of several fields are printed in words,
without what is as by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kueue_fleet.diff.difference import Difference
from kueue_fleet.fleet_file.in_words import fields_in_words, in_words, listed
from kueue_fleet.fleet_file.model.fleet import FleetSpec

# What a team may use, lend or borrow is printed as it ends up on each cluster.
_QUOTA_FIELDS: Final = frozenset({"nominalQuota", "borrowingLimit", "lendingLimit", "perCluster"})
_POOL_SIZES: Final = frozenset({"nodeCount", "totalMinNodeCount", "totalMaxNodeCount", "machineType", "type", "count"})
_EVERYTHING: Final = {
    "allowedRegions": "any region",
    "clusters": "every cluster that runs jobs",
    "managedResources": "every resource",
    "onFlavors": "every flavor",
    "allowedPriorityClasses": "all but the highest of each kind",
    "queues": "every queue on a worker",
    "workers": "every worker",
}
"""What lists of names in a section stand for where they are not there."""
_MOST_FIELDS: Final = 8
"""Of a new or removed entry, so many fields are printed; the file has the rest."""


class _Value(NamedTuple):
    """A value of a file, whole and without defaults."""

    whole: Any
    short: Any

    def child(self, key: Any) -> _Value:
        return _Value(_get(self.whole, key), _get(self.short, key))


_ABSENT: Final = _Value(None, None)


def compare_fields(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Every field that differs, but those of quotas and of the size of node pools."""
    return _compare(_value(old), _value(new), "")


def _value(fleet: FleetSpec) -> _Value:
    short = fleet.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return _Value(fleet.wire(), short)


def _compare(old: _Value, new: _Value, path: str) -> Iterator[Difference]:
    if old.whole == new.whole:
        return
    if isinstance(old.whole, Mapping) and isinstance(new.whole, Mapping):
        for key in dict.fromkeys((*old.whole, *new.whole)):
            if not _is_told(path, str(key)):
                yield from _compare(old.child(key), new.child(key), f"{path}.{key}" if path else str(key))
        return
    section, _, field = path.rpartition(".")
    if section and field in _EVERYTHING and None in (old.short, new.short):
        sides = (_EVERYTHING[field] if side.short is None else _only(side) for side in (old, new))
        yield Difference("settings", path, " -> ".join(sides))
        return
    before, after = _named(old), _named(new)
    if before is not None and after is not None:
        for name in dict.fromkeys((*before, *after)):
            yield from _compare(before.get(name, _ABSENT), after.get(name, _ABSENT), f"{path}[{name}]")
        shared_names = [[name for name in side if name in other] for side, other in ((before, after), (after, before))]
        if shared_names[0] != shared_names[1]:
            yield Difference("settings", path, f"order: {', '.join(shared_names[0])} -> {', '.join(shared_names[1])}")
        return
    yield Difference("settings", path, _change(old, new))


def _is_told(path: str, key: str) -> bool:
    """Whether `compare_quotas` or `compare_capacity` has told it as it ends up on each cluster."""
    in_quota = key in _QUOTA_FIELDS and path.startswith("clusterQueues[") and ".manager" not in path
    of_pool = path.startswith("nodePools[") and not path.endswith((".labels", ".capacity"))
    return in_quota or (key in _POOL_SIZES and of_pool)


def _named(side: _Value) -> dict[str, _Value] | None:
    """Maps of a list by what tells them apart; None for other values. A list that is not there is an empty one."""
    items = side.whole
    if items is None:
        return {}
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return None
    return {_label(item, number, items): side.child(number) for number, item in enumerate(items)}


def _label(item: Mapping[str, Any], number: int, items: list[Any]) -> str:
    """The name, of a LocalQueue with its namespace; else the index."""
    if "namespace" in item:
        return f"{item['namespace']}/{item['name']}"
    name = item.get("name", number)
    return str(number if any(other is not item and other.get("name") == name for other in items) else name)


def _get(side: Any, key: Any) -> Any:
    if isinstance(side, Mapping):
        return side.get(key)
    return side[key] if isinstance(side, list) and isinstance(key, int) and key < len(side) else None


def _change(old: _Value, new: _Value) -> str:
    if isinstance(old.whole, list) and isinstance(new.whole, list):
        return _of_lists(old.whole, new.whole)
    if old.whole is None:
        words = _words(new)
        return f"new: {words}" if words else "new"
    if new.whole is None:
        words = _words(old)
        return f"removed: {words}" if words else "removed"
    return f"{_words(old)} -> {_words(new)}"


def _only(side: _Value) -> str:
    return f"{_words(side)} only" if side.whole else _words(side)


def _of_lists(old: list[Any], new: list[Any]) -> str:
    added_items, removed_items = (
        [item for item in one if item not in other] for one, other in ((new, old), (old, new))
    )
    parts = [
        f"{verb} {listed([*map(in_words, items)])}"
        for verb, items in (("adds", added_items), ("removes", removed_items))
        if items
    ]
    return " and ".join(parts) or f"order: {', '.join(map(in_words, old))} -> {', '.join(map(in_words, new))}"


def _words(value: _Value) -> str:
    """The value in words; of one with fields, those that are not as by default."""
    if isinstance(value.whole, Mapping):
        fields = value.short if isinstance(value.short, Mapping) else {}
        words = fields_in_words(fields)
        if not words and "name" in fields:
            words = [f"name {fields['name']}"]
        more = len(words) - _MOST_FIELDS
        return ", ".join(words[:_MOST_FIELDS]) + (f" and {more} more fields" if more > 0 else "")
    return in_words(value.whole)
