"""The rules of several modules, by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import ModuleType

from kueue_admission.kernel.problem import Rule


def rules_of(module: ModuleType) -> list[Rule]:
    """The rules that are constants of a module."""
    return [constant for constant in vars(module).values() if isinstance(constant, Rule)]


def by_code(*areas: Iterable[Rule]) -> dict[str, Rule]:
    """The rules of several areas, by code. Raises ValueError for codes that are there twice."""
    rules = [rule for area in areas for rule in area]
    twice = [code for code, count in Counter(rule.code for rule in rules).items() if count > 1]
    if twice:
        raise ValueError(f"rules with one code: {', '.join(twice)}")
    return {rule.code: rule for rule in rules}
