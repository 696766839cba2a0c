"""A large dump of YAML, cut into its objects, which are read one by one when they are needed.

In: what `kubectl get -o yaml` prints, one List. Out: for each item the few fields by which `relevance` chooses, and on
request the whole item. Any text that is not of that form raises NotSimpleError: the full reader is to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.explain.block_yaml import NotSimpleError, read_block
from kueue_fleet.spec.problem import SpecError
from kueue_fleet.spec.yamltext import load_yaml

_BEGIN: Final = re.compile(r"apiVersion: v1\nitems:\n(?=- )")
_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_AFTER: Final = re.compile(r"^(?![ -]|$)", re.MULTILINE)
_INNER: Final = re.compile(r"\n    [a-zA-Z]")
_FINISHED: Final = re.compile(r"status: ['\"](True|False)['\"]\n      type: Finished\n")
_NAME: Final = re.compile(r"[a-zA-Z][-a-zA-Z0-9.]*")
_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_WORKLOADS: Final = ("Workload", "Job", "JobSet")


class Item:
    """One object of the List. `data` has its fields; of a workload only those by which it is chosen."""

    def __init__(self, text: str, specs: dict[str, Any]) -> None:
        self._text = text
        self._specs = specs
        few = _few_fields(text)
        self._is_whole = few is None
        self.data: Mapping[str, Any] = self._read() if few is None else few

    def whole(self) -> Mapping[str, Any]:
        """All of its fields. Raises NotSimpleError."""
        return self.data if self._is_whole else self._read()

    def _read(self) -> dict[str, Any]:
        try:
            found = self._read_quickly()
        except NotSimpleError:
            try:
                found = load_yaml(self._text, "")
            except SpecError:
                raise NotSimpleError from None
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
            raise NotSimpleError
        return found[0]

    def _read_quickly(self) -> Any:
        """The item, its spec from what was read before: those of one cluster are mostly alike."""
        text = self._text
        begin = text.find("\n  spec:\n") + 1
        end = text.find("\n  status:\n", begin) + 1
        if not 0 < begin < end:
            return read_block(text)
        spec = text[begin:end]
        known = self._specs.get(spec)
        if known is None:
            known = self._specs[spec] = read_block(spec)["spec"]
        found = read_block(text[:begin] + text[end:])
        found[0]["spec"] = known
        return found


def cut(text: str) -> list[Item]:
    """The items of the List in `text`. Raises NotSimpleError."""
    begin = _BEGIN.match(text)
    if begin is None or "\r" in text:
        raise NotSimpleError
    after = _AFTER.search(text, begin.end())
    end = len(text) if after is None else after.start()
    if text.find("\n---", begin.end() - 1, end) >= 0 or not _is_list(text[end:]):
        raise NotSimpleError
    starts = [found.start() for found in _ITEM.finditer(text, begin.end(), end)]
    specs: dict[str, Any] = {}
    return [Item(text[start:stop], specs) for start, stop in zip(starts, [*starts[1:], end], strict=True)]


def _is_list(rest: str) -> bool:
    """Whether what follows the items is what kubectl prints after them."""
    return isinstance(found := read_block(rest) if rest else None, dict) and found.get("kind") == "List"


def _few_fields(text: str) -> dict[str, Any] | None:
    """The fields of a workload by which it is chosen; None for other kinds, and where they are not plain to see."""
    kind = _value(text, "\n  kind: ", 0, len(text))
    begin = text.find("\n  metadata:\n")
    spec = text.find("\n  spec:\n")
    if kind not in _WORKLOADS or not 0 <= begin < spec:
        return None
    status = text.find("\n  status:\n", spec)
    status = len(text) if status < 0 else status
    name = _value(text, "\n    name: ", begin, spec)
    if name is None:
        return None
    metadata: dict[str, Any] = {"name": _name(name)}
    namespace = _value(text, "\n    namespace: ", begin, spec)
    if namespace is not None:
        metadata["namespace"] = _name(namespace)
    metadata["ownerReferences"] = _owners(_part(text, "ownerReferences", begin, spec))
    if kind != "Workload":
        label = _value(_part(text, "labels", begin, spec), f"\n      {_QUEUE_LABEL}: ")
        metadata["labels"] = {} if label is None else {_QUEUE_LABEL: _name(label)}
    queue = _value(text, "\n    queueName: ", spec, status)
    held = _value(_part(text, "admission", status, len(text)), "\n      clusterQueue: ")
    finished = False
    if "type: Finished\n" in text:
        found = _FINISHED.search(text, status)
        if found is None:
            return None
        finished = found[1] == "True"
    return {
        "kind": kind,
        "metadata": metadata,
        "spec": {} if queue is None else {"queueName": _name(queue)},
        "status": {
            **({} if held is None else {"admission": {"clusterQueue": _name(held)}}),
            **({"conditions": [{"type": "Finished", "status": "True"}]} if finished else {}),
        },
    }


def _value(text: str, key: str, begin: int = 0, end: int | None = None) -> str | None:
    """What follows `key` on its row."""
    at = text.find(key, begin, len(text) if end is None else end)
    if at < 0:
        return None
    stop = text.find("\n", at + len(key))
    return text[at + len(key) : len(text) if stop < 0 else stop]


def _part(text: str, name: str, begin: int, end: int) -> str:
    """The rows below a field of metadata or status."""
    at = text.find(f"\n    {name}:\n", begin, end)
    if at < 0:
        return ""
    after = _INNER.search(text, at + len(name), end)
    return text[at + len(name) : end if after is None else after.start()]


def _owners(part: str) -> list[dict[str, str]]:
    if not part:
        return []
    count = part.count("\n    - ")
    found = []
    at = 0
    for _ in range(count):
        at = part.index("\n    - ", at) + 1
        stop = part.find("\n    - ", at)
        one = part[at : len(part) if stop < 0 else stop]
        kind, name = _value(one, "\n      kind: "), _value(one, "\n      name: ")
        if kind is None or name is None:
            raise NotSimpleError
        found.append({"kind": _name(kind), "name": _name(name)})
    return found


def _name(text: str) -> str:
    """A name, which needs no quotes unless it could be a number or a word of YAML."""
    if _NAME.fullmatch(text) and text[0] not in "nNtTfF":
        return text
    found = read_block(f"name: {text}")["name"]
    if not isinstance(found, str):
        raise NotSimpleError
    return found
