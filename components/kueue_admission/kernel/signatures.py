"""Signatures as people read them, by `help()` and in editors: fields of models, and types without validators."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

_DECLARED = "declared_signature"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Text(str):
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
            default = _Text(f"{field.default_factory.__name__}()")
        first = field.kw_only is False
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY
        parameter = inspect.Parameter(name, kind, default=default, annotation=_Text(_shown(field.annotation)))
        (by_position if first else by_name).append(parameter)
    return inspect.Signature([*by_position, *by_name])


def shown(function: _Function) -> _Function:
    """FUNCTION, which `inspect.signature` gives with types that people read; `declared` gives those that it has."""
    if _DECLARED in vars(function):
        return function
    signature = inspect.signature(function)
    parameters = [
        parameter for own_parameter in signature.parameters.values() for parameter in _parameters(own_parameter)
    ]
    vars(function)[_DECLARED] = signature
    vars(function)["__signature__"] = signature.replace(
        parameters=parameters, return_annotation=_annotation(signature.return_annotation)
    )
    return function


def declared(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function with the types that check what it is given."""
    signature: inspect.Signature = getattr(function, _DECLARED, None) or inspect.signature(function)
    hints = inspect.get_annotations(function, eval_str=True)
    return signature.replace(
        parameters=[
            parameter.replace(annotation=hints.get(name, parameter.empty))
            for name, parameter in signature.parameters.items()
        ]
    )


def _parameters(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The parameter; of one that takes the keys of a TypedDict, those."""
    unpacked_types = [arg for arg in get_args(parameter.annotation) if is_typeddict(arg)]
    if parameter.kind is not parameter.VAR_KEYWORD or not unpacked_types:
        yield parameter.replace(annotation=_annotation(parameter.annotation))
        return
    for name, kind in unpacked_types[0].__annotations__.items():
        yield inspect.Parameter(name, parameter.KEYWORD_ONLY, default=_Text("..."), annotation=_annotation(kind))


def _annotation(hint: Any) -> Any:
    return hint if hint is inspect.Parameter.empty else _Text(_shown(hint))


def _shown(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _shown(arguments[0])
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return f"Sequence[{_shown(arguments[0])}]"
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    if isinstance(hint, str):
        return hint
    if hint is NoneType:
        return "None"
    if isinstance(hint, list):
        return f"[{', '.join(map(_shown, hint))}]"
    name = getattr(origin or hint, "__name__", None) or repr(hint)
    return f"{name}[{', '.join(map(_shown, arguments))}]" if arguments else name


def _union(members: tuple[Any, ...]) -> str:
    """A union; `pulumi.Input`, of which nothing remains but its members, by its name."""
    late = [member for member in members if get_origin(member) is Awaitable or isinstance(member, ForwardRef)]
    now = [member for member in members if member not in late and member is not NoneType]
    text = " | ".join(dict.fromkeys(map(_shown, now)))
    if late:
        text = f"Input[{text}]"
    return f"{text} | None" if NoneType in members else text
