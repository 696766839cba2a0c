"""What the components for Kubernetes objects have in common.

Their objects wait until they are Active where that can be waited for, retry while Kueue's webhooks are not reachable,
and are not deleted one by one when their whole cluster goes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import pulumi
from pydantic import AfterValidator

from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.arguments import checked
from kueue_admission.kernel.base import DnsLabel, SpecModel
from kueue_admission.kernel.form_rules import MISSING, Fault
from kueue_admission.kernel.manifest import Manifest, is_object
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_fleet import component
from kueue_fleet.component import is_judged, judge
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.kueue_components.applied_objects import KubernetesObject, claim_object, is_kueue_object, provider_of
from kueue_fleet.kueue_components.asked import Asked, Key, ObjectForm, asked_for, say_default_provider
from kueue_fleet.kueue_components.webhook_retry import webhook_retry
from kueue_fleet.kueue_components.whole_program import needed_there, note_made
from kueue_fleet.objects.parts import ClusterPart

WAIT_FOR_ANNOTATION = "pulumi.com/waitFor"
"""Read by the Kubernetes provider. Source: https://www.pulumi.com/registry/packages/kubernetes/ (await logic)."""
ACTIVE_CONDITION = "condition=Active"
"""Condition of queues and checks that Kueue has taken on."""
_TIMEOUT = "10m"

_Spec = TypeVar("_Spec", bound=SpecModel)


def _whole(data: Manifest) -> Manifest:
    metadata = data.get("metadata")
    parts = {"apiVersion": data, "kind": data, "name": metadata if is_object(metadata) else {}}
    for part, of in parts.items():
        if of.get(part) is None:
            raise Fault(
                f"without {part} is given", "give a whole manifest, with its kind and its name", MISSING
            ).error()
    return data


WholeManifest = Annotated[Manifest, AfterValidator(_whole)]
"""A whole object of Kubernetes, with what says which it is."""


class Component(component.Component):
    """A component of objects in one cluster."""

    of_provider = "kubernetes"
    takes: ClassVar[Sequence[str]] = ()
    """The manifests that it takes, as `group/Kind`; empty: any."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        """Register the component; of its options its objects get `deleted_with`, and inherit provider and `protect`."""
        super().__init__(name, opts)
        self.deleted_with = opts.deleted_with if opts else None
        if provider_of(self) is None and not is_judged(opts):
            say_default_provider(f"{type(self).__name__} {name}")

    @property
    def declares(self) -> dict[Key, pulumi.Resource]:
        """What it declares that others refer to, by kind and name: resources to wait for."""
        return {}

    @classmethod
    def _others(cls, path: str, manifests: Sequence[Manifest]) -> Iterator[Problem]:
        """The manifests, given at PATH, of kinds that the component does not take."""
        for index, manifest in enumerate(manifests):
            kind = f"{manifest['apiVersion'].rpartition('/')[0]}/{manifest['kind']}".removeprefix("/")
            if kind not in cls.takes:
                fix = f"give a manifest of {' or '.join(cls.takes)}"
                yield COMPONENT.at(f"{cls.__name__} {path}[{index}]", f"a manifest of {kind} is given", fix)


class ObjectComponent(Component, ObjectForm, Generic[_Spec]):
    """A component that is one Kubernetes object; subclasses say which.

    Their `spec` is a model, the same as plain data in Kubernetes' spelling, or a whole manifest with its kind. Fields
    that name another object take its component as well: this one is then made after it.
    """

    replaced_by: ClassVar[Sequence[str]] = ()
    """Paths that Kubernetes does not let change; the object is deleted and made again."""

    object: KubernetesObject
    """The object."""
    object_name: str
    """Name of the object in the cluster, known before it is there."""

    @property
    def name(self) -> pulumi.Output[str]:
        """Name of the object in the cluster, once it is there."""
        return self.object.name

    @property
    def declares(self) -> dict[Key, pulumi.Resource]:
        """The object."""
        return {(self.kind, self.object_name): self}

    @classmethod
    @checked
    def get(
        cls,
        name: str,
        object_name: str | None = None,
        *,
        namespace: DnsLabel | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> Self:
        """An object that exists: it is read, and never changed or deleted.

        `object_name` is its name in the cluster, by default `name`; `namespace` that of one in a namespace.

        Raises:
            SpecError: a namespace is missing, or given where there is none; the name is none that Kubernetes takes.
        """
        if cls.namespaced is (namespace is None):
            wrong = "no namespace is given" if cls.namespaced else f"{namespace} is given, and it is in no namespace"
            fix = "give namespace=..." if cls.namespaced else "remove the namespace"
            raise SpecError([COMPONENT.at(f"{cls.kind} {name}.namespace", wrong, fix)])
        if problems := list(syntax_problems(f"{cls.kind} {name}", object_name or name, cls.name_syntax)):
            raise SpecError(problems)
        component_there = cls._claimed(name, opts)
        Component.__init__(component_there, name, opts)
        component_there.object_name = object_name or name
        place = "/".join(filter(None, (namespace, component_there.object_name)))
        known_fields = {
            "apiVersion": cls.api_version,
            "kind": cls.kind,
            "metadata": {"name": component_there.object_name},
        }
        component_there.object = KubernetesObject(
            name, known_fields, pulumi.ResourceOptions(parent=component_there, id=place)
        )
        component_there._give_out()
        return component_there

    def _declare(
        self,
        name: str,
        asked: Asked,
        opts: pulumi.ResourceOptions | None,
        *,
        expect_active: bool = False,
        ignore_changes: Sequence[str] = (),
    ) -> None:
        """Register the component and its object, after what it refers to.

        With `expect_active`, creating and changing the object ends only when its condition Active is True;
        `ignore_changes` are paths that another client writes.
        """
        super().__init__(name, opts)
        asked.compare(self)
        self.object = declare_object(
            self,
            name,
            asked.manifest,
            depends_on=asked.after,
            expect_active=expect_active,
            replace_on_changes=self.replaced_by,
            ignore_changes=ignore_changes,
        )
        self.object_name = self.object.object_name
        self._give_out()


class StatusComponent(ObjectComponent[_Spec]):
    """A component of an object whose status Kueue writes."""

    @property
    def status(self) -> pulumi.Output[Any]:
        """The object's status when the object was last made, changed or read."""
        return self.object.output("status")


