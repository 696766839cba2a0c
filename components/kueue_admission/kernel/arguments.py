"""Arguments of calls that programs make, compared with what the function says that it takes.

What does not fit is a problem in words of ours, where Python would end the program with a traceback, or Pulumi later.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from itertools import chain, repeat
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

from pydantic import TypeAdapter, ValidationError

from kueue_admission.kernel import signatures
from kueue_admission.kernel.form_rules import BAD_SYNTAX, MISSING, NOT_ALLOWED, UNKNOWN_FIELD, WRONG_TYPE
from kueue_admission.kernel.messages import errors_in, fault_of, value_text
from kueue_admission.kernel.problem import Problem, SpecError
from kueue_admission.kernel.schema_path import is_model
from kueue_admission.kernel.suggest import nearest, with_article
from kueue_admission.kernel.unknown import IN_TEXT, OUTPUT_TEXT, is_late, is_of_pulumi

_DECLARED = "declared_signature"
_Function = TypeVar("_Function", bound=Callable[..., Any])

_WORDS: Final[Mapping[Any, str]] = {
    **dict.fromkeys((list, tuple, Sequence), "a list"),
    **dict.fromkeys((dict, Mapping), "a dict"),
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Callable: "a function",
}
_Taken = ParamSpec("_Taken")
_Returned = TypeVar("_Returned")


class _Parameters(NamedTuple):
    by_position: Sequence[str]
    hints: Mapping[str, Any]
    required: Sequence[str]
    takes_any: bool
    """Whether it takes every name."""


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
        yield inspect.Parameter(
            name, parameter.KEYWORD_ONLY, default=signatures.Text("..."), annotation=_annotation(kind)
        )


def _annotation(hint: Any) -> Any:
    return hint if hint is inspect.Parameter.empty else signatures.Text(signatures.type_text(hint))


def checked(function: Callable[_Taken, _Returned]) -> Callable[_Taken, _Returned]:
    """FUNCTION, which raises SpecError where arguments do not fit."""

    @wraps(function)
    def call(*args: _Taken.args, **kwargs: _Taken.kwargs) -> _Returned:
        owner = [arg.__name__ for arg in args[:1] if isinstance(arg, type)]
        where = ".".join([*owner, function.__name__]).removesuffix(".__new__")
        if problems := list(misfits(function, where, args, kwargs)):
            raise SpecError(problems)
        return function(*args, **kwargs)

    return shown(call)


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _misfit(kind: Any, value: Any) -> Iterator[Problem]:
    """What is wrong with a value by itself that is to be of a type of fields."""
    try:
        _reader(kind).validate_python(value)
    except ValidationError as error:
        for detail in errors_in(error):
            fault = fault_of(detail["type"], value, detail.get("ctx") or {}, detail["msg"])
            yield fault.rule.at("", f"{value_text(value)} {fault.wrong}", fault.fix)


def misfits(
    function: Callable[..., Any], where: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> Iterator[Problem]:
    """What is wrong with the arguments of a call; `where` begins the paths."""
    takes = _parameters_of(function)
    names = [name for name in takes.hints if name not in ("self", "cls")]
    if len(args) > len(takes.by_position):
        own = " and ".join(name for name in takes.by_position if name in names)
        yield NOT_ALLOWED.at(where, f"takes {own or 'nothing'} by position", "give every other argument by its name")
    by_name = dict(zip(takes.by_position, args, strict=False))
    for name in by_name.keys() & kwargs.keys():
        yield NOT_ALLOWED.at(f"{where}.{name}", "is given by position and by name", "give it once")
    for name, value in {**by_name, **kwargs}.items():
        path = f"{where}.{name}"
        if name in takes.hints:
            yield from (problem.at(path) for problem in _unfit(value, takes.hints[name]))
        elif not takes.takes_any:
            near = nearest(name, names)
            fix = f"did you mean {near}?" if near else f"use one of {', '.join(names)}"
            yield UNKNOWN_FIELD.at(path, "is not a known argument", _in_a_model(name, takes.hints) or fix)
    for name in takes.required:
        if name not in by_name and name not in kwargs:
            yield MISSING.at(f"{where}.{name}", "is missing", f"give {_words(takes.hints[name])}")


def misfits_in(value: object, hints: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """What of a value is not of the types that its attributes are to have; `where` begins the paths."""
    for name, hint in hints.items():
        yield from (problem.at(f"{where}.{name}") for problem in _unfit(getattr(value, name, None), hint))


def _in_a_model(name: str, hints: Mapping[str, Any]) -> str | None:
    """What to give where the name is a field of what another argument takes."""
    for argument, hint in hints.items():
        for kind in _members(hint):
            if is_model(kind) and name in kind.model_fields:
                return f"give it in {argument}: {kind.__name__}({name}=...)"
    return None


@cache
def _parameters_of(function: Callable[..., Any]) -> _Parameters:
    hints: dict[str, Any] = {}
    takes_any = False
    parameters_there = declared(function).parameters
    for name, parameter in parameters_there.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            hints[name] = Any if parameter.annotation is parameter.empty else parameter.annotation
        elif unpacked_types := [of for of in get_args(parameter.annotation) if is_typeddict(of)]:
            hints |= unpacked_types[0].__annotations__
        else:
            takes_any = True
    return _Parameters(
        [name for name, value in parameters_there.items() if value.kind is value.POSITIONAL_OR_KEYWORD],
        hints,
        [name for name, value in parameters_there.items() if name in hints and value.default is value.empty],
        takes_any,
    )


def _unfit(value: Any, hint: Any) -> Iterator[Problem]:
    """Where a value, or a part of it, is not what is taken."""
    fitting = [member for member in _members(hint) if _is_of(value, member)]
    if not fitting:
        yield WRONG_TYPE.at("", f"{_text_of(value)} is given", _fix(value, hint))
        return
    unfit_parts = [list(_unfit_parts(value, fitting_type)) for fitting_type in fitting]
    yield from min(unfit_parts, key=len)


def _unfit_parts(value: Any, hint: Any) -> Iterator[Problem]:
    arguments = get_args(hint)
    if outputs := list(outputs_in_text(value)) if isinstance(value, str) else []:
        yield from outputs
    elif get_origin(hint) is Annotated:
        yield from _misfit(hint, value)
    elif isinstance(value, Mapping) and len(arguments) > 1:
        for key, member in value.items():
            yield from _below(f"[{key}]", chain(_unfit(key, arguments[0]), _unfit(member, arguments[1])))
    elif is_dataclass(value) and not isinstance(value, type):
        for member in fields(value):
            yield from _below(member.name, _unfit(getattr(value, member.name), member.type))
    elif isinstance(value, (list, tuple)) and arguments:
        hints = arguments if get_origin(hint) is tuple else repeat(arguments[0])
        for index, (member, item_type) in enumerate(zip(value, hints, strict=False)):
            yield from _below(f"[{index}]", _unfit(member, item_type))
    elif value == "" and hint is str:
        yield BAD_SYNTAX.at("", "is empty", "give a text, or leave it out")
    else:
        yield from outputs_in_text(value)


def outputs_in_text(value: Any) -> Iterator[Problem]:
    """The texts in plain data, or in a model, that came of an Output in an f-string."""
    if isinstance(value, str):
        if OUTPUT_TEXT in value:
            yield WRONG_TYPE.at("", *IN_TEXT)
        return
    parts = value if isinstance(value, Mapping) else value.__dict__ if hasattr(type(value), "model_fields") else {}
    for name, part in parts.items():
        yield from _below(f"[{name}]" if parts is value else name, outputs_in_text(part))
    for index, part in enumerate(value if isinstance(value, (list, tuple)) else ()):
        yield from _below(f"[{index}]", outputs_in_text(part))


def _below(path: str, problems: Iterable[Problem]) -> Iterator[Problem]:
    return (problem.at(path) for problem in problems)


def _members(hint: Any) -> list[Any]:
    """The types of which a value is to be one."""
    if get_origin(hint) in (Union, UnionType):
        return [member_type for member in get_args(hint) for member_type in _members(member)]
    # What a generic component takes, it compares by itself.
    return [Any if isinstance(hint, TypeVar) else hint]


def _is_of(value: Any, hint: Any) -> bool:
    hint = _plain(hint)
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return value in arguments
    if isinstance(origin, ForwardRef):
        return is_late(value) and not inspect.iscoroutine(value)  # Of `pulumi.Input`.
    if origin is Awaitable:
        return isinstance(value, Awaitable) and not inspect.iscoroutine(value)
    if origin is Any:
        return True
    if is_typeddict(origin):
        return isinstance(value, Mapping)
    if origin is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str)
    if isinstance(value, bool) and origin in (int, float):
        return False
    if origin is tuple and arguments:
        return isinstance(value, (list, tuple)) and len(value) == len(arguments)
    return not isinstance(origin, type) or isinstance(value, (int, float) if origin is float else origin)


def _plain(hint: Any) -> Any:
    """The type without what it asks of its values."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _text_of(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__} itself"
    if isinstance(value, (str, int, float)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return _WORDS.get(type(value)) or with_article(type(value).__name__)


def _fix(value: object, hint: Any) -> str:
    """What to give instead of a value."""
    if isinstance(value, type):
        return f"make one: {value.__name__}(...)"
    type_words, takes_late = _words(hint), any(get_origin(member) is Awaitable for member in _members(hint))
    if inspect.iscoroutine(value) and takes_late:
        return "give pulumi.Output.from_input(...) of it, which can be used more than once"
    if is_late(value):
        return f"give {type_words}, which has to be known before"
    if is_of_pulumi(type(value)) and takes_late:
        return f"give {type_words}: an output of it, such as its name"
    return f"give {type_words}"


def _words(hint: Any) -> str:
    """The types in words; what is known later is not named beside what it is of."""
    late = (NoneType, Awaitable)
    members = [
        member for member in _members(hint) if (get_origin(member) or member) not in late and not _is_output(member)
    ]
    return " or ".join(dict.fromkeys(map(_word, members))) or "a value"


def _is_output(hint: Any) -> bool:
    return isinstance(hint, ForwardRef) or getattr(get_origin(hint), "__name__", "") == "Output"


def _word(hint: Any) -> str:
    hint = _plain(hint)
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return "a value"
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin in (Sequence, list, Mapping, dict) and arguments and arguments[-1] is not Any:
        part = "value" if origin in (Mapping, dict) else "item"
        return f"{_WORDS[origin]}, each {part} {_words(arguments[-1])}"
    if origin is tuple:
        return f"a list of {len(arguments)}: {', '.join(map(_words, arguments))}"
    type_word = f"pulumi.{origin.__name__}" if origin.__module__.partition(".")[0] == "pulumi" else origin.__name__
    return _WORDS.get(origin) or with_article(type_word)
