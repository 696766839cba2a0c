"""`kueue-fleet render FILE --cloud -o json | python -m kueue_fleet_policies`: the rules without Pulumi.

Exits 1 if a mandatory rule, or one that repairs, is broken. Rules about Kubernetes objects need a program or a state.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pulumi_policy import EnforcementLevel, PolicyCustomTimeouts, PolicyResource, PolicyResourceOptions

from kueue_admission.cli.code_scanning import annotation, sarif_log
from kueue_admission.kernel.printable import printable
from kueue_admission.kernel.problem import Problem, Severity
from kueue_admission.kernel.problem import Rule as ProblemRule
from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies import RULES
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import EXEMPTIONS, EXEMPTIONS_SCHEMA, Breach, ResourceRule, Rule

_REFERENCE: Final = re.compile(r"(?<!\$)\$\{([^}]*)\.[^.}]*\}")
"""What `render --cloud` writes for a property of another resource: `${Network/lab/vpc.selfLink}`."""
_LEVEL: Final = "enforcementLevel"
_TYPES: Final[Mapping[str, Any]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}
PACK: Final = Path(__file__).parent / "pack"
"""The policy pack as Pulumi takes it, in a checkout and in an installed wheel."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what `kueue-fleet render --cloud -o json` prints; the exit code: 0, 1 broken, 2 called wrongly."""
    parser = argparse.ArgumentParser(prog="python -m kueue_fleet_policies", description=__doc__)
    parser.add_argument("file", nargs="?", default="-", help="what render printed; default: stdin")
    parser.add_argument("--config", type=Path, help="settings of the rules, as Pulumi takes them")
    parser.add_argument(
        "--output",
        "-o",
        choices=("text", "github", "sarif"),
        default="text",
        help="sarif prints one document for code scanners, github annotations of a GitHub workflow; default: text",
    )
    parser.add_argument("--pack", action="store_true", help="print the folder for pulumi --policy-pack, and end")
    given = parser.parse_args(arguments)
    if given.pack:
        print(PACK)
        return 0
    try:
        text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
        resources = _resources(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        parser.error(f"{given.file}: cannot be read: {error}; print it with kueue-fleet render FILE --cloud -o json")
    try:
        config = _config(json.loads(given.config.read_text(encoding="utf-8")) if given.config else {})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        parser.error(f"{given.config}: cannot be used: {error}")
    breaches = list(_breaches(resources, config))
    broken = sum(level != EnforcementLevel.ADVISORY for _, level, _, _ in breaches)
    if given.output == "text":
        for rule, level, where, breach in breaches:
            print(printable(f"{level.value}: {rule.name}: {where}: {breach}"))
        print(f"{len(resources)} resources, {broken} broken rules that are not advisory")
    else:
        source = "<stdin>" if given.file == "-" else given.file
        _print_for_scanners([_problem(source, *breach) for breach in breaches], given.output)
    return int(broken > 0)


def _print_for_scanners(problems: Sequence[Problem], output: str) -> None:
    if output == "sarif":
        print(json.dumps(sarif_log(problems, "kueue-fleet-policies"), indent=2))
    for problem in problems if output == "github" else ():
        print(annotation(problem))


def _problem(source: str, rule: Rule, level: EnforcementLevel, where: str, breach: Breach) -> Problem:
    """A breach as a problem of `check`; nothing says in which line its resource is declared."""
    severity: Severity = "warning" if level is EnforcementLevel.ADVISORY else "error"
    in_table = ProblemRule(rule.name, rule.asks, rule.asks, "", severity, "", rule.source)
    return in_table.at(": ".join(filter(None, (where, breach.path))), breach.wrong, breach.fix, source=source)


def _config(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings by rule; a text alone is a level. Raises ValueError for what Pulumi would refuse."""
    settings = {name: {_LEVEL: value} if isinstance(value, str) else dict(value) for name, value in data.items()}
    unknown = settings.keys() - {rule.name for rule in RULES} - {"all"}
    if unknown:
        raise ValueError(f"no rule is called {', '.join(sorted(unknown))}")
    for name, entry in settings.items():
        level = entry.get(_LEVEL, EnforcementLevel.ADVISORY.value)
        if level not in (levels := [item.value for item in EnforcementLevel]):
            raise ValueError(f"{name}: there is no level {level}; use {', '.join(levels)}")
        for rule in RULES:
            if rule.name == name:
                _check_settings(rule, {key: value for key, value in entry.items() if key != _LEVEL})
    return settings


def _check_settings(rule: Rule, settings: Mapping[str, Any]) -> None:
    rule.settings(settings)
    for name, value in settings.items():
        json_type = str(rule.schema[name]["type"])
        if not isinstance(value, _TYPES[json_type]) or (isinstance(value, bool) and json_type != "boolean"):
            raise ValueError(f"{rule.name}.{name}: {json.dumps(value)} is given; give a JSON {json_type}")
    for entry in settings.get(EXEMPTIONS, ()):
        missing = [key for key in EXEMPTIONS_SCHEMA["items"]["required"] if not entry.get(key)]
        if missing:
            raise ValueError(f"{rule.name}.{EXEMPTIONS}: {json.dumps(entry)} has no {' and no '.join(missing)}; add it")


def _breaches(
    resources: Sequence[PolicyResource], config: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[Rule, EnforcementLevel, str, Breach]]:
    estate, views = Estate.of(resources), list(map(Resource.of, resources))
    for rule in RULES:
        settings = {**config.get("all", {}), **config.get(rule.name, {})}
        level = EnforcementLevel(settings.pop(_LEVEL, rule.level.value))
        if level is EnforcementLevel.DISABLED:
            continue
        if isinstance(rule, ResourceRule):
            for resource in views:
                for breach in rule.problems(resource, settings):
                    yield rule, level, resource.name, breach
        elif not rule.needs_objects:
            for urn, breach in rule.problems(estate, settings):
                yield rule, level, urn or "all resources", breach


def _resources(document: Mapping[str, Any]) -> list[PolicyResource]:
    """The resources, each with those that its properties come from."""
    given = {key: one for key, one in document["resources"].items() if "get" not in one}
    by_key = {
        key: PolicyResource(one["type"], _known(one["properties"]), key, one["name"], _options(one), None, None, [], {})
        for key, one in given.items()
    }
    for key, one in given.items():
        for name, value in one["properties"].items():
            sources = [by_key[root] for root in _REFERENCE.findall(json.dumps(value)) if root in by_key]
            by_key[key].property_dependencies[name] = sources
    return list(by_key.values())


def _options(one: Mapping[str, Any]) -> PolicyResourceOptions:
    protect = bool(one.get("options", {}).get("protect"))
    return PolicyResourceOptions(protect, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])


def _known(value: Any) -> Any:
    """Plain data in which what another resource decides is `UNKNOWN`."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_known(item) for item in value]
    if isinstance(value, str):
        return UNKNOWN if _REFERENCE.search(value) else value.replace("$${", "${")
    return value


if __name__ == "__main__":
    sys.exit(main())
