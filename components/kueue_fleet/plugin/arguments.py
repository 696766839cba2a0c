"""What each component takes from a program in another language, read off its constructor.

A pydantic model of its arguments, and the arguments themselves, checked, in the constructor's own types; or SpecError
with every problem, paths beginning with the input. Arguments that are resources are left out: other languages order
things with the option `dependsOn`.
"""

import inspect
import types
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, TypeVar, Union, cast, get_args, get_origin

import pulumi
from pulumi.runtime import rpc
from pydantic import Field, TypeAdapter, WithJsonSchema, create_model

from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.arguments import declared
from kueue_admission.kernel.base import Flag, SpecModel, Text
from kueue_admission.kernel.problem import join_path
from kueue_admission.kernel.read_model import read_model
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.kueue_installation import whole_numbers
from kueue_fleet.fleet_file.rules.commands import NOT_PLAIN
from kueue_fleet.fleet_inputs import read_spec

INPUT_MARK = "x-pulumi-input"
"""Key in the JSON schema of an argument that may be another resource's output; all others are plain."""
_NOT_ARGUMENTS = frozenset({"self", "name", "opts"})


def arguments_of(component: type[Any]) -> type[SpecModel]:
    """The model of a component's arguments: fields as the constructor has them, camelCase outside."""
    arguments_by_name: dict[str, Any] = {}
    for parameter in _parameters(component):
        name, kind = parameter.name, _argument_type(parameter.annotation)
        if kind is None:
            continue
        default = None if _may_be_none(parameter.annotation) else ...
        arguments_by_name[name] = (kind, default if parameter.default is parameter.empty else parameter.default)
    return _model(f"{component.__name__}Arguments", f"The arguments of {component.__name__}.", arguments_by_name)


