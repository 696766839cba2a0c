"""Kubernetes quantities, exactly.

`Quantity`, a value with exact arithmetic whose text is the one the API server would print.

What is beyond 2^63-1 counts as that, as in Kubernetes and Kueue: people write 1000000000Ti where there is no limit.

Source: k8s.io/apimachinery pkg/api/resource/{quantity,suffix,amount}.go. One deliberate difference: what Kubernetes
silently rounds (finer than 1n), this refuses, because a quota that is not what was typed is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache, total_ordering
from typing import Any, Final, Literal, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.given import Given

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""How an amount is written out again."""

_NANO: Final = 10**9
_MAX: Final = 2**63 - 1
_PATTERN: Final = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?")
_LONGEST: Final = 400
"""Characters of an amount: as many as the decimal digits of any float have."""
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_SUFFIX: Final = ["", *_BINARY]
_MISSPELT: Final = {"K": "k or Ki", "ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "g": "G or Gi", "t": "T or Ti"}
JSON_PATTERN: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
"""An amount as a JSON schema knows it."""


@total_ordering
class Quantity:
    """An amount of a resource: CPUs, bytes, GPUs. Compared and hashed by value: `Quantity("1") == Quantity("1000m")`.

    Raises ValueError for text that is not a valid quantity, or is finer than 1n.
    """

    __slots__ = ("_format", "_nano", "_text")

    _nano: int
    _format: Format
    _text: str

    def __init__(self, value: str | int | Decimal) -> None:
        nano, form = _parse(format(value, "f") if isinstance(value, Decimal) else str(value))
        object.__setattr__(self, "_nano", nano)
        object.__setattr__(self, "_format", form)

    @classmethod
    def _of(cls, nano: int, form: Format) -> Quantity:
        quantity = cls.__new__(cls)
        object.__setattr__(quantity, "_nano", nano)
        object.__setattr__(quantity, "_format", form)
        return quantity

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Quantity is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Quantity is immutable: {name}")

    def __reduce__(self) -> tuple[type[Quantity], tuple[str]]:
        return (Quantity, (str(self),))

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Quantity:
        return self

    @property
    def decimal(self) -> Decimal:
        """The amount as an exact decimal number of the resource's own unit (CPUs, bytes, pieces)."""
        return Decimal(self._nano).scaleb(-9)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up, as Kueue counts CPU."""
        return max(-_MAX, min(-(-self._nano // 10**6), _MAX))

    @property
    def value(self) -> int:
        """The amount in whole units, rounded up, as Kueue counts everything but CPU."""
        return max(-_MAX, min(-(-self._nano // _NANO), _MAX))

    def counted(self, resource: str) -> int:
        """The amount as Kueue and the scheduler count the resource: CPU in thousandths, all else in whole units."""
        return self.milli if resource == "cpu" else self.value

    def __add__(self, other: Quantity) -> Quantity:
        """The exact sum. The text keeps the left side's notation unless that is zero (quantity.go, Add)."""
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity._of(self._nano + other._nano, self._format if self._nano else other._format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity._of(self._nano - other._nano, self._format if self._nano else other._format)

    @classmethod
    def total(cls, amounts: Iterable[Quantity]) -> Quantity:
        """The exact sum of all `amounts`, in the notation of the first that is not zero."""
        nano, form = 0, None
        for amount in amounts:
            nano += amount._nano
            form = form or (amount._format if amount._nano else None)
        return cls._of(nano, form or "DecimalSI")

    def with_headroom(self, percent: int) -> Quantity:
        """This amount times (100 + `percent`) / 100, rounded up; unchanged when `percent` is 0.

        Rounded to a whole unit; an amount written with a binary suffix, from 1Mi on, to a whole Mi.
        """
        if percent == 0:
            return self
        unit = _NANO * 2**20 if self._format == "BinarySI" and self._nano >= _NANO * 2**20 else _NANO
        return Quantity._of(-(-self._nano * (100 + percent) // (100 * unit)) * unit, self._format)

    def __eq__(self, other: object) -> bool:
        return self._nano == other._nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self._nano < other._nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._nano)

    def __bool__(self) -> bool:
        return self._nano != 0

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        """The canonical text: no fraction, the largest suffix that keeps it exact (quantity.go, CanonicalizeBytes)."""
        try:
            return self._text
        except AttributeError:
            object.__setattr__(self, "_text", self._canonical())
            return self._text

    @property
    def plain(self) -> str:
        """As people write it: 7000 and 32Gi, where `str` has 7k, as Kubernetes prints it."""
        return str(self._nano // _NANO) if self._format == "DecimalSI" and self._nano % _NANO == 0 else str(self)

    def _canonical(self) -> str:
        nano = self._nano
        if self._format == "BinarySI" and abs(nano) >= 1024 * _NANO and nano % _NANO == 0:
            mantissa, power = nano // _NANO, 0
            while mantissa % 1024 == 0 and power < 6:
                mantissa, power = mantissa // 1024, power + 1
            return f"{mantissa}{_BINARY_SUFFIX[power]}"
        if nano == 0:
            return "0"
        mantissa, exponent = nano, -9
        while mantissa % 1000 == 0 and exponent < 18:
            mantissa, exponent = mantissa // 1000, exponent + 3
        if self._format == "DecimalExponent":
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": JSON_PATTERN}]}


_NOT_VALID: Final = ("is not a valid quantity", 'write a number with an optional suffix, such as 4, "500m" or "64Gi"')


@lru_cache(4096)
def _parse(text: str) -> tuple[int, Format]:
    if len(text) > _LONGEST:
        raise FaultError(f"is {len(text)} characters long", f"write at most {_LONGEST}")
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise _explain(text)
    sign, digits, suffix = match.group(1), match.group(2), match.group(3) or ""
    form: Format = "DecimalSI"
    times, power = 1, 9
    if suffix in _BINARY:
        form, times = "BinarySI", 1024 ** _BINARY[suffix]
    elif suffix[:1] in ("e", "E") and len(suffix) > 1:
        form, power = "DecimalExponent", 9 + int(suffix[1:])
    else:
        power = 9 + _DECIMAL[suffix]
    whole, _, fraction = digits.partition(".")
    power -= len(fraction)
    numerator = int(whole + fraction) * times
    nano, rest = (numerator * 10**power, 0) if power >= 0 else divmod(numerator, 10**-power)
    if rest:
        raise FaultError("is finer than 1n, the smallest quantity", "write fewer digits")
    if form == "BinarySI":
        nano = min(nano, _MAX * _NANO)
    return (-nano if sign == "-" else nano), form


def _explain(text: str) -> FaultError:
    """Why `text` is not a valid quantity, for the mistakes people make."""
    squeezed_text = text.replace(" ", "")
    if squeezed_text != text and _PATTERN.fullmatch(squeezed_text):
        return FaultError("has a space in it", f"write {squeezed_text}")
    if text[-1:] in ("B", "b") and _PATTERN.fullmatch(text[:-1]):
        return FaultError(f"ends in {text[-1]!r}, which is not a suffix of a quantity", f"write {text[:-1]}")
    for wrong, right in _MISSPELT.items():
        if text.endswith(wrong) and _PATTERN.fullmatch(text[: -len(wrong)]):
            return FaultError(f"ends in {wrong!r}, which is not a suffix of a quantity", f"write {right}")
    if "," in text and _PATTERN.fullmatch(text.replace(",", "")):
        decimal = re.match(r"[0-9]+,(?![0-9]{3})[0-9]+[A-Za-z]*$|0,", text)
        return FaultError("has a comma in it", f"write {text.replace(',', '.') if decimal else 'the number without'}")
    return FaultError(*_NOT_VALID)


def _validate(value: object) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FaultError(*_NOT_VALID).fault.error()
    try:
        return Quantity(Decimal(repr(value)) if isinstance(value, float) else value)
    except FaultError as error:
        raise error.fault.error() from None


ZERO: Final = Quantity(0)
"""Nothing."""

_Key = TypeVar("_Key", bound=str)

QuantityField = Given[Quantity, Quantity | int | str]
"""A field that holds a Quantity, and takes one, a number or text."""
OptionalQuantityField = Given[Quantity | None, Quantity | int | str | None]
"""The same, or None."""
QuantityMapField = Given[Mapping[_Key, Quantity], Mapping[_Key, Quantity | int | str]]
"""A field of such amounts by name."""
OptionalQuantityMapField = Given[Mapping[_Key, Quantity] | None, Mapping[_Key, Quantity | int | str] | None]
"""The same, or None."""

ONE: Final[Any] = Quantity(1)
"""Default of a weight; not typed either."""
