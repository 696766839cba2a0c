"""Plain data as one of the models.

In: a model and data in Kubernetes' spelling, as YAML and JSON give it. Out: the model, or SpecError with every problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from kueue_fleet.kueue_api.base import SpecModel
from kueue_fleet.kueue_api.messages import errors_in, explain
from kueue_fleet.kueue_api.problem import SpecError

_Model = TypeVar("_Model", bound=SpecModel)


def read_model(model: type[_Model], data: Mapping[str, Any], path: str = "") -> _Model:
    """`data` as a `model`; `path` begins the paths of its problems. Raises SpecError with all of them."""
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = [problem for detail in errors_in(error) for problem in explain(detail, model, data)]
    raise SpecError(problem.at(path) for problem in problems)
