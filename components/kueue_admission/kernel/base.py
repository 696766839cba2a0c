"""The base of every model: `SpecModel`, `RuledModel` and scalar types that accept only what they say.

A `SpecModel` is frozen, has camelCase outside and snake_case inside, and refuses unknown fields; a `RuledModel` has
rules that need more than one field too. No type takes text for a number, or a number for text.
"""

from collections.abc import Iterator, Mapping
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, dataclass_transform

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    Strict,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kueue_admission.kernel import signatures, syntax
from kueue_admission.kernel.described import Described, formerly
from kueue_admission.kernel.form_rules import NOT_ALLOWED, listed_twice
from kueue_admission.kernel.messages import errors_in, explain, in_new_names, problems_of, warn_in_program
from kueue_admission.kernel.problem import (
    Problem,
    SpecError,
    errors_of,
    where_read,
)
from kueue_admission.kernel.unknown import NotKnownError

DEFER_RULES = "defer_rules"
"""Key of the validation context: the parser sets it to run the rules itself, so that one bad field hides no others."""
IS_STORED = "is_stored"
"""Key of the validation context: a cluster has accepted the object already, so names are not checked."""


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class _Metaclass(ModelMetaclass):
    """Reports mistakes in a program in the words used for files, instead of pydantic's."""

    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805  (of a class, the class is itself)
            fields |= _named(cls, args, fields)
            while True:
                try:
                    return super().__call__(**fields)
                except ValidationError as wrong:
                    fields, old_names = in_new_names(wrong, cls, fields, in_python=True)
                    problems = old_names or problems_of(wrong, cls, fields, in_python=True)
                problems = [problem.at(cls.__name__) for problem in problems]
                if not old_names:
                    raise SpecError(problems)
                warn_in_program(problems)

        @property
        def __signature__(cls) -> Signature:  # noqa: N805
            """What `help()` and editors show."""
            return signatures.of_model(cls)

        @__signature__.setter
        def __signature__(cls, value: object) -> None:  # noqa: N805
            """Pydantic's has the names of files, and validators."""


