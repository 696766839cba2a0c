"""Old names of fields, in what an earlier release, or who learnt it, has written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from kueue_admission.kernel.base import DEFER_RULES, SpecModel
from kueue_admission.kernel.described import FormerName, marked
from kueue_admission.kernel.form_rules import FORMER_NAME
from kueue_admission.kernel.messages import in_new_names
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.form import models_in


def in_present_names(model: type[SpecModel], data: Any) -> Any:
    """`data` of an earlier release with the present names of fields, so far as it fits the model."""
    try:
        model.model_validate(data, by_alias=True, by_name=False, context={DEFER_RULES: True})
    except ValidationError as error:
        data, old_names = in_new_names(error, model, data)
        return in_present_names(model, data) if old_names else data
    return data


def as_written(model: type[SpecModel], problems: Iterable[Problem]) -> list[Problem]:
    """The problems of a file of `model`, with paths in the file's own words where it has old names."""
    every_problem, written = list(problems), dict[str, str]()
    for problem in every_problem:
        if problem.rule == FORMER_NAME:
            above, former = problem.path[: problem.path.rfind(".") + 1], problem.path.rpartition(".")[2]
            written |= {f"{above}{new}": problem.path for new in _new_names(model)[former]}
    return [replace(problem, path=_written_path(problem.path, written)) for problem in every_problem]


def _written_path(path: str, written: Mapping[str, str]) -> str:
    for new in sorted(written, key=len, reverse=True):
        if path == new or path.startswith((f"{new}.", f"{new}[")):
            path = written[new] + path[len(new) :]
    return path


@cache
def _new_names(model: type[SpecModel]) -> Mapping[str, set[str]]:
    """The names of fields in `model` and below it, by the old ones."""
    names = defaultdict[str, set[str]](set)
    for item in models_in(model, set()):
        for former, name in former_names(item).items():
            names[former].add(name)
    return names


def former_names(model: type[BaseModel]) -> dict[str, str]:
    """The fields of one model that have an old name, by that: their names in files."""
    return {mark.name: alias for (_, alias), mark in marked(model, FormerName)}
