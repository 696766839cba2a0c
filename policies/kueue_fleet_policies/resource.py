"""A resource as the rules see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi_policy import PolicyResource, ResourceValidationArgs

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies.values import at, plain, truth

KUBERNETES_PROVIDER = "pulumi:providers:kubernetes"
"""Pulumi type of a Kubernetes provider."""
KUBERNETES = "kubernetes:"
"""Beginning of the Pulumi types of Kubernetes objects."""


_OF_EXTENSION: Final = re.compile(
    r"[^:]+:((core|apps|autoscaling|batch|policy|extensions|[^:/]+\.[^:/]+)/v\d+((alpha|beta)\d+)?:[^:]+)"
)


def kubernetes_type(type_: str) -> str:
    """The type in pulumi-kubernetes itself of what one of its extensions makes; other types as they are.

    Source: https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/typed-customresources-with-provider-extensions/
    """
    match = _OF_EXTENSION.fullmatch(type_)
    return f"{KUBERNETES}{match[1]}" if match else type_


def patched_type(type_: str) -> str:
    """The type of what a resource of Pulumi's `...Patch` types changes; other types as they are."""
    return type_.removesuffix("Patch") if type_.startswith(KUBERNETES) else type_


@dataclass(frozen=True)
class Resource:
    """One resource of a program, or of a state."""

    type: str
    """Pulumi's type token; of an object of Kubernetes, that in pulumi-kubernetes itself."""
    name: str
    """Its name in the program."""
    urn: str
    props: Mapping[str, Any]
    """Plain data, camelCase as the provider has it; see `values`."""
    protect: bool = False
    """Pulumi's own protection, `protect=True`."""

    @classmethod
    def of(cls, given: PolicyResource | ResourceValidationArgs) -> Resource:
        """The resource that a policy was called with."""
        return cls(
            kubernetes_type(given.resource_type), given.name, given.urn, plain(given.props), bool(given.opts.protect)
        )

    def get(self, path: str) -> Any:
        """The property at a dotted path; None where there is none, `UNKNOWN` where it is not known."""
        return at(self.props, path)

    def flag(self, path: str) -> Any:
        """The property as true or false; None where there is none, `UNKNOWN` where it is not known."""
        return truth(at(self.props, path))

    def is_on(self, path: str) -> bool:
        """Whether the property is known to be true."""
        return self.flag(path) is True

    def is_off(self, path: str) -> bool:
        """Whether the property is known not to be true: false, or absent."""
        return self.flag(path) in (None, False)

    def lacks(self, path: str) -> bool:
        """Whether there is certainly nothing at the path: no value, an empty text, or an empty object."""
        value = self.get(path)
        return not self.is_patch and value is not UNKNOWN and value in (None, "", {}, [])

    @property
    def is_patch(self) -> bool:
        """Whether it changes an object that something else made, and leaves the rest of it alone."""
        return patched_type(self.type) != self.type

    @property
    def autopilot(self) -> bool:
        """Of a cluster: whether GKE runs its nodes."""
        return self.is_on("enableAutopilot")

    @property
    def standard(self) -> bool:
        """Of a cluster: whether its nodes are in pools that one declares; false also where that is not known."""
        return self.is_off("enableAutopilot")

    @property
    def kind(self) -> str:
        """Last part of the type: of a Kubernetes object, or of what a patch changes, its kind."""
        return patched_type(self.type).rsplit(":", 1)[-1]
