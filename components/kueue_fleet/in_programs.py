"""What every component does in a Pulumi program: how a mistake ends it, its options, and its name."""

import asyncio
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypedDict, cast, get_origin
from weakref import WeakKeyDictionary

import pulumi
from pulumi.resource import DependencyResource
from pulumi.runtime.settings import get_monitor, get_root_resource

from kueue_admission.kernel import Problem, SpecError, errors_of
from kueue_admission.kernel.arguments import misfits, misfits_in, shown
from kueue_admission.kernel.unknown import OUTPUT_TEXT
from kueue_fleet.fleet_file.rules.commands import COMPONENT


class ProgramError(SpecError, pulumi.RunError):
    """A `SpecError` in a Pulumi program: it ends the program with its text alone, without a traceback."""


SpecError.raised_as = ProgramError


_NAMES: "Final[WeakKeyDictionary[Any, set[Any]]]" = WeakKeyDictionary()
"""What was declared, by the run of a program."""
_OF_RESOURCES: Final = (
    "additional_secret_outputs",
    "custom_timeouts",
    "delete_before_replace",
    "env_var_mappings",
    "hide_diffs",
    "ignore_changes",
    "import_",
    "plugin_download_url",
    "replace_on_changes",
    "replacement_trigger",
    "version",
)
"""Options that components do not pass on. Source: https://www.pulumi.com/docs/iac/concepts/options/."""
_POOLS: "Final[WeakKeyDictionary[Any, set[str]]]" = WeakKeyDictionary()
_PARENT: Final = "\0"
"""Stands for the name of a former parent, which Pulumi knows later."""


class _Options(TypedDict):
    """What Pulumi's options take, as its own docstrings say."""

    parent: pulumi.Resource | None
    depends_on: pulumi.Input[pulumi.Resource] | pulumi.Input[Sequence[pulumi.Input[pulumi.Resource]]] | None
    protect: bool | None
    provider: pulumi.ProviderResource | None
    providers: Sequence[pulumi.ProviderResource] | Mapping[str, pulumi.ProviderResource] | None
    aliases: Sequence[pulumi.Input[str] | pulumi.Alias] | None
    transformations: Sequence[Callable[..., Any]] | None
    transforms: Sequence[Callable[..., Any]] | None
    hooks: pulumi.ResourceHookBinding | None
    custom_timeouts: pulumi.CustomTimeouts | None
    retain_on_delete: bool | None
    deleted_with: pulumi.Resource | None
    replace_with: Sequence[pulumi.Resource] | None


class _Alias(TypedDict):
    """What a `pulumi.Alias` takes."""

    name: str | None
    type_: str | None
    parent: pulumi.Input[str] | pulumi.Resource | None
    stack: pulumi.Input[str] | None
    project: pulumi.Input[str] | None


def run_of_program() -> Any:
    """What one run of a program has for itself: its task; unit tests share a root, and often the mocks."""
    try:
        return asyncio.current_task() or get_monitor()
    except RuntimeError:
        return get_monitor()


def declared_names() -> set[Any]:
    """What the program has claimed."""
    return _NAMES.setdefault(run_of_program(), set())


def claim(
    key: Hashable, where: str, wrong: str, fix: str = "give each its own name", *, names: set[Any] | None = None
) -> None:
    """Raise SpecError, at WHERE, if KEY is among what the program has claimed; later, that is given as `names`."""
    if get_root_resource() is None:
        return
    names = declared_names() if names is None else names
    if key in names:
        raise SpecError([COMPONENT.at(where, wrong, fix)])
    names.add(key)


class Described:
    """The docstring of a component, which `help()` shows with what stands below its attributes in the source."""

    def __init__(self, text: str) -> None:
        """`text` is what stands in the source."""
        self.written = text

    def __get__(self, instance: Any, component: type[Any]) -> str:
        """The docstring, read when it is asked for."""
        from kueue_fleet.fleet_file.schema import field_docs

        ours = [base for base in component.__mro__ if base.__module__.partition(".")[0] == __name__.partition(".")[0]]
        about = {name: text for our in reversed(ours) for name, text in field_docs(our).items() if _is_made(our, name)}
        lines = (f"    {name}: {' '.join(text.split())}" for name, text in about.items())
        return "\n".join((inspect.cleandoc(self.written), "", "Attributes:", *lines)) if about else self.written


