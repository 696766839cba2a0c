"""What the Google provider would do with new inputs: nothing, an update, or the resource made again.

Decided by the schema (`provider_facts`), as Terraform's plugin SDK decides, which the provider is built with:

- what is left out stays as it is where Google has a value of its own (optional and computed), else it returns to the
  default or is removed; an empty map is given, an empty list of blocks is not;
- a block that comes or goes replaces the resource where it replaces, or where something does that is set in it;
- lists are compared by position, sets without order; what differs in spelling alone is in `suppressed`.

Why one function serves every type: in the provider too a plan is this comparison, driven by the schema; a type adds
only functions that suppress a difference, or force a replacement. The schema is generated from the provider, so a new
field is planned right as soon as it is in it, and only those functions are written by hand, in `suppressed`. What is
not known before the update counts as a change, and replaces where the property does, as in a preview.

Source: hashicorp/terraform-plugin-sdk v2, helper/schema/schema.go (schemaMap.Diff).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.property_paths import Change, Path, is_within, parse_pattern
from kueue_fleet.google.provider_facts import Fact, load_facts
from kueue_fleet.google.suppressed import Pair, cleared, forced_replacements, is_suppressed

ZERO: Final = {"string": "", "bool": False, "int": 0, "float": 0}
"""What is not there, by type."""


def planned_changes(
    token: str, state: Mapping[str, Any], inputs: Mapping[str, Any], paths: Iterable[str] = ()
) -> dict[Path, Change]:
    """What changes, less what is `paths` (Pulumi's ignoreChanges); of a type without facts, what is not the same."""
    pair = Pair(token, state, inputs)
    plan = _Plan(pair)
    if facts := load_facts().properties(token):
        plan.block(facts, pair.state, pair.inputs, (), "")
    else:
        plan.without_facts(state, inputs)
    for path in forced_replacements(pair):
        # What the provider takes back by its own code may be Google's to choose by its schema.
        plan.changes[path] = plan.changes.get(path, Change.DELETE).as_replacing()
    patterns = [*(parse_pattern(text) for text in paths), *cleared(pair)]
    return {
        path: change
        for path, change in plan.changes.items()
        if not any(is_within(path, pattern) for pattern in patterns)
    }


def updated_state(token: str, state: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """`state` with `inputs` applied: what is left out and is Google's to choose stays, other things go."""
    return _merged(load_facts().properties(token), state, inputs)


def previewed(token: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The state as far as it is known before the resource exists: what Google adds is not."""
    return _previewed(load_facts().properties(token), inputs)


def _previewed(facts: Mapping[str, Fact], inputs: Mapping[str, Any]) -> dict[str, Any]:
    known_now = dict(inputs)
    for name, fact in facts.items():
        value = inputs.get(name)
        if value is None and fact.computed:
            known_now[name] = UNKNOWN
        elif fact.kind == "block" and isinstance(value, dict):
            known_now[name] = _previewed(fact.children, value)
    return known_now


class _Plan:
    """Collects the changes of one resource."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self.changes: dict[Path, Change] = {}

    def block(
        self, facts: Mapping[str, Fact], old: Mapping[str, Any], new: Mapping[str, Any], path: Path, plain: str
    ) -> None:
        """The properties of a block; `plain` is its path without indices, with a dot at its end."""
        for name, fact in facts.items():
            if fact.is_input:
                self._property(fact, old.get(name), new.get(name), (*path, name), f"{plain}{name}")

    def without_facts(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """The properties of a type that is not known; `name` is made up where the program gives none."""
        for name in dict.fromkeys((*new, *(name for name in old if name != "name"))):
            if name not in old or name not in new or old[name] != new[name]:
                change = Change.ADD if name not in old else Change.UPDATE if name in new else Change.DELETE
                self._record((name,), change, replaces=False)

    def _property(self, fact: Fact, old: Any, new: Any, path: Path, plain: str) -> None:
        if fact.of_blocks and new == []:
            new = None
        if new is None and fact.default is not None:
            new = fact.default
        if new is None and fact.computed:
            return
        if fact.suppressed and new is not UNKNOWN and is_suppressed(self._pair, plain, path, old, new):
            return
        if new is UNKNOWN:
            self._record(path, Change.ADD if old is None else Change.UPDATE, replaces=fact.replaces)
        elif fact.kind == "block":
            self._one_block(fact, old, new, path, plain)
        elif fact.of_blocks:
            self._blocks(fact, old or [], new or [], path, plain)
        elif fact.kind == "map":
            self._map(fact, old or {}, new or {}, path, plain)
        elif fact.kind in ("list", "set"):
            self._texts(fact, old or [], new or [], path)
        else:
            self._scalar(fact, old, new, path)

    def _record(self, path: Path, change: Change, *, replaces: bool) -> None:
        self.changes[path] = change.as_replacing() if replaces else change

    def _one_block(self, fact: Fact, old: Any, new: Any, path: Path, plain: str) -> None:
        if old is not None and new is not None:
            self.block(fact.children, old, new, path, f"{plain}.")
        elif old is not None or new is not None:
            inside = _Plan(self._pair)
            inside.block(fact.children, old or {}, new or {}, path, f"{plain}.")
            replaces = fact.replaces or any(change.replaces for change in inside.changes.values())
            self._record(path, Change.ADD if old is None else Change.DELETE, replaces=replaces)

    def _blocks(self, fact: Fact, old: list[Any], new: list[Any], path: Path, plain: str) -> None:
        if fact.kind == "set":
            old, new = self._unmatched(fact, old, new, f"{plain}[].")
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            self._one_block(fact, before, after, (*path, index), f"{plain}[]")

    def _unmatched(self, fact: Fact, old: list[Any], new: list[Any], plain: str) -> tuple[list[Any], list[Any]]:
        """What is in only one of two sets; what was taken out is put beside what came."""
        rest = list(old)
        added_blocks = []
        for item in new:
            same = next((other for other in rest if self._is_same(fact, other, item, plain)), None)
            if same is None:
                added_blocks.append(item)
            else:
                rest.remove(same)
        return rest, added_blocks

    def _is_same(self, fact: Fact, old: Any, new: Any, plain: str) -> bool:
        inside = _Plan(self._pair)
        inside.block(fact.children, old, new, (), plain)
        return not inside.changes

    def _map(self, fact: Fact, old: Mapping[str, Any], new: Mapping[str, Any], path: Path, plain: str) -> None:
        for key in [*old, *(key for key in new if key not in old)]:
            before, after, here = old.get(key), new.get(key), (*path, key)
            if key in old and key in new and _text(before) == _text(after):
                continue
            if fact.suppressed and is_suppressed(self._pair, plain, here, before, after):
                continue
            change = Change.UPDATE if key in old and key in new else Change.DELETE if key in old else Change.ADD
            self._record(here, change, replaces=fact.replaces)

    def _texts(self, fact: Fact, old: list[Any], new: list[Any], path: Path) -> None:
        before, after = [_text(item) for item in old], [_text(item) for item in new]
        if fact.kind == "set":
            before, after = sorted(before), sorted(after)
        if before == after and UNKNOWN not in new:
            return
        change = Change.UPDATE if before and after else Change.ADD if after else Change.DELETE
        self._record(path, change, replaces=fact.replaces)

    def _scalar(self, fact: Fact, old: Any, new: Any, path: Path) -> None:
        is_removed = new is None
        if is_removed and old is not None:
            new = ZERO[fact.kind]
        if _text(old) == _text(new):
            return
        change = Change.ADD if old is None else Change.DELETE if is_removed else Change.UPDATE
        self._record(path, change, replaces=fact.replaces)


def _text(value: Any) -> str:
    """A value as Terraform compares it; a number is the same in both notations, none is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _merged(facts: Mapping[str, Fact], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Names that the schema does not have, such as the engine's own, are kept."""
    merged_values = {name: value for name, value in new.items() if name not in facts}
    for name, fact in facts.items():
        value = _after(fact, old.get(name), new.get(name))
        if value is not None:
            merged_values[name] = value
    return merged_values


def _after(fact: Fact, old: Any, new: Any) -> Any:
    if new is None or (fact.of_blocks and new == []):
        return old if fact.computed else fact.default
    if new is UNKNOWN:
        return new
    if fact.kind == "block":
        return _merged(fact.children, old or {}, new)
    if fact.kind == "list" and fact.of_blocks:
        olds = [*(old or []), *([{}] * len(new))]
        return [_merged(fact.children, before, after) for before, after in zip(olds, new, strict=False)]
    if fact.of_blocks:
        return [_merged(fact.children, {}, item) for item in new]
    return new
