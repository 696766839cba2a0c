"""What a model says of its fields to whoever reads a file: what became of former ones, and what to write."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kueue_admission.kernel.schema_path import is_model


@dataclass(frozen=True, slots=True)
class Hint:
    """Metadata of a required field: what to do where it is missing and its name does not say."""

    fix: str


class Described:
    """A model that says what to do about a field that it does not have."""

    replaced: ClassVar[Mapping[str, str]] = {}
    """Fields of Kueue's v1beta1 that are gone, and what to write instead."""
    removed: ClassVar[Mapping[str, str]] = {}
    """The same where nothing replaces them, and what to do."""

    @classmethod
    def not_here(cls, name: str) -> tuple[str, str] | None:
        """What is wrong and what to do where a field is written that belongs elsewhere; None: it is just unknown."""
        return None


def hint_of(model: Any, name: str) -> str | None:
    """The hint of a field of `model`, by its name in files; None if it has none, or there is no such model."""
    if not is_model(model):
        return None
    metadata = (
        metadata
        for key, field in model.model_fields.items()
        if name in (key, field.alias)
        for metadata in field.metadata
    )
    return next((hint.fix for hint in metadata if isinstance(hint, Hint)), None)
