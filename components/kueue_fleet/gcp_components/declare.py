"""What `google` renders, declared to Pulumi."""

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import pulumi

from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.answers import IN_A_TEST
from kueue_fleet.google.resource import CloudResource, Ref, filled
from kueue_fleet.google.resource_kinds import kind_of
from kueue_fleet.google.resource_types import SERVICE_ACCOUNT
from kueue_fleet.in_programs import claim


def declare(
    parent: pulumi.Resource, resources: Iterable[CloudResource], known: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The resources below `parent`, by key, in their order.

    `known` has what others declare, by key: of what is not there, the options of `parent` take care.
    """
    there = dict(known or {})
    made_resources: dict[str, Any] = {}
    for resource in resources:
        options = pulumi.ResourceOptions(
            parent=parent,
            depends_on=[there[key] for key in resource.needs if key in there],
            protect=resource.protect,
            ignore_changes=list(resource.ignore_changes),
            replace_on_changes=list(resource.replace_on_changes),
            replace_with=[there[key] for key in resource.replace_with],
            delete_before_replace=resource.delete_before_replace,
            deleted_with=there[resource.deleted_with] if resource.deleted_with else None,
            retain_on_delete=resource.retain_on_delete,
        )
        _claim(resource)
        module, _, kind = resource.type.removeprefix("gcp:").partition("/")
        # Through the package: the SDK imports a module of itself when it is looked up there.
        resource_class = getattr(getattr(gcp, module), kind.partition(":")[2])
        properties = {_snake_case(name): put_in(value, there) for name, value in resource.properties.items()}
        made_resources[resource.key] = there[resource.key] = resource_class(resource.name, opts=options, **properties)
    return made_resources


def _claim(cloud_resource: CloudResource) -> None:
    """Raise SpecError if the program has declared what Google has once, as far as its id is known."""
    kind = kind_of(cloud_resource.type)
    parts = [name for _, name, *_ in Formatter().parse(kind.id_template) if name]
    is_known = all(isinstance(cloud_resource.properties.get(part), str) for part in parts)
    if is_known and (kind.named or cloud_resource.type == SERVICE_ACCOUNT):
        where = kind.id_template.format_map(cloud_resource.properties)
        claim((cloud_resource.type, where), where, "is declared before")


def put_in(value: Any, resources: Mapping[str, Any] | None = None) -> Any:
    """`value` with the outputs of `resources`, which are there by key, for every `Ref` in it."""

    def output(ref: Ref) -> Any:
        return getattr((resources or {})[ref.resource], _snake_case(ref.output))

    return filled(value, output, lambda parts: pulumi.Output.all(*parts).apply(_joined))


def _joined(parts: list[Any]) -> str:
    if None in parts:
        text = "".join("..." if part is None else str(part) for part in parts)
        raise RuntimeError(f"{text}: Google answered nothing for a part of it; look at what makes it, or {IN_A_TEST}")
    return "".join(map(str, parts))


def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name)
