"""A resource of Google Cloud as plain data: what Pulumi declares of it, and how it stands to the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any


def rooted(key: str) -> str:
    """A resource in an expression of Pulumi YAML: in quotes where its key is more than a name and slashes."""
    return key if re.fullmatch(r"[\w/-]+", key) else f"[{json.dumps(key)}]"


@dataclass(frozen=True, slots=True)
class Ref:
    """What another resource has once it is made."""

    resource: str
    """Key of that resource."""
    output: str
    """The output, by the schema's name: `selfLink`."""

    def __str__(self) -> str:
        """As Pulumi YAML writes it."""
        return f"${{{rooted(self.resource)}.{self.output}}}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Texts one after the other, of which some are not known yet."""

    parts: tuple[Any, ...]


def joined(*parts: Any) -> Any:
    """The texts one after the other: a plain text where all of them are."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else Joined(parts)


def workload_pool(project: Any) -> Any:
    """The pool of identities that the Kubernetes service accounts of a project's clusters have."""
    return joined(project, ".svc.id.goog")


def filled(
    value: Any,
    of_ref: Callable[[Ref], Any],
    joining: Callable[[list[Any]], Any] = lambda parts: "".join(map(str, parts)),
    leaf: Callable[[Any], Any] = lambda plain: plain,
) -> Any:
    """Properties with what `of_ref` has for each reference, `joining` of texts' parts, and `leaf` of what is plain."""
    if isinstance(value, Ref):
        return of_ref(value)
    inside = partial(filled, of_ref=of_ref, joining=joining, leaf=leaf)
    if isinstance(value, Joined):
        return joining([inside(part) for part in value.parts])
    if isinstance(value, Mapping):
        return {key: inside(item) for key, item in value.items()}
    return [inside(item) for item in value] if isinstance(value, list | tuple) else leaf(value)


@dataclass(frozen=True, slots=True)
class CloudResource:
    """A resource, by the provider's own names; the fields from `protect` on are options of Pulumi."""

    type: str
    """Pulumi's token: `gcp:container/nodePool:NodePool`."""
    name: str
    """Pulumi's name of it."""
    properties: Mapping[str, Any]
    """Plain JSON, in which a `Ref` or a `Joined` stands for what is not known yet, and in a component that is used
    alone whatever that was given."""
    needs: tuple[str, ...] = ()
    """Keys of what has to be there before it, beside what the properties refer to and the APIs of the project."""
    protect: bool | None = None
    """Whether Pulumi refuses to delete it; None: as its parent."""
    ignore_changes: tuple[str, ...] = ()
    """Properties that are said when it is made, and never changed."""
    replace_on_changes: tuple[str, ...] = ()
    """Properties that the provider would change in place, and Google does not."""
    replace_with: tuple[str, ...] = ()
    """Keys of resources with which it is made again."""
    delete_before_replace: bool | None = None
    """Whether its name is in use until it is gone."""
    deleted_with: str | None = None
    """Key of the resource that takes it along when it goes."""
    retain_on_delete: bool | None = None
    """Whether it stays in Google Cloud when Pulumi deletes it; None: as its parent."""
    read: str | None = None
    """The id of what exists and is only read; None: it is made."""

    @property
    def key(self) -> str:
        """Kind and name, unique in a fleet: `NodePool/lab/batch/l4`."""
        return f"{self.type.rpartition(':')[2]}/{self.name}"

    def ref(self, output: str) -> Ref:
        """What it has once it is made."""
        return Ref(self.key, output)
