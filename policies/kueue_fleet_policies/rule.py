"""What a rule is, and how it becomes a policy of Pulumi.

A rule never reads an unknown value, so a mandatory rule blocks in a preview too; what a preview cannot know is judged
again by `pulumi up`, before the resource is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyComplianceFramework,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from kueue_fleet.google.resource_types import STACK
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.inputs import SeenInputs
from kueue_fleet_policies.resource import Resource, kubernetes_type, patched_type
from kueue_fleet_policies.values import unwrapped

CIS_NAME: Final = "CIS Google Kubernetes Engine (GKE) Benchmark"
"""The benchmark that rules with a number are from."""
CIS_VERSION: Final = "1.9"
"""Its version."""

Option = Mapping[str, Any]
"""JSON schema of one setting of a rule, with its default."""


EXEMPTIONS: Final = "exemptions"
"""Name of the setting, which every rule has."""
EXEMPTIONS_SCHEMA: Final[Option] = {
    "type": "array",
    "description": "Resources that the rule leaves alone, each by its Pulumi name or URN, with the reason.",
    "items": {
        "type": "object",
        "properties": {
            "resource": {"type": "string", "minLength": 1, "pattern": "^[^*]+$"},
            "reason": {"type": "string", "minLength": 10},
        },
        "required": ["resource", "reason"],
        "additionalProperties": False,
    },
    "default": [],
}
"""What the setting may say."""


class Settings:
    """The settings of a rule as configured, with its defaults for the rest."""

    def __init__(self, options: Mapping[str, Option], config: Mapping[str, Any] | None) -> None:
        self._values: dict[str, Any] = {name: option.get("default") for name, option in options.items()}
        self._values |= config or {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def today(self) -> date:
        """The day in UTC."""
        return datetime.now(UTC).date()  # noqa: TID251  (the pack is a program, and judges now)

    def whole(self, name: str) -> int:
        """A whole number; the engine hands them over as floats."""
        return int(self._values[name])

    def names(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._values[name])

    def exemption(self, resource: Resource) -> str | None:
        """Why the resource is exempt by configuration, if it is."""
        for entry in self._values.get(EXEMPTIONS) or ():
            if entry["resource"] in (resource.name, resource.urn):
                return str(entry["reason"])
        return None


@dataclass(frozen=True, slots=True)
class Breach:
    """What breaks a rule: a property, what is wrong with it, and what to do."""

    path: str
    """Of the property; empty: the whole."""
    wrong: str
    fix: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.path, f"{self.wrong}; {self.fix}")))


ResourceCheck = Callable[[Resource, Settings], Iterable[Breach]]
"""Finds what breaks a rule in one resource."""
StackCheck = Callable[[Estate, Settings], Iterable[tuple[Resource | None, Breach]]]
"""Finds what breaks a rule in a whole stack."""
Remedy = Callable[[dict[str, Any]], None]
"""Changes the properties of a resource that breaks the rule so that it keeps it."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: what it asks for, why, and how hard it insists."""

    name: str
    """Such as `gke-private-nodes`; also what the configuration calls it."""
    asks: str
    """What must be, in one sentence: the headline of what Pulumi reports."""
    source: str
    """Where the rule comes from: a page."""
    group: str
    """Module it is in, for the table of rules."""
    level: EnforcementLevel = EnforcementLevel.MANDATORY
    severity: Severity = Severity.MEDIUM
    cis: str | None = None
    """Number in the CIS GKE Benchmark 1.9."""
    options: Mapping[str, Option] = field(default_factory=dict)
    """Settings of its own; every rule has `exemptions` too."""
    exempts: str = ""
    """Which resources the rule itself leaves alone, and why."""

    @property
    def schema(self) -> dict[str, Option]:
        """Every setting."""
        return {**self.options, EXEMPTIONS: EXEMPTIONS_SCHEMA}

    @property
    def remediable(self) -> bool:
        """Whether level `remediate` repairs what breaks it."""
        return False

    def settings(self, config: Mapping[str, Any] | None = None) -> Settings:
        """Its settings, with `config` over the defaults.

        Raises:
            ValueError: a setting that the rule does not have; Pulumi itself lets those pass.
        """
        schema = self.schema
        if unknown := (config or {}).keys() - schema.keys():
            raise ValueError(f"{self.name}: there is no setting {', '.join(sorted(unknown))}; use {', '.join(schema)}")
        return Settings(schema, config)

    def policy(self) -> Policy:
        """The rule as a policy for a `PolicyPack`."""
        raise NotImplementedError

    def _description(self) -> dict[str, Any]:
        framework = PolicyComplianceFramework(CIS_NAME, CIS_VERSION, self.cis, self.asks) if self.cis else None
        return {
            "name": self.name,
            "description": f"{f'CIS GKE {self.cis}: ' if self.cis else ''}{self.asks}",
            "enforcement_level": self.level,
            "config_schema": PolicyConfigSchema(properties={name: dict(o) for name, o in self.schema.items()}),
            "severity": self.severity,
            "framework": framework,
            "tags": [self.group],
            "url": self.source,
        }


