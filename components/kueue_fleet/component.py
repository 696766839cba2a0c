"""What all components have in common: their options, their outputs, and the rules of the fleet file on what they take.

A fleet judges itself as a whole; a component outside of one judges what it is given, when it is declared.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from types import NoneType, UnionType
from typing import Any, ForwardRef, Union, get_args, get_origin

import pulumi
from pydantic.alias_generators import to_camel

from kueue_admission.kernel import Problem, SpecError, errors_of
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.model.gcp_names import GcpLabelKey, GcpLabelValue
from kueue_fleet.in_programs import OwnComponent, claim, components_above, declared_names

Labels = Mapping[GcpLabelKey, pulumi.Input[GcpLabelValue]]
"""Labels in Google Cloud."""
Schema = dict[str, Any]
"""A part of a Pulumi package's schema."""


class Component(OwnComponent):
    """A component; subclasses say of what type."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith(f"{__package__}.") and not cls.__name__.startswith("_"):
            cls.pulumi_type = f"{PRODUCT}:index:{cls.__name__}"

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        """Register the component.

        Raises:
            SpecError: another one has its URN.
        """
        self._above = opts.parent if opts else None
        within = [self, *components_above(opts)]
        types, above = [component_there.pulumi_type for component_there in within], within[-1]._above
        where = f"{type(self).__name__} {name}"
        wrong = "has the URN of another component, which is of the types of its parents and not of their names"
        if above is None:
            claim((*types, name), where, wrong)
        else:
            names = declared_names()
            above.urn.apply(lambda urn: claim((*types, urn.split("::")[2], name), where, wrong, names=names))
        super().__init__(self.pulumi_type, name, None, opts)

    def _give_out(self, *kept: str) -> None:
        """End the component, with its outputs; `kept` are names of those that a state has once already."""
        self.register_outputs({name: value for name, value in state_of(self) if name not in kept})
        self._is_whole = True


def is_judged(opts: pulumi.ResourceOptions | None) -> bool:
    """Whether the component of these options is a part of what judged all of it."""
    return any(above.judges_whole and not above._is_whole for above in components_above(opts))


def judge(problems: Iterable[Problem], opts: pulumi.ResourceOptions | None) -> None:
    """Log the warnings about a component outside of a fleet. Raises SpecError where there are errors."""
    if is_judged(opts):
        return
    all_problems = list(problems)
    if errors_of(all_problems):
        raise SpecError(all_problems)
    for problem in all_problems:
        pulumi.log.warn(problem.coded)


def judge_late(problems: Iterable[Problem], opts: pulumi.ResourceOptions | None) -> None:
    """The same from within Pulumi, of what is known later: raises RunError, since Pulumi wraps other errors."""
    try:
        judge(problems, opts)
    except SpecError as wrong:
        raise pulumi.RunError(str(wrong)) from None


def today() -> date:
    """The day on which the program runs."""
    return datetime.now(UTC).date()  # noqa: TID251  (a program runs once, and now)


def check_labels(labels: Labels | None) -> Iterator[Problem]:
    """What the rules of the file say of labels, as far as they are known."""
    return check_alone("labels", {key: value for key, value in (labels or {}).items() if isinstance(value, str)})


def state_of(component_there: pulumi.ComponentResource) -> Iterator[tuple[str, Any]]:
    """The outputs that `component_there` has, by their names in camelCase."""
    component: type[Any] = type(component_there)
    for attribute in data_of(component):
        value = getattr(component_there, attribute, None)
        if value is not None:
            yield to_camel(attribute), value


_DATA: "dict[type[Any], dict[str, tuple[type[Any], Schema]]]" = {}


def data_of(component: type[Any]) -> dict[str, tuple[type[Any], Schema]]:
    """The attributes and properties of a component that are data, by name: the class that has it, and its type.

    Resources are not data; an annotation in quotes is that of one.
    """
    if component not in _DATA:
        _DATA[component] = _data_of(component)
    return _DATA[component]


def _data_of(component: type[Any]) -> dict[str, tuple[type[Any], Schema]]:
    fields_by_name: dict[str, tuple[type[Any], Schema]] = {}
    for base in reversed(component.__mro__):
        if not issubclass(base, pulumi.ComponentResource) or base is pulumi.ComponentResource:
            continue
        annotations = dict(inspect.get_annotations(base))
        for name, attribute in vars(base).items():
            if isinstance(attribute, property) and attribute.fget is not None:
                annotations[name] = inspect.get_annotations(attribute.fget).get("return")
        for name, annotation in annotations.items():
            schema = None if name.startswith("_") else _output_type(annotation)
            if schema is not None:
                fields_by_name[name] = (base, schema)
    return fields_by_name


def _output_type(annotation: Any) -> Schema | None:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is str:
        return {"type": "string"}
    if annotation is bool:
        return {"type": "boolean"}
    if annotation is Any:
        return {"$ref": "pulumi.json#/Any"}
    if origin is pulumi.Output:
        return _output_type(arguments[0])
    if origin in (Union, UnionType):
        members = [
            argument for argument in arguments if argument is not NoneType and not isinstance(argument, ForwardRef)
        ]
        return _output_type(members[0]) if len(members) == 1 else None
    if origin is dict and arguments[0] is str:
        inner = _output_type(arguments[1])
        return {"type": "object", "additionalProperties": inner} if inner else None
    if origin in (list, Sequence):
        inner = _output_type(arguments[0])
        return {"type": "array", "items": inner} if inner else None
    return None
