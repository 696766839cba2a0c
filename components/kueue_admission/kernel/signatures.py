"""Signatures of models as people read them, by `help()` and in editors: fields, and types without validators."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    Union,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from pydantic import BaseModel


class Text(str):
    """What is printed as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def of_model(model: type[BaseModel]) -> inspect.Signature:
    """The constructor of a model, by the names of Python."""
    by_position: list[inspect.Parameter] = []
    by_name: list[inspect.Parameter] = []
    for name, field in model.model_fields.items():
        if field.init is False:
            continue
        default = inspect.Parameter.empty if field.is_required() else field.default
        if field.default_factory is not None:
            default = Text(f"{field.default_factory.__name__}()")
        first = field.kw_only is False
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY
        parameter = inspect.Parameter(name, kind, default=default, annotation=Text(type_text(field.annotation)))
        (by_position if first else by_name).append(parameter)
    return inspect.Signature([*by_position, *by_name])


def type_text(hint: Any) -> str:
    """A type as people read it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return f"Sequence[{type_text(arguments[0])}]"
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    if isinstance(hint, str):
        return hint
    if hint is NoneType:
        return "None"
    if isinstance(hint, list):
        return f"[{', '.join(map(type_text, hint))}]"
    name = getattr(origin or hint, "__name__", None) or repr(hint)
    return f"{name}[{', '.join(map(type_text, arguments))}]" if arguments else name


def _union(members: tuple[Any, ...]) -> str:
    """A union; `pulumi.Input`, of which nothing remains but its members, by its name."""
    late = [member for member in members if get_origin(member) is Awaitable or isinstance(member, ForwardRef)]
    now = [member for member in members if member not in late and member is not NoneType]
    text = " | ".join(dict.fromkeys(map(type_text, now)))
    if late:
        text = f"Input[{text}]"
    return f"{text} | None" if NoneType in members else text