def _is_made(component: type[Any], attribute: str) -> bool:
    """Whether each instance has its own."""
    origin: Any = get_origin(inspect.get_annotations(component)[attribute])
    return origin is not ClassVar


def declared_pools() -> set[str]:
    """Names of the node pools of the program, to which a pool adds its own."""
    return _POOLS.setdefault(run_of_program(), set())


class OwnComponent(pulumi.ComponentResource):
    """A component of this library."""

    of_provider: ClassVar[str] = "gcp"
    """The provider of what is in it."""
    pulumi_type: ClassVar[str]
    """Pulumi type of the component: `kueue-fleet:index:` and the class's name, also of what others derive from it."""
    judges_whole: ClassVar[bool] = False
    """Whether its parts were judged with it."""
    _above: pulumi.Resource | None
    """Its parent."""
    _is_whole = False
    """Whether all of its parts are declared: what is put below it then is the program's."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let `help()` show the types of arguments without their validators."""
        super().__init_subclass__(**options)
        if cls.__doc__ and cls.__module__.startswith("kueue_fleet."):
            cls.__doc__ = cast("str", Described(cls.__doc__))
        for var in vars(cls).values():
            function = var.__func__ if isinstance(var, classmethod) else var
            if isinstance(function, FunctionType):
                shown(function)

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            """Check what Python or Pulumi would refuse in their own words, or only in the engine.

            Raises:
                SpecError: arguments or options that do not fit, or the name of another component of this class and
                    parent.
            """
            opts, name = kwargs.get("opts"), args[0] if args else kwargs.get("name")
            readable = isinstance(name, str) and OUTPUT_TEXT not in name
            where = f"{cls.__name__} {name}" if readable else cls.__name__
            return cls._claimed(name, opts, where, misfits(cls.__init__, where, (None, *args), kwargs))

    @classmethod
    def _claimed(cls, name: str, opts: Any, where: str = "", problems: Iterable[Problem] = ()) -> Self:
        """One that is not yet made, if none of its name is, and what it is given has no PROBLEMS.

        Raises:
            SpecError: it has some, options do not fit, or one of its name is there.
        """
        where = where or f"{cls.__name__} {name}"
        is_part = any(not above._is_whole for above in components_above(opts))
        warnings = [] if is_part else [*problems, *_wrong_options(cls, f"{where}.opts", opts)]
        if errors_of(warnings):
            raise SpecError(warnings)
        for warning in warnings:
            pulumi.log.warn(warning.coded)
        parent = (opts and opts.parent) or get_root_resource()
        claim((cls, name, parent), f"{cls.__name__} {name}", "is declared before, with the same parent")
        return super().__new__(cls)


def components_above(opts: Any) -> Iterator[OwnComponent]:
    """The components of the library that one of these options is in, from the inside out."""
    above = getattr(opts, "parent", None)
    while isinstance(above, OwnComponent):
        yield above
        above = above._above


def _wrong_options(component: type[OwnComponent], where: str, opts: Any) -> Iterator[Problem]:
    """What Pulumi would say of options by a traceback, or not at all."""
    if not isinstance(opts, pulumi.ResourceOptions):
        return
    fit, such = True, f"give a provider of {component.of_provider}, such as cluster.provider"
    for problem in misfits_in(opts, _Options.__annotations__, where):
        fit = False
        of_provider = problem.path == f"{where}.provider" or problem.path.startswith(f"{where}.providers[")
        yield replace(problem, fix=such) if of_provider else problem
    for option in _OF_RESOURCES:
        if getattr(opts, option, None):
            fix = "set it by a transform, on the resources in it"
            yield COMPONENT.at(f"{where}.{option}", "has no effect on a component", fix, "warning")
    for option in ("id", "urn"):
        if getattr(opts, option) is not None:
            fix = "use get, which reads what exists" if hasattr(component, "get") else "remove it"
            yield COMPONENT.at(f"{where}.{option}", "is given, and no provider reads a component", fix)
    for index, alias in enumerate(opts.aliases or () if fit else ()):
        yield from _wrong_alias(alias, f"{where}.aliases[{index}]")
    yield from _wrong_providers(component, where, opts) if fit else ()


