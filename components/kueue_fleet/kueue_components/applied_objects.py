"""Kubernetes objects and Helm releases as Pulumi resources, from what the spec renders.

A resource of the type and URN that pulumi-kubernetes' own classes would make for it. Its `CustomResource` class is not
used since it takes `metadata` and `spec` alone, and a WorkloadPriorityClass has its fields at the top; its typed
classes are not used since they would render the manifest a second time, in a second spelling, and are slow to import.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any, cast
from weakref import WeakKeyDictionary

import pulumi

from kueue_admission.kernel.names import KUEUE_GROUP
from kueue_fleet.component import is_judged
from kueue_fleet.google.resource_types import HELM_RELEASE
from kueue_fleet.in_programs import claim
from kueue_fleet.kueue_components.whole_program import note_object

FORMER_KUEUE_VERSIONS = ("v1beta1",)
"""Served versions that an object may stand under in a state. The version is part of a resource's type, so without an
alias an upgrade would delete the object and create it again."""

_SECRET_OUTPUTS = ["data", "stringData"]
_NAMED: "WeakKeyDictionary[pulumi.Output[str], KubernetesObject]" = WeakKeyDictionary()
"""Outputs that are the name of an object."""


class KubernetesObject(pulumi.CustomResource):
    """One Kubernetes object."""

    manifest: Mapping[str, Any]
    """What was declared; values may be outputs."""

    def __init__(
        self, name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions, *, patch: bool = False
    ) -> None:
        """Declare the object; with `patch`, fields of an object that something else makes.

        `opts` is made for this resource alone: the provider's version, aliases for former API versions and, for a
        Secret, its secret outputs are written into it. What is in a Secret is secret, also where it is given in plain.
        """
        opts.version = opts.version or _provider_version()
        kind, api_version = manifest["kind"], manifest["apiVersion"]
        group, _, version = api_version.rpartition("/")
        if group == KUEUE_GROUP:
            former = [v for v in FORMER_KUEUE_VERSIONS if v != version]
            opts.aliases = [
                *(opts.aliases or []),
                *(pulumi.Alias(type_=resource_type(f"{group}/{v}", kind)) for v in former),
            ]
        properties = dict(manifest) if group != KUEUE_GROUP else {"status": None, **manifest}
        if kind == "Secret":
            opts.additional_secret_outputs = [*(opts.additional_secret_outputs or []), *_SECRET_OUTPUTS]
            contents = {key: pulumi.Output.secret(properties[key]) for key in _SECRET_OUTPUTS if key in properties}
            properties |= {**dict.fromkeys(_SECRET_OUTPUTS), **contents}
        self.manifest = manifest
        super().__init__(resource_type(api_version, f"{kind}Patch" if patch else kind), name, properties, opts)

    @property
    def object_name(self) -> str:
        """`metadata.name`."""
        return str(self.manifest["metadata"]["name"])

    @property
    def name(self) -> pulumi.Output[str]:
        """The same, once the object is there."""
        name = self.urn.apply(lambda _: self.object_name)
        _NAMED[name] = self
        return name

    def output(self, key: str) -> pulumi.Output[Any]:
        """The top-level property `key` of the object as the API server has it."""
        return cast("pulumi.Output[Any]", self.__dict__[key])


class HelmRelease(pulumi.CustomResource):
    """A Helm release: pulumi-kubernetes' `helm.v3.Release`."""

    status: pulumi.Output[Any]
    """What Helm says of the release."""

    def __init__(self, name: str, properties: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        """Declare the release; `properties` are those of `helm.v3.ReleaseArgs`, camelCase."""
        opts.version = opts.version or _provider_version()
        super().__init__(HELM_RELEASE, name, {"compat": "true", "status": None, **properties}, opts)


def object_named_by(name: Any) -> KubernetesObject | None:
    """The object whose `name` this output is, if it is one."""
    return _NAMED.get(name) if isinstance(name, pulumi.Output) else None


def provider_of(made: pulumi.Resource) -> pulumi.ProviderResource | None:
    """The provider of Kubernetes objects of a component; None: that of the stack's config."""
    return made.get_provider("kubernetes:core/v1:Namespace")


def claim_object(parent: pulumi.Resource, manifest: Mapping[str, Any]) -> None:
    """Raise SpecError if the program has declared the object before, on the same cluster, as far as providers tell."""
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace")
    where, provider = f"{manifest['kind']} {name}", provider_of(parent)
    note_object(provider, manifest, alone=not is_judged(pulumi.ResourceOptions(parent=parent)))
    if isinstance(name, str) and isinstance(namespace, str | None):
        group = manifest["apiVersion"].rpartition("/")[0]
        claim((group, where, namespace, provider), where, "is declared before, on the same cluster")
    if manifest.get("globalDefault") is True:
        # Kubernetes refuses a second one: kubernetes@v1.36 plugin/pkg/admission/priority/admission.go.
        wrong = "is a default, and another one is declared before, on the same cluster"
        claim(("globalDefault", provider), where, wrong, "keep globalDefault on one of them")


def resource_type(api_version: str, kind: str) -> str:
    """Pulumi's type token of a Kubernetes kind: the core group, which has no name, is spelled `core`."""
    return f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"


def is_kueue_object(manifest: Mapping[str, Any]) -> bool:
    """Whether one of Kueue's own webhooks or CRDs answers for the object."""
    return str(manifest["apiVersion"]).startswith(f"{KUEUE_GROUP}/")


@cache
def _provider_version() -> str:
    """Version of the provider plugin: that of the installed pulumi-kubernetes, which the lock file pins."""
    return installed_version("pulumi-kubernetes")
