"""What a model says of its fields to readers of a file: what became of former ones, and what to write."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from kueue_admission.kernel.schema_path import is_model
from kueue_admission.kernel.suggest import plain

_Mark = TypeVar("_Mark")


@dataclass(frozen=True, slots=True)
class Hint:
    """Metadata of a required field: what to do where it is missing and its name does not say."""

    fix: str


@dataclass(frozen=True, slots=True)
class AlsoCalled:
    """Metadata of a field: what gcloud, Terraform or another tool calls it, or the value that it holds."""

    names: frozenset[str]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", frozenset(map(plain, names)))


@dataclass(frozen=True, slots=True)
class FormerName:
    """Metadata of a field: its name in files of the release before, which this one takes too, with a warning."""

    name: str


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
    return next((hint.fix for names, hint in marked(model, Hint) if name in names), None)


def known_as(name: str, model: Any, *, in_python: bool = False) -> str | None:
    """The field of `model` that other tools call `name`; None if there is none."""
    fields = (names for names, mark in marked(model, AlsoCalled) if plain(name) in mark.names)
    return next((key if in_python else alias for key, alias in fields), None)


def formerly(name: str, model: Any, *, in_python: bool = False) -> str | None:
    """The field of `model` that the release before called `name`; None if there is none."""
    fields = (names for names, mark in marked(model, FormerName) if plain(mark.name) == plain(name))
    return next((key if in_python else alias for key, alias in fields), None)


def marked(model: Any, mark: type[_Mark]) -> Iterator[tuple[tuple[str, str], _Mark]]:
    """The fields of `model` with metadata of that type, each by its names in Python and in files."""
    for key, field in model.model_fields.items() if is_model(model) else ():
        names = key, field.alias or key
        yield from ((names, metadata) for metadata in field.metadata if isinstance(metadata, mark))
