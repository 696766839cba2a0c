"""The problems of a model and of all models in it, and of a value by its syntax."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kueue_admission.kernel.base import RuledModel, SpecModel
from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.problem import Problem, as_far_as_read, item_labels, join_path


def problems_in(model: SpecModel, path: str = "") -> Iterator[Problem]:
    """Every broken rule of one object alone, of `model` at `path` and of all models in it."""
    if isinstance(model, RuledModel):
        for problem in as_far_as_read(model.own_problems()):
            yield problem.at(path)
    for name, field in type(model).model_fields.items():
        value = model.__dict__.get(name)
        if isinstance(value, (SpecModel, tuple, Mapping)):
            yield from _problems_below(value, join_path(path, field.alias or name))


def _problems_below(value: SpecModel | tuple[Any, ...] | Mapping[str, Any], path: str) -> Iterator[Problem]:
    if isinstance(value, SpecModel):
        yield from problems_in(value, path)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, SpecModel):
                yield from problems_in(item, f"{path}[{key}]")
    elif value and isinstance(value[0], SpecModel):
        labels = item_labels([item.__dict__.get("name") for item in value])
        for item, label in zip(value, labels, strict=True):
            yield from problems_in(item, f"{path}[{label}]")


def syntax_problems(path: str, value: str, check: Callable[[str], Fault | None]) -> Iterator[Problem]:
    """The problem of a value at `path` that a function of `syntax` refuses, if it does."""
    fault = check(value)
    if fault is not None:
        yield fault.rule.at(path, f'"{value}" {fault.wrong}', fault.fix)
