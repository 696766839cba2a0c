"""What Google's provider would do to get from the resources of one fleet to those of another.

Each resource is planned by itself, as the provider plans it against Google's answer (`plan`), with what the options of
Pulumi say about it. What has another key is another resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kueue_fleet.google.answers import COMPUTE_API
from kueue_fleet.google.gke_answers import answer
from kueue_fleet.google.plan import planned_changes, updated_state
from kueue_fleet.google.property_paths import Change, Path, is_within, parse_pattern, render_path
from kueue_fleet.google.resource import CloudResource, Ref, filled

Operation = Literal["create", "delete", "update", "replace"]
"""What becomes of a resource, in Pulumi's words."""
_CONTROL_PLANE: Final = {"version": "1.36.0", "endpoint": "", "caCertificate": "", "selfLink": "", "dnsEndpoint": ""}
"""What GKE answers of a control plane, which no program asks for."""


@dataclass(frozen=True, slots=True)
class Step:
    """One resource that changes."""

    operation: Operation
    changes: Mapping[str, Change] = field(default_factory=dict)
    """What changes of one that stays or is made again, by the path of the property."""

    @property
    def replacing(self) -> list[str]:
        """The properties whose change makes it again, or that refer to what it is made again with."""
        return [path for path, change in self.changes.items() if change.replaces]

    def replaces(self, *properties: str) -> bool:
        """Whether it is made again to change one of these properties, or part of one, or the whole that one is in.

        Without any: whether it is made again.
        """
        if self.operation != "replace" or not properties:
            return self.operation == "replace"
        parts = tuple(f"{path_prefix}{end}" for path_prefix in properties for end in ".[")
        return any(
            path in properties
            or path.startswith(parts)
            or any(changed_path.startswith(f"{path}.") for changed_path in properties)
            for path in self.replacing
        )


def plan(old: Iterable[CloudResource], new: Iterable[CloudResource]) -> dict[str, Step]:
    """What becomes of each resource, by its key; what stays as it is, or is only read, is left out."""
    before, after = ({resource.key: resource for resource in side if resource.read is None} for side in (old, new))
    steps = {key: Step("delete") for key in before if key not in after}
    for key, resource in after.items():
        if key not in before:
            steps[key] = Step("create")
        elif before[key].properties != resource.properties:
            changes = _changes(before[key], resource)
            if changes:
                replaces = any(change.replaces for change in changes.values())
                steps[key] = Step("replace" if replaces else "update", changes)
    for key, resource in after.items():
        gone = [cause for cause in resource.replace_with if cause in steps and steps[cause].operation != "update"]
        if gone and key in before:
            along = {
                path: Change.UPDATE_REPLACE
                for missing_key in gone
                for path in _refers(resource.properties, missing_key)
            }
            steps[key] = Step("replace", {**(steps[key].changes if key in steps else {}), **along})
    return steps


def _refers(value: Any, key: str, path: Path = ()) -> Iterator[str]:
    """The properties that refer to the resource with that key."""
    if isinstance(value, Ref) and value.resource == key:
        yield render_path(path)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _refers(item, key, (*path, name))


def _changes(old: CloudResource, new: CloudResource) -> dict[str, Change]:
    before, after = (_plain(resource.properties) for resource in (old, new))
    state = answer(old.type, updated_state(old.type, {}, before), {**_CONTROL_PLANE, "asked": {}})
    replacing = [parse_pattern(text) for text in new.replace_on_changes]
    return {
        render_path(path): change.as_replacing() if any(is_within(path, prefix) for prefix in replacing) else change
        for path, change in planned_changes(new.type, state, after, new.ignore_changes).items()
    }


def _plain(properties: Mapping[str, Any]) -> Any:
    """What another resource has once it is made as a link to it: the same link is the same output."""
    return filled(properties, lambda ref: f"{COMPUTE_API}/projects/{ref.resource}/{ref.output}")
