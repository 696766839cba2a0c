"""Durations, as Go writes them.

Source: Go's time.ParseDuration; Kueue's configuration uses it through metav1.Duration.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.given import Given

_UNIT: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART: Final = re.compile(r"([0-9]+)(?:\.([0-9]*))?(ns|us|µs|ms|s|m|h)")
_WHOLE: Final = re.compile(r"([+-]?)((?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+)")
_LONGEST: Final = 100
"""Characters of a duration."""
_DAYS: Final = re.compile(r"([0-9]{1,6})(d|w)")
_HOURS: Final = {"d": 24, "w": 7 * 24}
JSON_PATTERN: Final = r"^[+-]?(0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$"
"""A duration as a JSON schema knows it."""
_NOT_VALID: Final = ("is not a valid duration", "write numbers with units, such as 90s, 30m or 1h30m")


@total_ordering
class Duration:
    """A length of time, in nanoseconds. Raises ValueError for text that is not a duration of Go."""

    __slots__ = ("_text", "nanoseconds")

    _text: str
    nanoseconds: int
    """The length; negative durations can be written, and are refused where they make no sense."""

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "nanoseconds", _parse(text))
        object.__setattr__(self, "_text", text)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Duration is immutable: {name}")

    def __reduce__(self) -> tuple[type[Duration], tuple[str]]:
        return (Duration, (self._text,))

    def __deepcopy__(self, memo: dict[int, object]) -> Duration:
        return self

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.nanoseconds / 10**9

    def __eq__(self, other: object) -> bool:
        return self.nanoseconds == other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __lt__(self, other: Duration) -> bool:
        return self.nanoseconds < other.nanoseconds if isinstance(other, Duration) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Duration({self._text!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": JSON_PATTERN}


DurationField = Given[Duration, Duration | str]
"""A field that holds a Duration, and takes one or its text."""
OptionalDurationField = Given[Duration | None, Duration | str | None]
"""The same, or None."""


def duration(text: str) -> Any:
    """The default of such a field. Untyped: to a type checker it is more than a plain value."""
    return Duration(text)


def _parse(text: str) -> int:
    if len(text) > _LONGEST:
        raise FaultError(f"is {len(text)} characters long", f"write at most {_LONGEST}")
    if text.lstrip("+-") == "0":
        return 0
    match = _WHOLE.fullmatch(text)
    days = _DAYS.fullmatch(text)
    if days is not None:
        raise FaultError("has a unit that is not supported", f"write {int(days[1]) * _HOURS[days[2]]}h")
    if match is None:
        raise FaultError(*_NOT_VALID)
    total = 0
    for whole, fraction, unit in _PART.findall(match.group(2)):
        total += int(whole) * _UNIT[unit]
        if fraction:
            total += int(fraction) * _UNIT[unit] // 10 ** len(fraction)
    if total >= 2**63:
        raise FaultError("is longer than Go can hold", "write less than 2562047h")
    return -total if match.group(1) == "-" else total


def _validate(value: object) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, bool) or not isinstance(value, str):
        if isinstance(value, int) and not isinstance(value, bool):
            raise FaultError("has no unit", f"write {value}s for seconds or {value}m for minutes").fault.error()
        raise FaultError(*_NOT_VALID).fault.error()
    try:
        return Duration(value)
    except FaultError as error:
        raise error.fault.error() from None
