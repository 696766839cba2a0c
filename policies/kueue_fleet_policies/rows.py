"""The rules as rows of `rules.toml`: what each says of itself, and of many all that they ask of a property."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Final, cast

from pulumi_policy import EnforcementLevel, Severity

from kueue_admission.kernel.unknown import UNKNOWN, is_known
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, Remedy, ResourceCheck, ResourceRule, Settings, StackCheck, StackRule

_ROWS: Final = tomllib.loads(files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))

_WHEN: Final[Mapping[str, Callable[[Resource, str], bool]]] = {
    "true": Resource.is_on,
    "not true": Resource.is_off,
    "false": lambda resource, path: resource.flag(path) is False,
    "not false": lambda resource, path: resource.flag(path) in (None, True),
    "missing": Resource.lacks,
    "there": lambda resource, path: not resource.lacks(path),
}
"""Words of the table, and whether the property at a path is so; unknown ones are neither."""


@dataclass(frozen=True, kw_only=True)
class _OfProperty:
    """What a row says about properties, each of which breaks the rule by itself."""

    path: str | list[str]
    when: str | dict[str, list[str]]
    """A word, or `is` or `not` with the values."""
    wrong: str
    """`{is}` stands for "is missing" or "is", and the value."""
    fix: str
    clusters: str = ""
    """Only of these: `standard` or `autopilot`."""
    where: str = ""
    """Only where the property there is true."""
    known: str = ""
    """Only where that property is known, since an exemption depends on it."""
    put: Any = None
    """What a remedy sets the property to."""

    @property
    def paths(self) -> list[str]:
        return [self.path] if isinstance(self.path, str) else self.path

    def check(self, resource: Resource, _: Settings) -> Iterator[Breach]:
        if self.clusters and not getattr(resource, self.clusters):
            return
        if (self.where and not resource.is_on(self.where)) or (self.known and not is_known(resource.get(self.known))):
            return
        for path in self.paths:
            if self._is_wrong(resource, path):
                yield Breach(path, self.wrong.format_map({"is": said(resource.get(path))}), self.fix)

    def _is_wrong(self, resource: Resource, path: str) -> bool:
        if isinstance(self.when, str):
            return _WHEN[self.when](resource, path)
        value = resource.get(path)
        return any(value is not UNKNOWN and (value in named) is (word == "is") for word, named in self.when.items())

    def remedy(self, props: dict[str, Any]) -> None:
        """Set the property, and leave all beside it."""
        for path in self.paths:
            inner = props
            *above, name = path.split(".")
            for part in above:
                inner[part] = inner = {**(inner.get(part) or {})}
            inner[name] = self.put


_PROPERTY_KEYS: Final = {field.name for field in fields(_OfProperty)}


def said(value: Any) -> str:
    """How a property that has the wrong value begins its problem."""
    return "is missing" if value is None else f"is {value}"


def rules_of(
    group: str,
    checks: Mapping[str, ResourceCheck | StackCheck],
    *,
    exemptions: Mapping[str, Callable[[Resource], bool]] | None = None,
    remedies: Mapping[str, Remedy] | None = None,
) -> tuple[ResourceRule | StackRule, ...]:
    """The rules of a group of the table, with the code of those that need some, by name."""
    rules: list[ResourceRule | StackRule] = []
    of_all = {name: value for name, value in _ROWS[group].items() if not isinstance(value, dict)}
    for name, row in _ROWS[group].items():
        if name in of_all:
            continue
        says = of_all | row
        asked = _OfProperty(**{key: says.pop(key) for key in _PROPERTY_KEYS & says.keys()}) if "path" in row else None
        says |= {"name": name, "group": group, "options": says.get("options", {})}
        says["level"] = EnforcementLevel(says.get("level", "mandatory"))
        says["severity"] = Severity(says.get("severity", "medium"))
        if "types" not in says:
            rules.append(StackRule(check=cast("StackCheck", checks[name]), **says))
            continue
        says["types"] = tuple(says["types"])
        says["check"] = asked.check if asked else checks.get(name)
        says["remedy"] = asked.remedy if asked and asked.put is not None else (remedies or {}).get(name)
        rules.append(ResourceRule(exemption=(exemptions or {}).get(name), **says))
    return tuple(rules)
