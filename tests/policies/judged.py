"""What a rule says about resources that a program declares."""

from __future__ import annotations

from typing import Any

from tests.policies.declared import Declared, as_input, as_stack, cluster, provider

from kueue_fleet_policies import RULES, ResourceRule, StackRule
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.resource import Resource

BY_NAME = {rule.name: rule for rule in RULES}


def says(rule: str, declared: Declared, **config: Any) -> list[str]:
    """About one resource."""
    result = BY_NAME[rule]
    assert isinstance(result, ResourceRule)
    return [str(problem) for problem in result.problems(Resource.of(as_input(declared)), config)]


def stack_says(rule: str, *declared: Declared, owner: Declared | None = None) -> list[str]:
    """About a stack with one cluster, called c, and its provider, called p."""
    result = BY_NAME[rule]
    assert isinstance(result, StackRule)
    everything = (owner or cluster("c"), provider("p", "c"), *declared)
    return [str(problem) for _, problem in result.problems(Estate.of(as_stack(everything)))]


def gcp(kind: str, **props: Any) -> Declared:
    """A resource of Google Cloud; `kind` is a type token without `gcp:`."""
    return Declared(f"gcp:{kind}", "x", props)
