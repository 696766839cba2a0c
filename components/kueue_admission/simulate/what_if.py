"""The same simulation with something changed, and what that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueue_admission.kernel.job_rules import OPTION
from kueue_admission.kernel.paths import Parts, item_index, keys_of, parts_of
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_text import load_yaml
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.result import SCHEMA_VERSION, Result

_COMPARED: Final = ("state", "cluster", "flavors", "admittedAt", "finishedAt", "evictions")


@dataclass(frozen=True, slots=True)
class Change:
    """`value` is put at `path`; `parts` are its keys, items of lists by name or index in brackets."""

    text: str
    path: str
    parts: Parts
    value: Any

    @property
    def root(self) -> str:
        """The first key of the path."""
        return self.parts[0][0]


def parse_change(text: str) -> Change:
    """The change that `path=value` says; the value is YAML. Raises SimulationError for anything else."""
    parts, rest = parts_of(text)
    path = text.removesuffix(rest)
    if not parts or parts[0][1] or not rest.startswith("="):
        raise SimulationError(
            [OPTION.at(f"--what-if {text!r}", "is not path=value", "write it as clusterQueues[dws].stopPolicy=Hold")]
        )
    try:
        value = load_yaml(rest[1:], f"--what-if {path}")
    except SpecError as error:
        raise SimulationError(error.problems) from None
    return Change(text, path, parts, value)


def apply_changes(data: Any, changes: Iterable[Change]) -> Any:
    """A copy of `data` with the changes. Raises SimulationError where a path leads nowhere."""
    for change in changes:
        data = _replaced(data, change, 0)
    return data


def apply_to_documents(documents: Sequence[Document], changes: Iterable[Change]) -> list[Document]:
    """Copies of raw objects with the changes; paths begin with `Kind[name]` or `Kind[namespace/name]`.

    Raises SimulationError where there is no such object.
    """
    changed_documents = list(documents)
    for change in changes:
        name = change.parts[1][0] if len(change.parts) > 1 and change.parts[1][1] else ""
        indexes = [i for i, document in enumerate(changed_documents) if _is_called(document.data, change.root, name)]
        if not indexes or len(change.parts) < 3:
            raise _refused(change, "there is no such object", "write Kind[name].spec.field")
        for index in indexes:
            document = changed_documents[index]
            changed_documents[index] = document._replace(data=_replaced(document.data, change, 2))
    return changed_documents


def _refused(change: Change, wrong: str, fix: str) -> SimulationError:
    return SimulationError([OPTION.at(f"--what-if {change.path}", wrong, fix)])


def _is_called(data: Mapping[str, Any], kind: str, name: str) -> bool:
    metadata = data.get("metadata")
    if data.get("kind") != kind or not isinstance(metadata, Mapping):
        return False
    return name in (metadata.get("name"), f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}")


def _replaced(data: Any, change: Change, depth: int) -> Any:
    if depth == len(change.parts):
        return change.value
    key, bracketed_key = change.parts[depth]
    last = depth == len(change.parts) - 1
    if isinstance(data, Mapping) and (key in data or last):
        return {**data, key: _replaced(data.get(key), change, depth + 1)}
    if isinstance(data, list) and bracketed_key:
        index = item_index(data, key)
        if index is not None:
            return [*data[:index], _replaced(data[index], change, depth + 1), *data[index + 1 :]]
    if data is None and not bracketed_key:
        return {key: _replaced(None, change, depth + 1)}
    raise _refused(change, f"there is no {key}", keys_of(data))


def differences(before: Result, after: Result) -> list[dict[str, Any]]:
    """The workloads that fare differently: namespace, name, and what differs `before` and `after`.

    A workload that is only in one of them has None in the other.
    """
    old, new = (_by_name(result) for result in (before, after))
    changes = []
    for key in dict.fromkeys((*old, *new)):
        sides = [
            None if side is None else {name: side[name] for name in _COMPARED} for side in (old.get(key), new.get(key))
        ]
        if sides[0] != sides[1]:
            changes.append({"namespace": key[0], "name": key[1], "before": sides[0], "after": sides[1]})
    return changes


def _by_name(result: Result) -> dict[tuple[str, str, int], dict[str, Any]]:
    sides: dict[tuple[str, str, int], dict[str, Any]] = {}
    for workload in result.as_json()["workloads"]:
        number = 0
        while (key := (workload["namespace"], workload["name"], number)) in sides:
            number += 1
        sides[key] = workload
    return sides


def comparison(changes: Iterable[Change], before: Result, after: Result) -> dict[str, Any]:
    """Both results and their differences as one document."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "whatIf": [change.text for change in changes],
        "differences": differences(before, after),
        "before": before.as_json(),
        "after": after.as_json(),
    }
