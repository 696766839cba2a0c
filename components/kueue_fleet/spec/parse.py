"""From text or plain data to a checked fleet.

In: the text of a bare fleet file or of a Pulumi.<env>.yaml, or the data in it. Out: `FleetSpec`, or SpecError with
every problem there is. A field that cannot be read hides no problem elsewhere: `standins` replaces it, and the rules go
on, with what they would say about the stand-in left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_fleet.spec import suggest
from kueue_fleet.spec.check import check_scope
from kueue_fleet.spec.check.scope import Scope
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.problem import Problem, SpecError, errors_of
from kueue_fleet.spec.standins import read_fleet
from kueue_fleet.spec.yamltext import load_yaml

PULUMI_KEY: Final = "kueue-fleet:fleet"
"""Config key of a Pulumi.<env>.yaml that holds the fleet."""
PROJECT_KEY: Final = "gcp:project"
"""Config key of the project that Pulumi's own provider uses."""
_STACK_KEYS: Final = frozenset({"config", "environment", "secretsprovider", "encryptionsalt", "encryptedkey"})


def parse_fleet_text(text: str, source: str) -> FleetSpec:
    """The fleet in `text`, which came from `source` (for messages). Raises SpecError with all problems."""
    document = load_yaml(text, source)
    data = fleet_data(document, source)
    return _parse(data, list(_other_project(document, data)))


def parse_fleet(data: Any) -> FleetSpec:
    """The fleet in `data`, plain data as YAML or JSON gives it. Raises SpecError with all problems."""
    return _parse(data, [])


def _parse(data: Any, problems: list[Problem]) -> FleetSpec:
    reading = read_fleet(data)
    problems = [*problems, *reading.problems]
    if reading.fleet is not None:
        scope = Scope(reading.fleet, reading.declared, reading.unread)
        problems = scope.in_file_order([*problems, *check_scope(scope)])
    if reading.fleet is None or errors_of(problems):
        raise SpecError(problems)
    return reading.fleet


def fleet_data(document: Any, source: str) -> Any:
    """The fleet's part of a document: the whole of it, or its config value if it is a Pulumi stack file.

    Raises SpecError where there is none.
    """
    if document is None:
        raise SpecError([Problem(source, "is empty", "write a fleet: name, project and clusters to begin with")])
    if not isinstance(document, Mapping):
        kind = "a list" if isinstance(document, list) else "a single value"
        raise SpecError(
            [Problem(source, f"holds {kind}, not a map of fields", "begin with name:, project:, clusters:")]
        )
    if {"apiVersion", "kind"} <= set(document):
        kind = document["kind"]
        raise SpecError(
            [
                Problem(
                    source, f"holds a Kubernetes object, a {kind}", "write a fleet, which holds the fields of its spec"
                )
            ]
        )
    if not _STACK_KEYS.intersection(document):
        if "jobs" in document and not {"name", "clusters"} & set(document):
            raise SpecError([Problem(source, "is a workload file", "give it with --workload, and a fleet here")])
        return document
    config = document.get("config")
    if not isinstance(config, Mapping) or PULUMI_KEY not in config:
        keys = [str(key) for key in config] if isinstance(config, Mapping) else []
        near = suggest.nearest(PULUMI_KEY, keys)
        raise SpecError(
            [
                Problem(
                    f"{source}: config",
                    f"has no {PULUMI_KEY}" + (f", but {near}" if near else ""),
                    f"rename it to {PULUMI_KEY}" if near else f"add {PULUMI_KEY}: and the fleet below it",
                )
            ]
        )
    data = config[PULUMI_KEY]
    if isinstance(data, Mapping) and set(data) == {"secure"}:
        raise SpecError(
            [Problem(f"{source}: config.{PULUMI_KEY}", "is encrypted", "write it plainly: a fleet holds no secrets")]
        )
    if not isinstance(data, Mapping):
        raise SpecError(
            [
                Problem(
                    f"{source}: config.{PULUMI_KEY}",
                    "is not a map of fields",
                    "write name:, project:, clusters: below it",
                )
            ]
        )
    return data


def _other_project(document: Any, data: Any) -> Iterator[Problem]:
    """The stack's own project, where it has one, is the fleet's."""
    if document is data:
        return
    stack, fleet = document["config"].get(PROJECT_KEY), data.get("project")
    if isinstance(stack, str) and isinstance(fleet, str) and stack != fleet:
        yield Problem(
            "project", f"{fleet}, but {PROJECT_KEY} of the stack is {stack}", "write the same project in both"
        )
