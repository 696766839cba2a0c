"""The rules of any file, and of Kueue's objects, by name: `form_rules.csv` has the rest of each.

Codes of the first kind begin with KF5, of the second with KF7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pydantic_core import PydanticCustomError

from kueue_admission.forms.problem import Problem, Rule, rules_in

FORM_RULES: Final = rules_in(__package__, "form_rules.csv")
"""All of them, by code."""

REMOVED_FIELD = FORM_RULES["KF501"]
UNKNOWN_FIELD = FORM_RULES["KF502"]
UNKNOWN_NAME = FORM_RULES["KF503"]
MISSING = FORM_RULES["KF504"]
WRONG_TYPE = FORM_RULES["KF507"]
NOT_ALLOWED = FORM_RULES["KF508"]
BAD_SYNTAX = FORM_RULES["KF509"]
BAD_AMOUNT = FORM_RULES["KF510"]
OUT_OF_RANGE = FORM_RULES["KF511"]
LISTED_TWICE = FORM_RULES["KF512"]
EXCLUDED = FORM_RULES["KF513"]
NEEDED = FORM_RULES["KF514"]
WRONG_ORDER = FORM_RULES["KF515"]
MISSPELT = FORM_RULES["KF516"]
NO_PROJECT = FORM_RULES["KF517"]
COVERED = FORM_RULES["KF701"]
COVERED_TWICE = FORM_RULES["KF702"]
WHOLE_UNITS = FORM_RULES["KF703"]
UNUSUAL_UNITS = FORM_RULES["KF753"]
BYTES = FORM_RULES["KF704"]
LIMIT_WITHOUT_COHORT = FORM_RULES["KF705"]
LENDING = FORM_RULES["KF706"]
NO_QUOTA_ON_FLAVOR = FORM_RULES["KF707"]
CONCURRENT_ADMISSION = FORM_RULES["KF708"]
CHECKS_EXCLUDE = FORM_RULES["KF709"]
LOWEST_LEVEL = FORM_RULES["KF710"]
OBJECT_KIND = FORM_RULES["KF711"]
BACKOFF = FORM_RULES["KF712"]
YAML = FORM_RULES["KF518"]
UNREADABLE_FILE = FORM_RULES["KF904"]
JOB = FORM_RULES["KF905"]
JOB_NEVER_STARTS = FORM_RULES["KF906"]
JOB_UNKNOWN = FORM_RULES["KF907"]
COHORT_CYCLE = FORM_RULES["KF714"]
OBJECT = FORM_RULES["KF916"]
NOT_MODELLED = FORM_RULES["KF917"]
OPTION = FORM_RULES["KF918"]
NO_WORKLOAD = FORM_RULES["KF921"]


class Fault(NamedTuple):
    """What is wrong with one value, wherever it stands."""

    wrong: str
    """A clause that follows the value, such as `is longer than 63 characters`."""
    fix: str
    """What to do, as an instruction."""
    rule: Rule = BAD_SYNTAX

    def __str__(self) -> str:
        return f"{self.wrong}; {self.fix}"

    def error(self) -> PydanticCustomError:
        """What a validator raises for it."""
        return PydanticCustomError("fault", "{text}", {"text": str(self), "fault": self})


class FaultError(ValueError):
    """A value cannot be used, for the reason that `fault` gives."""

    def __init__(self, wrong: str, fix: str) -> None:
        self.fault = Fault(wrong, fix, BAD_AMOUNT)
        super().__init__(str(self.fault))


def listed_twice(path: str, value: str, noun: str) -> Problem:
    """The problem of a value that a list has before; `noun` is what messages call one."""
    return LISTED_TWICE.at(path, f"{value} is listed twice", f"list each {noun} once")


def syntax_problems(path: str, value: str, check: Callable[[str], Fault | None]) -> Iterator[Problem]:
    """The problem of a value at `path` that a function of `syntax` refuses, if it does."""
    fault = check(value)
    if fault is not None:
        yield fault.rule.at(path, f'"{value}" {fault.wrong}', fault.fix)
