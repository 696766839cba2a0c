"""Arguments of Pulumi resources, from data and from texts that may be outputs."""

import re
from collections.abc import Mapping
from typing import Any

import pulumi


def arguments(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments of a typed resource, from properties by the provider's own names: `nodeConfig` and so on.

    Only the outermost names change: within a property Pulumi takes either spelling.
    """
    return {re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name): value for name, value in properties.items()}


def concat(*parts: pulumi.Input[str]) -> pulumi.Input[str]:
    """The texts one after the other: a plain text where all of them are."""
    plain = [part for part in parts if isinstance(part, str)]
    return "".join(plain) if len(plain) == len(parts) else pulumi.Output.concat(*parts)


def workload_pool(project: pulumi.Input[str]) -> pulumi.Input[str]:
    """The pool of identities that the Kubernetes service accounts of a project's clusters have."""
    return concat(project, ".svc.id.goog")
