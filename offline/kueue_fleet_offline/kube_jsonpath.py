"""The part of kubectl's JSONPath that `pulumi.com/waitFor` needs: members, indexes, `[*]` and `[?(@.a=="b")]`.

What is outside of it is refused, so that a wait never ends or hangs without a visible reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kueue_fleet.rehearsal.standins.plugin_errors import PluginError

STEP: Final = re.compile(
    r"""\.(?P<member>(?:[A-Za-z0-9_-]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<every>\*)\]
      | \['(?P<quoted>[^']*)'\]
      | \[\?\(@\.(?P<key>[A-Za-z0-9_.-]+)\s*==\s*["'](?P<wanted>[^"']*)["']\)\]""",
    re.VERBOSE,
)
"""One step of a JSONPath."""


@dataclass(frozen=True, slots=True)
class JsonPathWait:
    """`jsonpath={.a.b}=value`: wait until the path holds the value, or is there when `wanted` is None."""

    text: str
    steps: tuple[re.Match[str], ...]
    wanted: str | None

    def is_met(self, manifest: Any) -> bool:
        """Whether the object meets it. Raises PluginError when the path names more than one value."""
        found = list(_select(manifest, self.steps))
        if self.wanted is None:
            return bool(found)
        if len(found) > 1:
            raise PluginError(f"{self.text}: the path names {len(found)} values; name one")
        return bool(found) and _shown(found[0]) == self.wanted


def parse_jsonpath_wait(text: str) -> JsonPathWait:
    """The wait that `jsonpath=…` describes. Raises PluginError for syntax that is not supported."""
    expression = text.removeprefix("jsonpath=")
    path, brace, after = expression.partition("}")
    if not expression.startswith("{") or not brace or (after and not after.startswith("=")):
        raise PluginError(f"{text}: not of the form jsonpath={{.path}}=value; write the path in braces")
    steps, position, body = [], 0, path[1:]
    while position < len(body):
        step = STEP.match(body, position)
        if step is None:
            raise PluginError(f"{text}: the stand-in does not read {body[position:]!r} of the path; simplify it")
        steps.append(step)
        position = step.end()
    if not steps:
        raise PluginError(f"{text}: the path is empty; name a field")
    return JsonPathWait(text, tuple(steps), after[1:] if after else None)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _select(value: Any, steps: tuple[re.Match[str], ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step["member"] is not None or step["quoted"] is not None:
        key = step["quoted"] if step["member"] is None else step["member"].replace("\\.", ".")
        if isinstance(value, dict) and key in value:
            yield from _select(value[key], rest)
    elif isinstance(value, list):
        for item in _chosen(value, step):
            yield from _select(item, rest)


def _chosen(items: list[Any], step: re.Match[str]) -> list[Any]:
    if step["index"] is not None:
        index = int(step["index"])
        return [items[index]] if -len(items) <= index < len(items) else []
    if step["every"]:
        return items
    return [item for item in items if _member(item, step["key"]) == step["wanted"]]


def _member(item: Any, key: str) -> str | None:
    for part in key.split("."):
        if not isinstance(item, dict) or part not in item:
            return None
        item = item[part]
    return _shown(item)
