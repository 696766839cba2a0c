"""What the components for Kubernetes objects have in common.

Their objects wait until they are Active where that can be waited for, retry while Kueue's webhooks are not reachable,
and are not deleted one by one when their whole cluster goes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import pulumi

from kueue_admission.api import Manifest
from kueue_admission.forms import SpecError
from kueue_admission.forms.base import SpecModel, problems_in
from kueue_admission.forms.read_model import read_model
from kueue_fleet.fleet_file.fleet_rules import COMPONENT, NOT_PLAIN
from kueue_fleet.in_programs import OwnComponent
from kueue_fleet.kueue.applied_objects import KubernetesObject, is_kueue_object
from kueue_fleet.kueue.webhook_retry import webhook_retry

WAIT_FOR_ANNOTATION = "pulumi.com/waitFor"
"""Read by the Kubernetes provider. Source: https://www.pulumi.com/registry/packages/kubernetes/ (await logic)."""
ACTIVE_CONDITION = "condition=Active"
"""Condition of queues and checks that Kueue has taken on."""
_TIMEOUT = "10m"

_Spec = TypeVar("_Spec", bound=SpecModel)


class Component(OwnComponent):
    """A component of objects in one cluster; subclasses say of what type."""

    pulumi_type: ClassVar[str]
    """Pulumi type of the component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        """Register the component; of its options its objects get `deleted_with`, and inherit provider and `protect`."""
        super().__init__(self.pulumi_type, name, None, opts)
        self.deleted_with = opts.deleted_with if opts else None


class ObjectComponent(Component):
    """A component that is one Kubernetes object; subclasses say which.

    Their `spec` is a model, the same as plain data in Kubernetes' spelling, or a whole manifest with its kind.
    """

    kind: ClassVar[str]
    """Kind of the object."""

    object: KubernetesObject
    """The object."""
    object_name: str
    """Name of the object in the cluster."""

    def _declare(
        self,
        name: str,
        manifest: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None,
        *,
        depends_on: Sequence[pulumi.Resource] = (),
        expect_active: bool = False,
        replace_on_changes: Sequence[str] = (),
    ) -> None:
        """Register the component and its object.

        Args:
            name: Pulumi name of both.
            manifest: the object.
            depends_on: what the object needs beside what the component's options say.
            opts: the component's options.
            expect_active: whether creating and changing the object ends only when its condition Active is True.
            replace_on_changes: paths that Kubernetes does not let change; the object is deleted and made again.
        """
        super().__init__(name, opts)
        self.object = declare_object(
            self,
            name,
            manifest,
            depends_on=depends_on,
            expect_active=expect_active,
            replace_on_changes=replace_on_changes,
        )
        self.object_name = self.object.object_name
        self.register_outputs({"name": self.object_name})


class ModelComponent(ObjectComponent, Generic[_Spec]):
    """A component that is one Kubernetes object and needs nothing but its spec."""

    model: ClassVar[type[SpecModel]]
    """Model of the spec."""
    render: ClassVar[Callable[[str, Any], Manifest]]
    """Makes the object of its name and the model."""
    replaced_by: ClassVar[Sequence[str]] = ()
    """Paths that Kubernetes does not let change; the object is deleted and made again."""

    def __init__(
        self,
        name: str,
        spec: _Spec | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the object, which is called `object_name`, or else `name`."""
        manifest = manifest_of(self.kind, spec, object_name or name, self.model, type(self).render)
        self._declare(name, manifest, opts, replace_on_changes=self.replaced_by)


