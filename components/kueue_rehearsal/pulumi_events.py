"""Pulumi's events and diagnostics, as its event log and its errors have them, in our words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Of a failure, the screen gets the beginning; all of it is in the log.
_SHOWN_MESSAGES, _SHOWN_NAMES, _SHOWN_CHARACTERS = 5, 3, 1200


@dataclass(frozen=True, slots=True)
class PulumiEvent:
    """One step of one resource.

    `op` is Pulumi's own word (create, update, replace, delete, same ...). `done` is False when the step begins.
    """

    op: str
    type: str
    name: str
    done: bool
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """What Pulumi is doing to one resource."""

    op: str
    """Pulumi's own word."""
    type: str
    name: str
    inputs: Mapping[str, Any]
    """The resource's new inputs; secret ones as Pulumi masks them."""
    since: float
    """When it was seen to begin."""
    status: str = ""
    """What the provider last reported, such as what it waits for."""


def resource_event(raw: Mapping[str, Any]) -> PulumiEvent | None:
    """The step that an entry of the event log is about; None for entries about something else."""
    for key, done, has_failed in (
        ("resourcePreEvent", False, False),
        ("resOutputsEvent", True, False),
        ("resOpFailedEvent", True, True),
    ):
        if key in raw:
            metadata = raw[key]["metadata"]
            urn = metadata["urn"]
            return PulumiEvent(metadata["op"], type_of(urn), name_of(urn), done, has_failed)
    return None


def type_of(urn: str) -> str:
    """The resource's type."""
    parts = urn.split("::")
    return parts[2].rsplit("$", 1)[-1] if len(parts) > 2 else urn


def name_of(urn: str) -> str:
    """The resource's name."""
    return urn.split("::", 3)[-1]


def summarize_diagnostics(diagnostics: Sequence[tuple[str, str]]) -> str:
    """Errors as (URN or nothing, message), each distinct message once with the resources that it is about."""
    by_message: dict[str, list[str]] = {}
    for urn, message in diagnostics:
        names = by_message.setdefault(message, [])
        if urn and (name := f"{type_of(urn)} {name_of(urn)}") not in names:
            names.append(name)
    if len(by_message) > 1:
        # What the stack itself says of it is only that it failed.
        by_message.pop("update failed", None)
    lines = []
    for message, names in list(by_message.items())[:_SHOWN_MESSAGES]:
        more = len(names) - _SHOWN_NAMES
        who = ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
        cut = message[:_SHOWN_CHARACTERS] + " ..." if len(message) > _SHOWN_CHARACTERS else message
        lines.append(f"{who}: {cut}" if who else cut)
    if len(by_message) > _SHOWN_MESSAGES:
        lines.append(f"and {len(by_message) - _SHOWN_MESSAGES} more errors")
    return "\n".join(lines)
