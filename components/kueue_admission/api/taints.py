"""Which tolerations tolerate which taints: the rule of Kubernetes, for Kueue and for the scheduler.

Source: k8s.io/api@v0.36.3 core/v1 toleration.go (ToleratesTaint, compareNumericValues), apimachinery
pkg/api/validate/content/decimal_int.go.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

_INTEGER: Final = re.compile(r"-?[1-9][0-9]*|0")
_INT64: Final = 2**63


class TaintLike(Protocol):
    """What a taint is, however it was read."""

    @property
    def key(self) -> str:
        """Its key."""

    @property
    def value(self) -> str:
        """Its value; default empty."""

    @property
    def effect(self) -> str:
        """NoSchedule, PreferNoSchedule or NoExecute."""


class TolerationLike(Protocol):
    """What a toleration is, however it was read; each of its fields may be empty or absent."""

    @property
    def key(self) -> str | None:
        """Empty: every key."""

    @property
    def operator(self) -> str | None:
        """Empty: Equal."""

    @property
    def value(self) -> str | None:
        """What is compared."""

    @property
    def effect(self) -> str | None:
        """Empty: every effect."""


def tolerates(toleration: TolerationLike, taint: TaintLike, *, compares: bool) -> bool:
    """Whether the toleration tolerates the taint.

    `compares`: whether Gt and Lt compare numbers. Kueue always lets them (kueue@v0.19.2 flavorassigner.go); the
    scheduler only with the feature gate TaintTolerationComparisonOperators, which is alpha and off.
    """
    if (toleration.effect and toleration.effect != taint.effect) or (toleration.key and toleration.key != taint.key):
        return False
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == taint.value
    if toleration.operator == "Exists":
        return True
    bound, number = _number(toleration.value or ""), _number(taint.value)
    if not compares or bound is None or number is None:
        return False
    return (toleration.operator == "Gt" and number > bound) or (toleration.operator == "Lt" and number < bound)


def _number(text: str) -> int | None:
    """A whole number of 64 bits, written as decimal digits alone."""
    if _INTEGER.fullmatch(text) is None or len(text) > len(str(-_INT64)):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None
