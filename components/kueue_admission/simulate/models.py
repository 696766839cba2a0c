"""Reading plain data as one of this package's file formats, with every problem in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.messages import errors_in, explain
from kueue_admission.kernel.problem import Place, SpecError
from kueue_admission.kernel.yaml_text import YamlDocument, load_document, load_yaml
from kueue_admission.simulate.documents import look_over
from kueue_admission.simulate.errors import SimulationError

M = TypeVar("M", bound=BaseModel)


class TextPlace(Place):
    """The file that has a text, and on which line of it each part is; the text is read once more if somebody asks."""

    text: str

    def __new__(cls, source: str, text: str) -> Self:
        """It looks like the name of the file."""
        place = super().__new__(cls, source)
        place.text = text
        return place

    @cached_property
    def _document(self) -> YamlDocument:
        return load_document(self.text, self.source)

    def line_of(self, path: str) -> int | None:
        """The line of what is at a path; None for the whole."""
        return self._document.line_of(path) if path else None


def read_model(text: str, source: str, model: type[M]) -> M:
    """The `model` that `text` (YAML or JSON) describes. Raises SimulationError, paths behind the name of the source."""
    return as_model(read_data(text, source), TextPlace(source, text), model)


def read_data(text: str, source: str) -> Any:
    """The plain data in `text`. Raises SimulationError with the line."""
    look_over(text, source)
    try:
        return load_yaml(text, source)
    except SpecError as error:
        raise SimulationError(error.problems) from None
    except RecursionError:
        raise SimulationError([OBJECT.at("", "is nested too deeply", "write plain fields", source=source)]) from None


def as_model(data: Any, source: str, model: type[M]) -> M:
    """The same for data that is already read. Raises SimulationError with every problem."""
    fields = ", ".join(list(model.model_fields)[:3])
    if not isinstance(data, Mapping):
        raise SimulationError([OBJECT.at("", "is not a map of fields", f"begin with {fields}", source=source)])
    if {"apiVersion", "kind"} <= set(data):
        holds = f"holds a Kubernetes object, a {str(data['kind'])[:40]}, and not the fields {fields}"
        raise SimulationError([OBJECT.at("", holds, "give it with --jobs or --objects", source=source)])
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SimulationError(
            problem.behind(source) for detail in errors_in(error) for problem in explain(detail, model, data)
        ) from None
