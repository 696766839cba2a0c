"""One object as a program asks for it: judged, with the objects that it refers to.

A reference is good where it was given as a component, or where a component of that kind and name is in
`opts.depends_on`. Of any other, which may be there without this program, it is said that it is not checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args
from weakref import WeakSet

import pulumi
from pulumi.runtime.settings import get_monitor

from kueue_admission.kernel import Problem, SpecError, syntax
from kueue_admission.kernel.base import SpecModel
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_admission.kernel.names import KUEUE_API
from kueue_admission.kernel.problem import item_labels, join_path
from kueue_admission.kernel.read_model import read_model, read_stored
from kueue_admission.kernel.references import ObjectName, RefersTo
from kueue_fleet.component import Component, is_judged, judge
from kueue_fleet.fleet_file.alone import check_object
from kueue_fleet.fleet_file.rules.commands import COMPONENT, NOT_CHECKED
from kueue_fleet.kueue_components.applied_objects import provider_of
from kueue_fleet.kueue_components.whole_program import is_late, note_reference

Key = tuple[str, str]
"""Kind and name of an object."""
_SAID: "WeakSet[Any]" = WeakSet()
"""Programs that have been warned that an object has no provider."""
_HEAD = ("apiVersion", "kind", "metadata", "status")


class ObjectForm:
    """Of what form the object of a component is."""

    kind: ClassVar[str]
    """Kind of the object."""
    api_version: ClassVar[str] = KUEUE_API
    """Its `apiVersion`."""
    namespaced: ClassVar[bool] = False
    """Whether the object is in a namespace."""
    model: ClassVar[type[SpecModel]]
    """Model of the spec."""
    render: ClassVar[Callable[[str, Any], Manifest]]
    """Makes the object of its name and the model."""
    name_syntax: ClassVar[syntax.Check] = syntax.dns_subdomain
    """What names Kubernetes, or Kueue, takes."""


@dataclass(frozen=True)
class Asked:
    """An object that is to be declared."""

    manifest: Manifest
    """The object."""
    where: str
    """What messages call it: its kind and name."""
    declared: Mapping[Key, pulumi.Resource]
    """What it refers to of this program, by kind and name."""
    opts: pulumi.ResourceOptions | None
    """Options of the component."""
    named: Sequence[tuple[str, Key]] = ()
    """Path, and kind and name, of what it refers to by name alone."""

    @property
    def after(self) -> list[pulumi.Resource]:
        """What the object has to wait for, beside what the component's options say."""
        return [resource for resource in self.declared.values() if resource not in _needed(self.opts)]

    def compare(self, component: Component) -> None:
        """Say where the component of another cluster's object is referred to, as far as providers tell."""
        own = provider_of(component)
        for path, key in self.named:
            note_reference(own, path, *key)
        for (kind, name), other in self.declared.items():
            if provider_of(other) is not own:
                wrong = f"{kind} {name} has another provider than this {component.pulumi_type.rpartition(':')[2]}"
                fix = "give both the provider of their cluster"
                pulumi.log.warn(NOT_CHECKED.at(self.where, wrong, fix).coded)


def asked_for(
    component: type[ObjectForm],
    spec: SpecModel | Manifest,
    name: str,
    object_name: str | None,
    opts: pulumi.ResourceOptions | None,
    needs: Mapping[Key, pulumi.Resource] | None = None,
    render: Callable[[str, Any], Manifest] | None = None,
) -> Asked:
    """The object: what the component renders of a model or plain data, or `spec` if it is a manifest.

    It is called `object_name`, or else `name`; a manifest has its own name.

    Outside of a fleet, which judges it, the rules of the fleet file for one object are run.

    Raises:
        SpecError: what is given is not for this component, or breaks rules, with every problem.
    """
    if isinstance(spec, Mapping) and {"apiVersion", "kind"} & set(spec):
        return _asked_whole(component, spec, object_name, opts, needs or {})
    name = object_name or name
    where = f"{component.kind} {name}"
    model = component.model
    if isinstance(spec, Mapping):
        spec = read_model(model, spec, where)
    elif not isinstance(spec, model) or set(type(spec).model_fields) - set(model.model_fields):
        raise SpecError([COMPONENT.at(where, f"a {type(spec).__name__} is given", f"give a {model.__name__}")])
    judge(_problems(component, spec, name, where), opts)
    return Asked((render or component.render)(name, spec), where, *_declared(spec, where, opts, needs or {}))


