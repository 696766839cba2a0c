"""Declared resources, made with Pulumi: what a program that the tests on the engine run imports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pulumi
from tests.policies.declared import Declared, Ref

from kueue_fleet_policies.resource import KUBERNETES_PROVIDER


class _Any(pulumi.CustomResource):
    """A resource of any type; `outputs` are those that something refers to."""

    def __init__(self, declared: Declared, props: dict[str, Any], outputs: Iterable[str], opts: pulumi.ResourceOptions):
        super().__init__(declared.type, declared.name, {**dict.fromkeys(outputs), **props}, opts)


class _Kubernetes(pulumi.ProviderResource):
    """A Kubernetes provider."""

    def __init__(self, declared: Declared, props: dict[str, Any]) -> None:
        super().__init__("kubernetes", declared.name, props)


def declare(declared: Iterable[Declared]) -> None:
    """Declare the resources; those that others refer to come first."""
    listed = list(declared)
    expected: dict[str, set[str]] = {}
    for one in listed:
        for value in one.props.values():
            if isinstance(value, Ref):
                expected.setdefault(value.resource, set()).add(value.output)
    result: dict[str, Any] = {}

    def resolved(value: Any) -> Any:
        if isinstance(value, Ref):
            output: pulumi.Output[str] = result[value.resource].__dict__[value.output]
            return output.apply(lambda text: value.text.replace("{}", text))
        return value

    for one in listed:
        props = {key: resolved(value) for key, value in one.props.items()}
        if one.type == KUBERNETES_PROVIDER:
            result[one.name] = _Kubernetes(one, props)
            continue
        opts = pulumi.ResourceOptions(protect=one.protect, provider=result[one.provider] if one.provider else None)
        result[one.name] = _Any(one, props, expected.get(one.name, ()), opts)
