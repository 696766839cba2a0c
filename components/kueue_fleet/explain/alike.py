"""Workloads that differ in names and times only: one of them is read, the others are made after it.

In: objects that say what they have in common with others. Out: what `parse_objects` makes of all of them. Where in a
Workload a name or time of the object goes is not written down here: an object is read whose values are marks, and the
marks are looked for. If that does not give the one that was read, all are read.
"""

from __future__ import annotations

import copy
import marshal
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from kueue_fleet.admission.errors import ObjectError
from kueue_fleet.admission.model import Configuration, Workload
from kueue_fleet.admission.reading.objects import Parsed, parse_objects

_FIRST_MARK: Final = 978_307_200
"""The first second of 2001: before Kueue, so that no object has these times."""
_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
_VARYING: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "ownerReferences",
    "managedFields",
    "labels",
)
_TIMES: Final = ("lastTransitionTime", "observedGeneration")
_LISTS: Final = ("conditions", "admissionChecks")
_WITHOUT_REFERENCES: Final = 2
"""The version of marshal's format in which equal data is equal bytes."""


class Readable(Protocol):
    """An object that can be read, and told apart from others."""

    common: Hashable | None
    """Equal for Workloads that differ in `values` only; None for what is to be read by itself."""
    values: Sequence[Any]
    """What may differ: names and times, always in the same order."""

    def whole(self) -> Mapping[str, Any]:
        """All fields."""

    def marked(self, marks: Sequence[str]) -> Mapping[str, Any]:
        """All fields, with these values instead of its own."""

    def text(self, value: Any) -> str | None:
        """One of `values` as text; None if it is something else."""


def parse_alike(objects: Sequence[Readable], configuration: Configuration) -> Parsed:
    """As `parse_objects`, in another order of workloads. Raises ObjectError, NotModelledError."""
    firsts: dict[Hashable, tuple[Readable, list[Readable]]] = {}
    read: list[Readable] = []
    for each in objects:
        common = each.common
        if common is None:
            read.append(each)
        elif common in firsts:
            firsts[common][1].append(each)
        else:
            firsts[common] = each, []
            read.append(each)
    groups = [(first, others) for first, others in firsts.values() if others]
    try:
        parsed = parse_objects((each.whole() for each in read), configuration)
        made, left = _make_all(groups, parsed, configuration)
        more = parse_objects((each.whole() for each in left), configuration) if left else None
    except ObjectError:
        return _parse_all(objects, configuration)
    workloads = (*parsed.workloads, *made, *(more.workloads if more is not None else ()))
    if len({workload.key for workload in workloads}) < len(workloads):
        return _parse_all(objects, configuration)
    return Parsed(parsed.objects, workloads)


def _parse_all(objects: Iterable[Readable], configuration: Configuration) -> Parsed:
    return parse_objects((each.whole() for each in objects), configuration)


def _make_all(
    groups: Iterable[tuple[Readable, Sequence[Readable]]], parsed: Parsed, configuration: Configuration
) -> tuple[list[Workload], list[Readable]]:
    """The workloads that are like the first of their group, and the objects that have to be read after all."""
    by_key = {workload.key: workload for workload in parsed.workloads}
    made: list[Workload] = []
    left: list[Readable] = []
    for first, others in groups:
        marks = [_mark(number) for number in range(len(first.values))]
        marked = parse_objects([first.marked(marks)], configuration).workloads[0]
        pattern = Pattern(marked, marks)
        one = pattern.made(first)
        if one is None or by_key.get(one.key) != one:
            left += others
            continue
        for each in others:
            workload = pattern.made(each)
            if workload is None:
                left.append(each)
            else:
                made.append(workload)
    return made, left


def _mark(number: int) -> str:
    return datetime.fromtimestamp(_FIRST_MARK + number, UTC).isoformat()