def _asked_whole(
    component: type[ObjectForm],
    manifest: Manifest,
    object_name: str | None,
    opts: pulumi.ResourceOptions | None,
    needs: Mapping[Key, pulumi.Resource],
) -> Asked:
    """The same for a whole manifest, which stays as it is."""
    kind, name = component.kind, inside(manifest, "metadata").get("name")
    if manifest.get("kind") != kind or not isinstance(name, str) or "apiVersion" not in manifest:
        wrong = f"a manifest of kind {manifest.get('kind')!r} with the name {name!r} is given"
        raise SpecError([COMPONENT.at(kind, wrong, f"give one of kind {kind} with an apiVersion and a metadata.name")])
    where, namespace = f"{kind} {name}", manifest["metadata"].get("namespace")
    if object_name not in (None, name):
        wrong = f"is {object_name}, and the manifest's name is {name}"
        raise SpecError([COMPONENT.at(f"{where}.object_name", wrong, "remove it")])
    if component.namespaced is (namespace is None):
        wrong, fix = (
            ("is missing", "add it") if namespace is None else (f"is {namespace}, and it is in none", "remove it")
        )
        raise SpecError([COMPONENT.at(f"{where}.metadata.namespace", wrong, fix)])
    if is_late(manifest) or manifest.get("apiVersion") != component.api_version:
        wrong = f"is not checked, since values in it come later or are not of {component.api_version}"
        pulumi.log.info(NOT_CHECKED.at(where, wrong, "write them, or give a model").coded)
        return Asked(manifest, where, needs, opts)
    body = {key: value for key, value in manifest.items() if key not in _HEAD}
    read = read_stored if is_judged(opts) else read_model
    model = read(component.model, body.get("spec", body), where)
    judge(_problems(component, model, name, where), opts)
    return Asked(manifest, where, *_declared(model, where, opts, needs))


def _problems(component: type[ObjectForm], model: SpecModel, name: str, where: str) -> Iterator[Problem]:
    """What is wrong with the name and the model; found when it is asked for, which within a fleet it is not."""
    wrong = list(syntax_problems(where, name, component.name_syntax))
    yield from wrong or check_object(model, name, where)


def _declared(
    model: SpecModel, where: str, opts: pulumi.ResourceOptions | None, needs: Mapping[Key, pulumi.Resource]
) -> tuple[dict[Key, pulumi.Resource], pulumi.ResourceOptions | None, list[tuple[str, Key]]]:
    """The objects of this program that it refers to, the options, and references by name, which are reported."""
    there = dict(needs)
    for needed_resource in _needed(opts):
        there |= getattr(needed_resource, "declares", {})
    resources_by_key: dict[Key, pulumi.Resource] = {}
    named_keys: list[tuple[str, Key]] = []
    for path, kind, object_name in _references_in(model, where):
        key = (kind, str(object_name))
        declared_resource = object_name.declared if isinstance(object_name, ObjectName) else there.get(key)
        if isinstance(declared_resource, pulumi.Resource):
            resources_by_key[key] = declared_resource
        elif key not in resources_by_key and not is_judged(opts):
            wrong = f"whether there is a {' '.join(key)} is not checked"
            fix = f"give the component of the {key[0]} for its name, if this program has it"
            pulumi.log.info(NOT_CHECKED.at(path, wrong, fix).coded)
            named_keys.append((path, key))
    return resources_by_key, opts, named_keys


def _needed(opts: pulumi.ResourceOptions | None) -> list[Any]:
    """What the options say that a component needs, without what is known later."""
    after = opts.depends_on if opts is not None else None
    return [item for item in (after if isinstance(after, list) else [after]) if isinstance(item, pulumi.Resource)]


def say_default_provider(where: str) -> None:
    """Say once in a program that objects go to whatever cluster is current, unless the stack's config names one."""
    monitor, config = get_monitor(), pulumi.Config("kubernetes")
    if monitor not in _SAID and config.get("kubeconfig") is None and config.get("context") is None:
        _SAID.add(monitor)
        wrong = "has no provider, so which cluster it goes to is not checked: that of the current kubeconfig"
        pulumi.log.info(NOT_CHECKED.at(where, wrong, "give opts=pulumi.ResourceOptions(provider=...)").coded)


def _references_in(model: SpecModel, path: str = "") -> Iterator[tuple[str, str, str]]:
    """The objects that `model` names, in its own fields and in those of models in it; not those in lists of names: the
    field, the kind, and the name, an `ObjectName` where it was given as what declares it."""
    for name, field in type(model).model_fields.items():
        value, here = model.__dict__.get(name), join_path(path, field.alias or name)
        if isinstance(value, str):
            parts = (field.metadata, *(getattr(part, "__metadata__", ()) for part in get_args(field.annotation)))
            for refers in (reference for part in parts for reference in part if isinstance(reference, RefersTo)):
                yield here, refers.kind, value
        elif isinstance(value, SpecModel):
            yield from _references_in(value, here)
        elif isinstance(value, tuple) and value and isinstance(value[0], SpecModel):
            for item, label in zip(value, item_labels([item.__dict__.get("name") for item in value]), strict=True):
                yield from _references_in(item, f"{here}[{label}]")