@dataclass(frozen=True, kw_only=True)
class ResourceRule(Rule):
    """A rule about each resource of certain types by itself; it sees the resource's inputs."""

    types: tuple[str, ...]
    """Type tokens, or patterns of them as `fnmatch` has: `kubernetes:*`."""
    check: ResourceCheck | None = None
    """Finds what breaks the rule; without one the rule only remediates."""
    exemption: Callable[[Resource], bool] | None = None
    """Whether the rule leaves a resource alone, for the reason in `exempts`."""
    remedy: Remedy | None = None

    @property
    def remediable(self) -> bool:
        """Whether level `remediate` repairs what breaks it."""
        return self.remedy is not None

    def concerns(self, type_: str) -> bool:
        """Whether the rule is about resources of this type, or about what a patch of this type changes."""
        type_ = patched_type(kubernetes_type(type_))
        return any(fnmatchcase(type_, pattern) for pattern in self.types)

    def exempt(self, resource: Resource, settings: Settings) -> str | None:
        """Why the resource is exempt, by configuration or by the rule itself."""
        own = self.exemption is not None and self.exemption(resource)
        return settings.exemption(resource) or (self.exempts if own else None)

    def problems(self, resource: Resource, config: Mapping[str, Any] | None = None) -> list[Breach]:
        """What breaks the rule in a resource."""
        settings = self.settings(config)
        if self.check is None or not self.concerns(resource.type) or self.exempt(resource, settings):
            return []
        return list(self.check(resource, settings))

    def policy(self) -> ResourceValidationPolicy:
        """The rule as a policy for a `PolicyPack`."""
        return ResourceValidationPolicy(
            validate=self._validate if self.check else None,
            remediate=self._remediate if self.remedy else None,
            **self._description(),
        )

    def _validate(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        if not self.concerns(args.resource_type):
            return
        resource = Resource.of(args)
        if reason := self.exempt(resource, self.settings(args.get_config())):
            args.not_applicable(f"exempt: {reason}")
        for problem in self.problems(resource, args.get_config()):
            report(str(problem), None)

    def _remediate(self, args: ResourceValidationArgs) -> Any:
        # The SDK takes the properties themselves too, though it declares only an awaitable of them.
        if self.remedy is None or not self.concerns(args.resource_type):
            return None
        resource = Resource.of(args)
        if self.exempt(resource, self.settings(args.get_config())):
            return None
        if self.check is not None and not self.problems(resource, args.get_config()):
            return None
        properties: dict[str, Any] = unwrapped(args.props)
        before = unwrapped(args.props)
        self.remedy(properties)
        return properties if _differ(before, properties) else None


@dataclass(frozen=True, kw_only=True)
class StackRule(Rule):
    """A rule about resources together; it sees their inputs, and outputs once there are any, when all are planned."""

    check: StackCheck
    needs_objects: bool = False
    """Whether it cannot be judged without the Kubernetes objects of the clusters."""

    def problems(self, estate: Estate, config: Mapping[str, Any] | None = None) -> Iterator[tuple[str, Breach]]:
        """What breaks the rule: the URN of the resource, or nothing for the whole stack, and the problem."""
        settings = self.settings(config)
        for resource, problem in self.check(estate, settings):
            if resource is None:
                yield "", problem
            elif settings.exemption(resource) is None:
                yield resource.urn, problem

    def policy(self, inputs: SeenInputs | None = None) -> StackValidationPolicy:
        """The rule as a policy for a `PolicyPack`, with the inputs that a `remember_inputs` policy of it sees."""

        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            # A report about nothing in particular makes the display of `pulumi policy analyze` (3.250) crash.
            stack = next((one.urn for one in args.resources if one.resource_type == STACK), None)
            for urn, problem in self.problems(Estate.of(args.resources, inputs or {}), args.get_config()):
                report(str(problem), urn or stack)

        return StackValidationPolicy(validate=validate, **self._description())


def _differ(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() != after.keys() or any(_differ(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) != len(after) or any(_differ(a, b) for a, b in zip(before, after, strict=True))
    return type(before) is not type(after) or (type(before).__name__ != "Secret" and bool(before != after))