class Pattern:
    """A Workload with marks, and where they are: in its own fields and in those of its status."""

    def __init__(self, marked: Workload, marks: Sequence[str]) -> None:
        self._numbers: dict[object, int] = {mark: number for number, mark in enumerate(marks)}
        self._numbers |= {float(_FIRST_MARK + number): number for number in range(len(marks))}
        self._own, self._own_places = self._look_into(marked)
        self._status, self._status_places = self._look_into(marked.status)
        self._checks = [self._look_into(check) for check in marked.status.checks]
        self._status_type, self._check_types = type(marked.status), [type(check) for check in marked.status.checks]
        self._status_at = [field.name for field in fields(Workload)].index("status")
        self._checks_at = [field.name for field in fields(marked.status)].index("checks")
        self._times: dict[str, float] = {}

    def _look_into(self, data: Any) -> tuple[list[Any], list[tuple[int, int, bool]]]:
        """The fields of a dataclass, and which of them are marks: place, number of the value, whether it is a time."""
        assert is_dataclass(data)
        values = [getattr(data, field.name) for field in fields(data)]
        places = [
            (place, self._numbers[value], isinstance(value, float))
            for place, value in enumerate(values)
            if isinstance(value, (str, float)) and value in self._numbers
        ]
        return values, places

    def made(self, readable: Readable) -> Workload | None:
        """The workload with the values of this object; None if one of them is no name or no time."""
        try:
            own = self._filled(self._own, self._own_places, readable)
            status = self._filled(self._status, self._status_places, readable)
            if self._checks:
                status[self._checks_at] = tuple(
                    kind(*self._filled(data, places, readable))
                    for kind, (data, places) in zip(self._check_types, self._checks, strict=True)
                )
        except ValueError:
            return None
        own[self._status_at] = self._status_type(*status)
        return Workload(*own)

    def _filled(self, data: list[Any], places: list[tuple[int, int, bool]], readable: Readable) -> list[Any]:
        filled, values = data.copy(), readable.values
        for place, number, is_time in places:
            text = readable.text(values[number])
            if not text:
                raise ValueError
            filled[place] = self._time(text) if is_time else text
        return filled

    def _time(self, text: str) -> float:
        known = self._times.get(text)
        if known is None:
            known = self._times[text] = datetime.fromisoformat(text).timestamp()
        return known


class PlainObject:
    """An object as plain data."""

    __slots__ = ("_data", "common", "values")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.values: Sequence[Any] = ()
        self.common: Hashable | None = None
        if data.get("kind") == "Workload":
            with suppress(ValueError, TypeError, AttributeError):  # A field is not what it should be: it is read alone.
                self._split()

    def _split(self) -> None:
        own = {**self._data}
        metadata, status = {**own.pop("metadata")}, {**(own.pop("status", None) or {})}
        labels = {**(metadata.get("labels") or {})}
        values = [metadata.pop(name, None) for name in _VARYING]
        values[-1] = labels.pop(_JOB_UID, None)
        rest: list[Any] = [own, metadata, labels, status]
        for name in _LISTS:
            listed = status.pop(name, None) or ()
            for item in listed:
                left = {**item}
                values += [left.pop(time, None) for time in _TIMES]
                rest.append(left)
            rest.append(len(listed))
        self.values = values
        given = [value is not None for value in values]
        self.common = marshal.dumps((given, rest), _WITHOUT_REFERENCES)

    def whole(self) -> Mapping[str, Any]:
        """See `Readable`."""
        return self._data

    def marked(self, marks: Sequence[str]) -> Mapping[str, Any]:
        """See `Readable`."""
        copied: dict[str, Any] = copy.deepcopy(dict(self._data))
        metadata, status = copied["metadata"], copied.get("status") or {}
        places = [(metadata, name) for name in _VARYING[:-1]]
        places.append((metadata.get("labels") or {}, _JOB_UID))
        places += [(item, time) for name in _LISTS for item in status.get(name) or () for time in _TIMES]
        for (data, name), mark in zip(places, marks, strict=True):
            if data.get(name) is not None:
                data[name] = mark
        return copied

    def text(self, value: Any) -> str | None:
        """See `Readable`."""
        return value if isinstance(value, str) else None