def _named(model: type[BaseModel], values: tuple[Any, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a program gives by their position, by the names of the fields. Raises SpecError."""
    if not values:
        return {}
    names = [name for name, field in model.model_fields.items() if field.kw_only is False]
    if len(values) > len(names):
        wrong = f"takes {' and '.join(names) or 'nothing'} by position"
        raise SpecError([NOT_ALLOWED.at(model.__name__, wrong, "give every other field by its name")])
    value_by_name = dict(zip(names, values, strict=False))
    if twice := sorted(value_by_name.keys() & fields.keys()):
        path = f"{model.__name__}.{twice[0]}"
        raise SpecError([NOT_ALLOWED.at(path, "is given by position and by name", "give it once")])
    return value_by_name


class SpecModel(Described, BaseModel, metaclass=_Metaclass):
    """A frozen model whose fields are written in camelCase in files and in snake_case in Python.

    Making one raises SpecError, with every problem, where a field or a rule is broken.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,
    )

    read_whole: ClassVar[bool] = False
    """Whether a file's part that does not fit the model in full is left out as one: it is used as a whole."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise NotKnownError(f"{type(self).__name__}.{name} could not be read")
            if not name.startswith("_") and (new := formerly(name, type(self), in_python=True)):
                return getattr(self, new)
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            path, wrong = f"{type(self).__name__}.{name}", "is set afterwards"
            raise SpecError([NOT_ALLOWED.at(path, wrong, "give it where the model is made")])

        def __delattr__(self, name: str) -> None:
            path = f"{type(self).__name__}.{name}"
            raise SpecError([NOT_ALLOWED.at(path, "is deleted", "leave it out where the model is made")])

        __iter__ = None
        """Pydantic's gives the fields, and so lets a model pass where a list of models is needed."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with other values in some fields.

        Raises:
            SpecError: `update` has what is not a field, or a value that does not fit. Rules across fields are checked
                where the copy is used.
        """
        if not update:
            return super().model_copy(deep=deep)
        names = {field.alias: name for name, field in type(self).model_fields.items()}
        update = {names.get(name, name): value for name, value in update.items()}
        fields = {**{name: self.__dict__[name] for name in self.__dict__.keys() & self.model_fields_set}, **update}
        try:
            read = type(self).model_validate(fields, by_name=True, context={DEFER_RULES: True})
        except ValidationError as error:
            renamed, old_names = in_new_names(error, type(self), update, in_python=True)
            if old_names:
                warn_in_program(problem.at(type(self).__name__) for problem in old_names)
                return self.model_copy(update=renamed, deep=deep)
            wrong = [detail for detail in errors_in(error) if detail["loc"][0] in update]
            if wrong:
                where = type(self).__name__
                problems = [
                    problem for detail in wrong for problem in explain(detail, type(self), fields, in_python=True)
                ]
                raise SpecError(problem.at(where) for problem in problems) from None
        else:
            update = {name: read.__dict__[name] for name in update}
        model_there = super().model_copy(update=update, deep=deep)
        for cache_name in model_there.__dict__.keys() - type(self).model_fields:
            del model_there.__dict__[cache_name]
        return model_there

    def wire(self) -> dict[str, Any]:
        """The model as plain data in Kubernetes' spelling; fields that were left out stay out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def to_yaml(self) -> str:
        """The model as a file has it, without values that are the default; each entry begins with its name."""
        from kueue_admission.kernel.yaml_text import dump_yaml  # Most who make models never write one.

        short = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return dump_yaml(_name_first(short))


def _name_first(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _name_first(item_value)
            for key, item_value in sorted(value.items(), key=lambda item: item[0] != "name")
        }
    return [_name_first(item) for item in value] if isinstance(value, list) else value


class RuledModel(SpecModel):
    """A model with rules across its fields. Making one that breaks a rule raises SpecError."""

    def own_problems(self) -> Iterator[Problem]:
        """Every broken rule of this object alone, warnings too; paths are relative to the object.

        Models in its fields have their own rules: `model_problems.problems_in` finds both.
        """
        yield from ()

    @where_read
    def listed_once(self, field: str, noun: str) -> Iterator[Problem]:
        """The problem of each value that a list in `field` has twice; `noun` is what messages call one."""
        values = getattr(self, field) or ()
        for index, value in enumerate(values):
            if value in values[:index]:
                yield listed_twice(f"{type(self).model_fields[field].alias or field}[{index}]", value, noun)

    @model_validator(mode="after")
    def _raise_own_problems(self, info: ValidationInfo) -> Self:
        if isinstance(info.context, dict) and info.context.get(DEFER_RULES):
            return self
        problems = errors_of(self.own_problems())
        if problems:
            raise PydanticCustomError(
                "rules", "{text}", {"text": "\n".join(str(problem) for problem in problems), "problems": problems}
            )
        return self


class _Syntax:
    """Metadata of a field. Pydantic's AfterValidator would look at the function's signature for each field."""

    def __init__(self, check: syntax.Check) -> None:
        self._check = check

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._validate, handler(source))

    def _validate(self, value: str, info: ValidationInfo) -> str:
        fault = None if info.context and info.context.get(IS_STORED) else self._check(value)
        if fault is not None:
            raise fault.error()
        return value


def syntax_of(check: syntax.Check) -> _Syntax:
    """A validator that refuses text in which `check` finds a fault."""
    return _Syntax(check)


Text = Annotated[str, Strict()]
"""Text; a bare number or a bare true/false is refused, since YAML would change its spelling."""
Whole = Annotated[int, Strict()]
"""A whole number; text and true/false are refused."""
Int32 = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1)]
"""A whole number of 32 bits, as Kubernetes has it."""
Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
"""A whole number of 32 bits that is not negative."""
AtLeastOne = Annotated[Count, Field(ge=1)]
"""A whole number above 0."""
Flag = Annotated[bool, Strict()]
"""true or false; `yes`, `on`, 1 and "true" are refused."""
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
"""A finite number; text is refused."""

DnsLabel = Annotated[str, Strict(), syntax_of(syntax.dns_label)]
"""A DNS label of RFC 1123: lower-case letters, digits and hyphens, at most 63."""
DnsSubdomain = Annotated[str, Strict(), syntax_of(syntax.dns_subdomain)]
"""A DNS subdomain of RFC 1123: DNS labels joined by dots, at most 253 characters; Kubernetes' usual object name."""
LabelKey = Annotated[str, Strict(), syntax_of(syntax.label_key)]
"""A label key: an optional DNS subdomain and a slash, then a name of at most 63 characters."""
LabelValue = Annotated[str, Strict(), syntax_of(syntax.label_value)]
"""A label value: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; or empty."""