def read_arguments(component: type[Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's keyword arguments, from the properties `inputs` in camelCase.

    Whole numbers that came as floats are whole again. Raises SpecError with every problem.
    """
    model = arguments_of(component)
    names = {field.alias or name: name for name, field in model.model_fields.items()}
    problems: list[Problem] = []
    data: dict[str, Any] = {}
    for key, value in inputs.items():
        field = model.model_fields.get(names.get(key, ""))
        may_be_output = field is not None and _has_input(field.metadata, field.annotation)
        outputs = [] if may_be_output else list(_outputs_in(value, key))
        problems += [_not_plain(path) for path in outputs]
        data[key] = value if may_be_output else whole_numbers(value)
        if field is not None and field.annotation is FleetSpec and not outputs:
            try:
                data[key] = read_spec(data[key])
            except SpecError as error:
                problems += [problem.at(key) for problem in error.problems]
    if problems:
        raise SpecError(problems)
    read = read_model(model, data)
    return {
        parameter.name: _argument(parameter.annotation, getattr(read, parameter.name))
        for parameter in _parameters(component)
        if parameter.name in read.model_fields_set
        or (parameter.name in model.model_fields and parameter.default is parameter.empty)
    }


def _parameters(component: type[Any]) -> Iterator[inspect.Parameter]:
    """The constructor's parameters, but for those that every component has."""
    for name, parameter in declared(component.__init__).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from _unpacked(parameter.annotation)
        elif name not in _NOT_ARGUMENTS:
            members = _members(parameter.annotation)
            if any(isinstance(member, TypeVar) for member in members):
                own = [component.model if isinstance(member, TypeVar) else member for member in members]
                parameter = parameter.replace(annotation=reduce(or_, own))
            yield parameter


def inputs_of(component: type[Any]) -> type[Any] | None:
    """The TypedDict that the constructor unpacks its last arguments into, if it has one."""
    for parameter in declared(component.__init__).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            [unpacked_type] = get_args(parameter.annotation)
            return cast("type[Any]", unpacked_type)
    return None


def _unpacked(annotation: Any) -> Iterator[inspect.Parameter]:
    """The arguments of a TypedDict, all of which may be left out."""
    for name, kind in get_args(annotation)[0].__annotations__.items():
        default = False if kind is bool else None
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _argument(annotation: Any, value: Any) -> Any:
    """The value in the type that the constructor has."""
    for member in _members(annotation):
        if get_origin(member) is Mapping and isinstance(value, dict):
            return {key: _argument(get_args(member)[1], item) for key, item in value.items()}
        if is_dataclass(member) and isinstance(member, type) and isinstance(value, SpecModel):
            return member(**{name: getattr(value, name) for name in value.model_fields_set})
        if get_origin(member) is Sequence and get_origin(get_args(member)[0]) is tuple:
            return [tuple(item) for item in value]
    return value


def _argument_type(annotation: Any) -> Any:
    """The type of an argument in the model; None for what other languages cannot give."""
    if _is_input(annotation):
        return _input_type(annotation)
    members = [member for member in _members(annotation) if member is not NoneType]
    # A manifest is the other way to say what the model says.
    members = [m for m in members if not _is_plain(m)] or members
    # So is a component, of what it gives out.
    members = [m for m in members if not _is_resource(m)] or members
    kinds = [_member_type(member) for member in members]
    if any(kind is None for kind in kinds):
        return None
    kind = reduce(or_, kinds)
    return kind | None if _may_be_none(annotation) else kind


def _is_plain(member: Any) -> bool:
    """Whether it is a map of anything, such as a manifest."""
    member = get_args(member)[0] if get_origin(member) is Annotated else member
    return get_origin(member) in (dict, Mapping) and get_args(member)[-1] is Any


def _member_type(member: Any) -> Any:
    origin, arguments = get_origin(member), get_args(member)
    if get_origin(member) is Annotated and get_args(member)[0] is str:
        return member
    if get_origin(member) is Annotated:
        return _member_type(get_args(member)[0])
    if member is str:
        return Text
    if member is bool:
        return Flag
    if _is_plain(member):
        return dict[str, Any]
    if origin is tuple:
        return Annotated[list[Text], Field(min_length=len(arguments), max_length=len(arguments))]
    if origin in (Sequence, list, Mapping):
        inner: Any = _argument_type(arguments[-1])
        if inner is None:
            return None
        return types.GenericAlias(dict, (str, inner)) if origin is Mapping else types.GenericAlias(list, (inner,))
    if isinstance(member, type) and issubclass(member, SpecModel):
        return member
    if isinstance(member, type) and is_dataclass(member):
        return _model_of_dataclass(member)
    if _is_resource(member):
        return None
    raise TypeError(f"{member}: no rule says how another language gives this")


def _is_resource(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, pulumi.Resource)


@cache
def _model_of_dataclass(kind: type[Any]) -> type[SpecModel]:
    fields_by_name: dict[str, Any] = {}
    for field in fields(kind):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        fields_by_name[field.name] = (_argument_type(field.type), ... if default is MISSING else default)
    return _model(kind.__name__, kind.__doc__ or "", fields_by_name)


def _model(name: str, doc: str, fields_by_name: Mapping[str, Any]) -> type[SpecModel]:
    model: type[SpecModel] = create_model(name, __base__=SpecModel, __doc__=doc, **dict(fields_by_name))
    return model


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _may_be_none(annotation: Any) -> bool:
    return NoneType in _members(annotation)


def _is_input(annotation: Any) -> bool:
    """Whether it is `pulumi.Input[T]`, which is a union with a forward reference to Output."""
    return any(isinstance(member, ForwardRef) for member in _members(annotation))


def _input_type(annotation: Any) -> Any:
    schema = TypeAdapter(_when_known(annotation)).json_schema()
    return Annotated[Any, WithJsonSchema({**schema, INPUT_MARK: True})]


def _when_known(annotation: Any) -> Any:
    """The type of a value, and of what is in a map, once it is known."""
    if get_origin(annotation) is Mapping:
        key, value = get_args(annotation)
        return types.GenericAlias(Mapping, (key, _when_known(value)))
    members = [member for member in _members(annotation) if member is not NoneType]
    if len(members) == 1:
        return annotation
    plain = [m for m in members if not isinstance(m, ForwardRef) and get_origin(m) is not Awaitable]
    return reduce(or_, map(_when_known, plain))


def _has_input(metadata: Sequence[Any], annotation: Any) -> bool:
    if any(isinstance(mark, WithJsonSchema) and INPUT_MARK in (mark.json_schema or {}) for mark in metadata):
        return True
    return any(_has_input(getattr(part, "__metadata__", ()), part) for part in get_args(annotation))


def _outputs_in(value: Any, path: str) -> Iterator[str]:
    """Paths at which the value is not known to the program that gives it."""
    if isinstance(value, pulumi.Output) or value is rpc.UNKNOWN or isinstance(value, pulumi.output.Unknown):
        yield path
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _outputs_in(part, join_path(path, str(key)))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _outputs_in(part, f"{path}[{index}]")


def _not_plain(path: str) -> Problem:
    return NOT_PLAIN.at(
        path,
        "is a secret or comes from another resource, but it decides what is declared",
        "write the value itself, or take it from the stack's config",
    )