class ModelComponent(ObjectComponent[_Spec]):
    """A component that is one Kubernetes object and needs nothing but its spec."""

    def __init__(
        self,
        name: str,
        spec: _Spec | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the object, which is called `object_name`, or else `name`."""
        self._declare(name, asked_for(type(self), spec, name, object_name, opts), opts)


class OrderedObjects(Component):
    """A component that is several Kubernetes objects, one after the other; subclasses say of what type.

    One that is a part of a cluster says which: what it takes, and how its objects are called, is in that row.
    """

    part: ClassVar[ClusterPart | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.part is not None:
            cls.takes = cls.part.kinds

    objects: list[KubernetesObject]
    """The objects, in the order in which they were given."""

    def __init__(
        self, name: str, objects: Sequence[WholeManifest], *, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Declare the objects, each after the one before it.

        Raises:
            SpecError: one is of a kind that the component does not take.
        """
        judge(self._others(f"{name}.objects", objects), opts)
        super().__init__(name, opts)
        self.objects = []
        for label, manifest in zip(self._labels(objects), objects, strict=True):
            resource = declare_object(self, f"{name}/{label}", manifest, depends_on=self.objects[-1:])
            self.objects.append(resource)
        self._give_out()

    def _labels(self, objects: Sequence[Manifest]) -> list[str]:
        if self.part is not None and self.part.full_labels:
            return [full_label(manifest) for manifest in objects]
        return object_labels(objects)


def part_component(part: ClusterPart) -> type[OrderedObjects]:
    """The component of a part of a cluster that has no class of its own."""

    class ClusterObjects(OrderedObjects):
        """The objects of a part of a cluster."""

    ClusterObjects.part, ClusterObjects.takes = part, part.kinds
    return ClusterObjects


def object_labels(objects: Sequence[Manifest]) -> list[str]:
    """What tells the objects of a component apart in Pulumi names.

    The kind, of one object of each kind that is in the whole cluster or in the namespace of the account: the one that
    is named like the account (where that is Google's, like the ClusterRoleBinding), or else the first. Kind, namespace
    and name of any other. Where an object stands in the list does not change its label, so that its order can change
    without replacing it.
    """
    accounts = {
        (manifest["metadata"]["namespace"], manifest["metadata"]["name"])
        for manifest in objects
        if manifest["kind"] == "ServiceAccount"
    }
    namespaces, names = {where for where, _ in accounts}, {name for _, name in accounts}
    names = names or {manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "ClusterRoleBinding"}
    main: dict[str, Manifest] = {}
    for manifest in objects:
        kind, metadata = manifest["kind"], manifest["metadata"]
        if metadata.get("namespace") in (None, *namespaces) and (
            kind not in main or (metadata["name"] in names and main[kind]["metadata"]["name"] not in names)
        ):
            main[kind] = manifest
    return [
        manifest["kind"] if main.get(manifest["kind"]) is manifest else full_label(manifest) for manifest in objects
    ]


def full_label(each: Manifest) -> str:
    """Kind, namespace if it has one, and name of an object."""
    namespace = each["metadata"].get("namespace")
    return "/".join((each["kind"], *([namespace] if namespace else []), each["metadata"]["name"]))


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
    if not patch:
        claim_object(parent, manifest)
    alone, provider = not is_judged(pulumi.ResourceOptions(parent=parent)), provider_of(parent)
    needs = needed_there(provider, manifest, of_kueue=is_kueue_object(manifest)) if alone else []
    condition = ACTIVE_CONDITION if expect_active else wait_for
    replacing = [*replace_on_changes, *(["roleRef"] if "roleRef" in manifest else [])]
    kubernetes_object = KubernetesObject(
        name,
        _annotated(manifest, {WAIT_FOR_ANNOTATION: condition}) if condition else manifest,
        pulumi.ResourceOptions(
            parent=parent,
            depends_on=[*depends_on, *needs],
            deleted_with=parent.deleted_with,
            replace_on_changes=replacing or None,
            delete_before_replace=True if replacing else None,
            ignore_changes=list(ignore_changes) or None,
            custom_timeouts=pulumi.CustomTimeouts(create=_TIMEOUT, update=_TIMEOUT, delete=_TIMEOUT),
            hooks=webhook_retry(type(parent).__name__, name) if is_kueue_object(manifest) else None,
        ),
        patch=patch,
    )
    note_made(provider, kubernetes_object, manifest)
    return kubernetes_object


def _annotated(manifest: Mapping[str, Any], annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}
