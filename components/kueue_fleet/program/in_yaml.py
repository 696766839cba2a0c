"""The fleets of a Pulumi program in YAML, read off it: what a `Fleet` has as `spec` there is the spec.

Config, variables and `${pulumi.stack}` are put in; what other resources or functions answer is not known here.
Source: https://www.pulumi.com/docs/iac/languages-sdks/yaml/yaml-language-reference/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.program.handed_out import DeclaredFleet
from kueue_fleet.program.project import PROJECT_FILE, Project, ProjectError, without_secrets

_FLEET: Final = ("kueue-fleet:index:Fleet", "kueue-fleet:Fleet")
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{([^}]*)\}")


def fleets_in(project: Project, stack: str) -> list[DeclaredFleet]:
    """The fleets, in the order of the file.

    Raises:
        ProjectError: a spec has something in it that only Pulumi knows.
    """
    own = f"{project.name}:"
    config = {key.removeprefix(own): value for key, value in without_secrets(project.values(stack)).items()}
    variables = _map(project.settings.get("variables"))
    known_values = {**config, **variables, "pulumi": {"stack": stack, "project": project.name}}
    declared_fleets = []
    for key, resource in _map(project.settings.get("resources")).items():
        properties = _map(_map(resource).get("properties"))
        if _map(resource).get("type") in _FLEET:
            name, of_program = resource.get("name", key), properties.get("project")
            later = isinstance(of_program, str) and not _is_known(of_program, known_values)
            place = f"{project.folder / PROJECT_FILE}: resources.{key}.properties"
            spec = _filled(properties.get("spec"), known_values, f"{place}.spec")
            declared_fleets.append(
                DeclaredFleet(name, spec, None if later else _filled(of_program, known_values, place))
            )
    return declared_fleets


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_known(text: str, known_values: Mapping[str, Any]) -> bool:
    return all(name.partition(".")[0] in known_values for name in _REFERENCE.findall(text))


def _filled(value: Any, known_values: Mapping[str, Any], path: str) -> Any:
    """The value with what its references stand for."""
    if isinstance(value, list):
        return [_filled(item, known_values, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        if functions := [key for key in value if str(key).startswith("fn::")]:
            raise _unknown(path, functions[0])
        return {key: _filled(item, known_values, f"{path}.{key}") for key, item in value.items()}
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        return _referred(whole[1], known_values, path)
    return _REFERENCE.sub(lambda match: str(_referred(match[1], known_values, path)), value).replace("$${", "${")


def _referred(reference: str, known_values: Mapping[str, Any], path: str) -> Any:
    first, *fields = reference.split(".")
    value = (
        _filled(known_values[first], {**known_values, first: None}, path)
        if known_values.get(first) is not None
        else None
    )
    for field in fields:
        value = _map(value).get(field)
    if value is None:
        raise _unknown(path, f"${{{reference}}}")
    return value


def _unknown(path: str, what: str) -> ProjectError:
    return ProjectError(
        path, f"what {what} is, only Pulumi knows", "write the value, or take it from the stack's config"
    )