def _wrong_providers(component: type[OwnComponent], where: str, opts: pulumi.ResourceOptions) -> Iterator[Problem]:
    """Providers that the component does not use, or that Pulumi does not find."""
    fix = f"give a provider of {component.of_provider}"
    if opts.provider is not None and opts.provider.package != component.of_provider:
        yield COMPONENT.at(f"{where}.provider", f"is one of {opts.provider.package}", fix)
    given_for: Any = opts.providers or ()
    packages = {there.package for there in (given_for.values() if isinstance(given_for, Mapping) else given_for)}
    for key, provider in given_for.items() if isinstance(given_for, Mapping) else ():
        if key != provider.package:
            wrong = f"is a provider of {provider.package}, and Pulumi finds none by another key"
            yield COMPONENT.at(f"{where}.providers[{key}]", wrong, "give a list of providers")
    if packages and component.of_provider not in packages:
        wrong = f"are of {', '.join(sorted(packages))}, which has no effect on it"
        yield COMPONENT.at(f"{where}.providers", wrong, fix, "warning")


def _wrong_alias(alias: Any, path: str) -> Iterator[Problem]:
    """What the engine would refuse, or Pulumi fail at."""
    if isinstance(alias, pulumi.Alias):
        given_types = {name: hint for name, hint in _Alias.__annotations__.items() if getattr(alias, name) is not ...}
        yield from misfits_in(alias, given_types, path)
        if _is_no_urn(alias.parent):
            yield COMPONENT.at(f"{path}.parent", f"{alias.parent} is not a URN", "give the component, or its URN")
    elif _is_no_urn(alias):
        yield COMPONENT.at(path, f"{alias} is not a URN", f'give a name as pulumi.Alias(name="{alias}")')


def _is_no_urn(value: object) -> bool:
    return isinstance(value, str) and not value.startswith("urn:")


def below_parent(name: str, opts: pulumi.ResourceOptions | None) -> tuple[str, pulumi.ResourceOptions | None]:
    """Name and options of a component whose Pulumi name begins with that of its parent.

    A URN has the types of all parents and not their names, so two parents of one type need this. A name that begins
    with the parent's already stays: by this prefix Pulumi gives the child of a renamed parent its alias. A parent of
    another process, as a component of another language is, has no name here.

    Each alias is there for every name that the component may have in a stack: an earlier release prefixed none, and
    0.2.0 all of them.
    """
    parent = opts.parent if opts else None
    if opts is None or isinstance(parent, DependencyResource):
        return name, opts
    aliases: list[Any] = []
    for alias in opts.aliases or ():
        aliases += _former(alias, name, parent) if isinstance(alias, pulumi.Alias) else [alias]
    own = name
    if parent is not None:
        above = parent.pulumi_resource_name
        rest = name.removeprefix(above)
        if not name.startswith(above) or rest[:1].isalnum():
            own = f"{above}/{name}"
        aliases += [pulumi.Alias(former_name) for former_name in (name, f"{above}/{name}") if former_name != own]
        if name.startswith(above):
            for urn in parent._aliases:
                aliases += _below(urn, pulumi.Alias(), [f"{_PARENT}/{_PARENT}{rest}"])
    changed_options = opts._copy()
    changed_options.aliases = aliases
    return own, changed_options


def _former(alias: pulumi.Alias, name: str, parent: pulumi.Resource | None) -> Iterator[Any]:
    """The alias of a component that is called NAME in the program, for each name that it may have in a stack."""
    former = alias.name if isinstance(alias.name, str) else name
    where: Any = parent if alias.parent is ... else alias.parent  # type: ignore[comparison-overlap]
    if where is None:
        yield pulumi.Alias(former, alias.type_, alias.parent, alias.stack, alias.project)
        return
    names = [former]
    if former is name and parent is not None and name.startswith(parent.pulumi_resource_name):
        names.append(_PARENT + name.removeprefix(parent.pulumi_resource_name))
    urn = where.urn if isinstance(where, pulumi.Resource) else where
    yield from _below(urn, alias, [*names, *(f"{_PARENT}/{former_name}" for former_name in names)])


def _below(parent: Any, alias: pulumi.Alias, names: Iterable[str]) -> Iterator[Any]:
    """ALIAS with each of these names below the parent of this URN, whose name they may hold."""
    for former_name in names:

        def there(urn: str, each_former_name: str = former_name) -> pulumi.Alias:
            name = each_former_name.replace(_PARENT, urn.split("::", 3)[3])
            return pulumi.Alias(name, alias.type_, urn, alias.stack, alias.project)

        yield pulumi.Output.from_input(parent).apply(there)
