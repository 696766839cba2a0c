"""Values of Kueue's chart that a program writes itself. Helm passes over those that the chart does not have.

Source: the tables of `kueue_admission.releases`, read from kueue@v0.19.2 charts/kueue/values.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

import yaml

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.api.old_configuration import configuration_as_v1beta2
from kueue_admission.kernel.form_rules import UNKNOWN_FIELD, WRONG_TYPE
from kueue_admission.kernel.manifest import is_object
from kueue_admission.kernel.model_problems import problems_in
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.read_model import read_model
from kueue_admission.kernel.suggest import nearest
from kueue_admission.releases import Release
from kueue_fleet.fleet_file.check.kueue_configuration import configuration_problems
from kueue_fleet.fleet_file.check.releases import severity, which_have
from kueue_fleet.fleet_file.model.installations import KueueInstallation
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.rules.teams import RELEASE_FIELD

_READ_BESIDE_VALUES = ("version", "chart", "image", "namespace", "priority_class_name")


_CONFIGURATION_VALUE: Final = "managerConfig.controllerManagerConfigYaml"
"""The value of the chart that is Kueue's Configuration, as text."""
_TAKEN_WHOLE: Final = frozenset(
    ("annotations", "containerSecurityContext", "podSecurityContext", "resources", "tlsConfig")
)
"""Values of the chart that its templates hand on as they are. Source: kueue@v0.19.2 charts/kueue/templates (toYaml)."""


def check_chart_values(kueue: KueueInstallation, values: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the values, by themselves and beside the installation, whose Configuration they replace."""
    for name in sorted(kueue.model_fields_set.difference(_READ_BESIDE_VALUES)):
        wrong = f"{name} of the installation has no effect, since values are given"
        yield NO_EFFECT.at("", wrong, "write it in the values, or remove the values")
    yield from _missing(kueue, values)
    for path, default in kueue.release.chart_values.items():
        value = _value_at(values, path)
        if default in ("true", "false") and isinstance(value, str):
            yield WRONG_TYPE.at(path, f"{value!r} is text, which the chart takes for true", "give True or False")
    for path in sorted(_value_maps(kueue.release)):
        value = _value_at(values, path)
        if isinstance(value, str | int | list):
            yield WRONG_TYPE.at(path, "is not a map, so Helm passes over it", "give a dict")
    text = _value_at(values, _CONFIGURATION_VALUE)
    if isinstance(text, str | Mapping):
        yield from (problem.at(_CONFIGURATION_VALUE) for problem in _configuration(kueue, text))


def _missing(kueue: KueueInstallation, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Values that the chart does not have; another chart than Kueue's own may have them."""
    release = kueue.release
    own = kueue.chart == KueueInstallation.model_fields["chart"].default
    known_names = {*release.chart_values, *_value_maps(release)}
    for path in _missing_values(release, values):
        having = which_have(partial(_has_value, path=path))
        above, _, name = path.rpartition(".")
        beside = [value_path for value_path in known_names if value_path.rpartition(".")[0] == above]
        same = [value_path for value_path in known_names if value_path.rpartition(".")[2] == name]
        near = nearest(path, beside) or (same[0] if len(same) == 1 else None)
        wrong = f"the chart of Kueue {release.version} has no such value, and Helm passes over it"
        rule, fix = (
            (RELEASE_FIELD, having) if having else (UNKNOWN_FIELD, f"did you mean {near}?" if near else "remove it")
        )
        yield rule.at(path, wrong, fix, severity(release) if own else "warning")


@cache
def _value_maps(release: Release) -> frozenset[str]:
    """The values of its chart that have values below them, such as `controllerManager.manager`."""
    parts = [name.split(".") for name in (*release.chart_values, _CONFIGURATION_VALUE)]
    return frozenset(".".join(part[:end]) for part in parts for end in range(1, len(part)))


def _has_value(release: Release, path: str) -> bool:
    """Whether its chart has a value, by dotted path, or values below it."""
    return path in release.chart_values or path in _value_maps(release) or path in (_CONFIGURATION_VALUE, "global")


def _missing_values(release: Release, values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The values that its chart does not have, by dotted path; of what is missing whole, the top."""
    for name, value in values.items():
        path = f"{above}{name}"
        if not _has_value(release, path):
            yield path
        elif path in _value_maps(release) and name not in _TAKEN_WHOLE and isinstance(value, Mapping):
            yield from _missing_values(release, value, f"{path}.")


def _configuration(kueue: KueueInstallation, text: str | Mapping[str, Any]) -> Iterator[Problem]:
    try:
        data = yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        data = None
    if not is_object(data):
        yield WRONG_TYPE.at("", "is not the text of a Configuration", "give its YAML, as text")
        return
    fields, _ = configuration_as_v1beta2(data)
    try:
        configuration = read_model(
            KueueConfiguration, {k: v for k, v in fields.items() if k not in ("apiVersion", "kind")}
        )
    except SpecError as error:
        yield from error.problems
        return
    yield from problems_in(configuration)
    yield from configuration_problems(configuration, kueue.namespace, kueue.release)


def _value_at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
