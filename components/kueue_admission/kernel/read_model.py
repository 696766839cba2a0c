"""Plain data as one of the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from kueue_admission.kernel.base import DEFER_RULES, IS_STORED, SpecModel
from kueue_admission.kernel.messages import in_new_names, problems_of, warn_in_program
from kueue_admission.kernel.problem import SpecError

_STORED = {DEFER_RULES: True, IS_STORED: True}
_Model = TypeVar("_Model", bound=SpecModel)


def read_model(model: type[_Model], data: Mapping[str, Any], path: str = "") -> _Model:
    """`data` as a `model`; `path` begins the paths of its problems. Raises SpecError with all of them."""
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        data, old_names = in_new_names(error, model, data)
        if not old_names:
            raise _refused(error, model, data, path) from None
    warn_in_program(problem.at(path) for problem in old_names)
    return read_model(model, data, path)


def read_stored(model: type[_Model], data: Mapping[str, Any], path: str = "") -> _Model:
    """The same for an object that a cluster has accepted, maybe of a later version: unknown fields are passed over.

    Raises SpecError for what has another form than expected, not for rules between fields.
    """
    try:
        return model.model_validate(data, by_alias=True, by_name=False, extra="ignore", context=_STORED)
    except ValidationError as error:
        raise _refused(error, model, data, path) from None


def _refused(error: ValidationError, model: type[SpecModel], data: Mapping[str, Any], path: str) -> SpecError:
    return SpecError(problem.at(path) for problem in problems_of(error, model, data))
