"""The policies on what a program registered with Pulumi's mocks: inputs stand for outputs, nothing runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_policy import EnforcementLevel, PolicyProviderResource, PolicyResource
from tests.policies.declared import options

from declared_fleets import STACKS as FOLDER
from declared_fleets import stack
from kueue_fleet_policies import RULES, ResourceRule
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.resource import Resource
from pulumi_mocks import Recorded, Recording

STACKS = sorted(path.stem.removeprefix("Pulumi.") for path in FOLDER.glob("Pulumi.*.yaml"))


@dataclass(frozen=True)
class Finding:
    """One broken rule."""

    rule: str
    level: EnforcementLevel
    resource: str
    says: str

    def __str__(self) -> str:
        return f"{self.rule} ({self.level.value}) {self.resource}: {self.says}"


def recorded(name: str) -> Recording:
    """What the program registers for the stack of that name; not to be changed."""
    return stack(name).recording


def _as_policy_resource(one: Recorded, everything: Recording) -> PolicyResource:
    source = everything.resources.get(one.provider)
    provider = PolicyProviderResource(source.type, source.inputs, source.urn, source.name) if source else None
    return PolicyResource(one.type, one.inputs, one.urn, one.name, options(one.protect), provider, None, [], {})


def estate_of(recording: Recording) -> Estate:
    """The stack as a stack policy sees it."""
    result = {one.urn: _as_policy_resource(one, recording) for one in recording}
    for one in recording:
        result[one.urn].dependencies.extend(result[urn] for urn in one.dependencies if urn in result)
        result[one.urn].property_dependencies.update(
            {key: [result[urn] for urn in urns if urn in result] for key, urns in one.property_dependencies.items()}
        )
    return Estate.of(result.values())


def findings(recording: Recording, config: Mapping[str, Mapping[str, Any]] | None = None) -> Iterator[Finding]:
    """Everything that breaks a rule."""
    estate = estate_of(recording)
    for rule in RULES:
        given = (config or {}).get(rule.name, {})
        settings = {name: value for name, value in given.items() if name != "enforcementLevel"}
        if isinstance(rule, ResourceRule):
            for one in recording:
                resource = Resource(one.type, one.name, one.urn, one.inputs, one.protect)
                for problem in rule.problems(resource, settings):
                    yield Finding(rule.name, rule.level, one.short, str(problem))
        else:
            for urn, problem in rule.problems(estate, settings):
                where = recording.resources[urn].short if urn else "stack"
                yield Finding(rule.name, rule.level, where, str(problem))
