"""Amounts of resources as plain integers.

CPU is counted in thousandths, everything else in whole units, as Kueue counts them. `UNLIMITED` is far above every
int64, so that sums and differences of it stay far above: `UNLIMITED - 5` is still unlimited, `5 - UNLIMITED` is
negative, `UNLIMITED - UNLIMITED` is 0. Ordinary integer arithmetic therefore gives Kueue's answers, which get them from
a saturating type; only what leaves the core is cut to int64 by `to_int64`.

Source: kueue@v0.19.2 pkg/resources/{amount,requests,resource_formatter}.go.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from kueue_admission.kernel.quantity import Quantity

MAX_INT64: Final = 2**63 - 1
"""Largest amount that Kueue's own arithmetic holds; sums stop there."""
MIN_INT64: Final = -(2**63)
"""Smallest amount that Kueue's own arithmetic holds; differences stop there."""
UNLIMITED: Final = 1 << 100
"""More than any amount, where there is no limit."""

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def is_unlimited(amount: int) -> bool:
    """Whether Kueue prints and treats `amount` as unlimited: it no longer fits in an int64."""
    return amount >= MAX_INT64


def to_int64(amount: int) -> int:
    """`amount` cut to the range of an int64."""
    return max(MIN_INT64, min(MAX_INT64, amount))


def quota_amount(resource: str, quantity: Quantity) -> int:
    """A quota or limit; `UNLIMITED` when it does not fit in an int64 of the resource's unit."""
    value = quantity.counted(resource)
    return UNLIMITED if value >= _QUOTA_CEILING[resource == "cpu"] else value


_QUOTA_CEILING: Final = {True: MAX_INT64 // 1000 * 1000, False: MAX_INT64}


def request_amount(resource: str, quantity: Quantity) -> int:
    """What one container or pod asks for, cut to an int64."""
    return to_int64(quantity.counted(resource))


def times(amount: int, count: int) -> int:
    """`amount * count`, cut to an int64 (requests never become unlimited by counting pods)."""
    return to_int64(amount * count)


def format_amount(resource: str, amount: int) -> str:
    """The text of an amount in Kueue's messages: `<unlimited>`, or a canonical quantity."""
    return "<unlimited>" if is_unlimited(amount) else format_request(resource, amount)


@lru_cache(maxsize=4096)
def format_request(resource: str, value: int) -> str:
    """The text of a bounded value: CPU as cores, bytes with a binary suffix where that is exact."""
    if resource == "cpu":
        return str(Quantity(f"{value}m"))
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        mantissa, power = value, 0
        while mantissa and mantissa % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
            mantissa, power = mantissa // 1024, power + 1
        if power:
            return f"{mantissa}{_BINARY_SUFFIXES[power]}"
    return str(Quantity(value))


@cache
def resource_order(resource: str) -> tuple[int, str]:
    """Sort key that puts resources in the order Kueue walks them: by 64-bit FNV-1a of the name, then the name.

    The order decides which resource of a group is looked at first, and so from which flavor the scan resumes.
    Source: kueue@v0.19.2 pkg/resources/slice_requests.go.
    """
    digest = 0xCBF29CE484222325
    for byte in resource.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest, resource