class OrderedObjects(Component):
    """A component that is several Kubernetes objects, one after the other; subclasses say of what type."""

    objects: list[KubernetesObject]
    """The objects, in the order in which they were given."""

    def __init__(self, name: str, objects: Sequence[Manifest], *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the objects, each after the one before it."""
        super().__init__(name, opts)
        self.objects = []
        for manifest in objects:
            made = declare_object(self, f"{name}/{manifest['kind']}", manifest, depends_on=self.objects[-1:])
            self.objects.append(made)
        self.register_outputs({})


def object_labels(objects: Sequence[Manifest]) -> list[str]:
    """What tells the objects of a component apart in Pulumi names.

    The kind, of one object of each kind that is in the whole cluster or in the namespace of the account: the one that
    is named like the account (where that is Google's, like the ClusterRoleBinding), or else the first. Kind, namespace
    and name of any other. Where an object stands in the list does not change its label, so that its order can change
    without replacing it.
    """
    accounts = {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in objects
        if each["kind"] == "ServiceAccount"
    }
    namespaces, names = {where for where, _ in accounts}, {name for _, name in accounts}
    names = names or {each["metadata"]["name"] for each in objects if each["kind"] == "ClusterRoleBinding"}
    main: dict[str, Manifest] = {}
    for each in objects:
        kind, metadata = each["kind"], each["metadata"]
        if metadata.get("namespace") in (None, *namespaces) and (
            kind not in main or (metadata["name"] in names and main[kind]["metadata"]["name"] not in names)
        ):
            main[kind] = each
    return [each["kind"] if main.get(each["kind"]) is each else _full_label(each) for each in objects]


def _full_label(each: Manifest) -> str:
    namespace = each["metadata"].get("namespace")
    return "/".join((each["kind"], *([namespace] if namespace else []), each["metadata"]["name"]))


def manifest_of(
    kind: str, spec: _Spec | Manifest, name: str, model: type[_Spec], render: Callable[[str, _Spec], Manifest]
) -> Manifest:
    """The object: what `render` makes of `name` and the model, or `spec` itself if it is a whole manifest.

    The model may be given as plain data, with the fields in Kubernetes' spelling. What the fleet file's rules only warn
    of is logged.

    Raises:
        SpecError: plain data that is not such a model, with every problem; a model of something else; a name that is
            known later.
        ValueError: a manifest of another kind.
    """
    if not isinstance(name, str):
        raise SpecError([NOT_PLAIN.at(kind, "its name comes from another resource", "write the name itself")])
    if not isinstance(spec, dict):
        if not isinstance(spec, model) or set(type(spec).model_fields) - set(model.model_fields):
            given, wanted = type(spec).__name__, model.__name__
            raise SpecError([COMPONENT.at(f"{kind} {name}", f"a {given} is given", f"give a {wanted}")])
        return render(name, _warned(kind, name, spec))
    if not {"apiVersion", "kind"} & set(spec):
        return render(name, _warned(kind, name, read_model(model, spec, f"{kind} {name}")))
    if spec.get("kind") != kind:
        raise ValueError(f"{name}: a manifest of kind {spec.get('kind')!r} was given; {kind} is needed")
    return spec


def _warned(kind: str, name: str, spec: _Spec) -> _Spec:
    for problem in problems_in(spec, f"{kind} {name}"):
        pulumi.log.warn(problem.coded)
    return spec


def declare_object(
    parent: Component,
    name: str,
    manifest: Mapping[str, Any],
    *,
    depends_on: Sequence[pulumi.Resource] = (),
    expect_active: bool = False,
    wait_for: str | None = None,
    replace_on_changes: Sequence[str] = (),
    ignore_changes: Sequence[str] = (),
    patch: bool = False,
) -> KubernetesObject:
    """A Kubernetes object below `parent`.

    `expect_active` waits for the condition Active; `wait_for` for anything else that the provider's annotation can say.
    With `replace_on_changes` the old object is deleted first, since the new one has the same name. The role of
    a binding is always such a path. `ignore_changes` are paths that another client writes once the object is there.
    `patch` means that something else makes the object, and that only these fields are the program's.
    """
    condition = ACTIVE_CONDITION if expect_active else wait_for
    replacing = [*replace_on_changes, *(["roleRef"] if "roleRef" in manifest else [])]
    return KubernetesObject(
        name,
        _annotated(manifest, {WAIT_FOR_ANNOTATION: condition}) if condition else manifest,
        pulumi.ResourceOptions(
            parent=parent,
            depends_on=list(depends_on),
            deleted_with=parent.deleted_with,
            replace_on_changes=replacing or None,
            delete_before_replace=True if replacing else None,
            ignore_changes=list(ignore_changes) or None,
            custom_timeouts=pulumi.CustomTimeouts(create=_TIMEOUT, update=_TIMEOUT, delete=_TIMEOUT),
            hooks=webhook_retry(type(parent).__name__, name) if is_kueue_object(manifest) else None,
        ),
        patch=patch,
    )


def _annotated(manifest: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}
