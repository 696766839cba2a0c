"""A large dump of YAML, cut into its objects, which are read one by one when they are needed.

In: what `kubectl get -o yaml` prints, one List. Out: for each item the few fields by which `relevance` chooses, and on
request the whole item. Any text that is not of that form raises NotSimpleError: the full reader is to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kueue_fleet.explain.block_yaml import NotSimpleError, read_block, read_name
from kueue_fleet.explain.dump_rows import Split, Splitter, marked
from kueue_fleet.kueue_api.problem import SpecError

_BEGIN: Final = re.compile(r"apiVersion: v1\nitems:\n(?=- )")
_AFTER: Final = re.compile(r"^(?![ -]|$)", re.MULTILINE)
_INNER: Final = re.compile(r"\n    [a-zA-Z]")
_FINISHED: Final = re.compile(r"status: ['\"](True|False)['\"]\n      type: Finished\n")
_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_WORKLOADS: Final = ("Workload", "Job", "JobSet")


class Item:
    """One object of the List. `data` has its fields; of a workload only those by which it is chosen.

    See `alike.Readable` for the rest.
    """

    def __init__(self, text: str, specs: dict[str, Any], data: Mapping[str, Any] | None, split: Split | None) -> None:
        self._text = text
        self._specs = specs
        self._split = split
        self._is_whole = data is None
        self.data: Mapping[str, Any] = self._read() if data is None else data
        self.common: Hashable | None = None if split is None else split.common
        self.values: Sequence[str] = () if split is None else split.values

    def whole(self) -> Mapping[str, Any]:
        """All of its fields. Raises NotSimpleError."""
        return self.data if self._is_whole else self._read()

    def marked(self, marks: Sequence[str]) -> Mapping[str, Any]:
        """See `Readable`. Raises NotSimpleError."""
        assert self._split is not None
        return Item(marked(self._text, self._split.layout, marks), self._specs, None, None).data

    def text(self, value: str) -> str | None:
        """See `Readable`."""
        return read_name(value)

    def _read(self) -> dict[str, Any]:
        try:
            found = self._read_quickly()
        except NotSimpleError:
            from kueue_fleet.fleet_file.yaml_text import load_yaml

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
    end = _end_of_items(text, begin.end())
    if text.find("\n---", begin.end() - 1, end) >= 0 or not _is_list(text[end:]):
        raise NotSimpleError
    cutter = _Cutter()
    return [cutter.item(f"- {part}\n") for part in text[begin.end() + 2 : end].removesuffix("\n").split("\n- ")]


class _Cutter:
    """Makes items of texts; of those that are alike, the few fields are looked for in one only."""

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._few: dict[Hashable, _Few | None] = {}
        self._specs: dict[str, Any] = {}

    def item(self, text: str) -> Item:
        split = self._splitter.split(text)
        if split is None:
            return Item(text, self._specs, _few_fields(text), None)
        if split.common not in self._few:
            self._few[split.common] = _few_of(text, split)
        few = self._few[split.common]
        if few is None:
            return Item(text, self._specs, _few_fields(text), None)
        return Item(text, self._specs, few.data(split.values), split)


class _Few(NamedTuple):
    """The few fields of a workload, and the numbers of the values that are its name, its namespace, its owners."""

    fields: dict[str, Any]
    name: int
    namespace: int
    owners: tuple[tuple[str, int], ...]

    def data(self, values: Sequence[str]) -> dict[str, Any]:
        """The few fields of another one. Raises NotSimpleError."""
        owners = [{"kind": kind, "name": _name(values[at])} for kind, at in self.owners]
        name, namespace = _name(values[self.name]), _name(values[self.namespace])
        return {**self.fields, "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners}}


def _few_of(text: str, split: Split) -> _Few | None:
    """None for what is no Workload, or where its names are not among the values."""
    marks = [f"mark-{number}" for number in range(len(split.values))]
    fields = _few_fields(marked(text, split.layout, marks))
    if fields is None or fields["kind"] != "Workload":
        return None
    metadata = fields["metadata"]
    owners = metadata["ownerReferences"]
    names = [metadata["name"], metadata.get("namespace"), *(owner["name"] for owner in owners)]
    if any(name not in marks for name in names):
        return None
    name, namespace, *rest = (marks.index(name) for name in names)
    kinds = [owner["kind"] for owner in owners]
    return _Few(fields, name, namespace, tuple(zip(kinds, rest, strict=True)))


def _end_of_items(text: str, begin: int) -> int:
    """Where the rows that belong to items end."""
    last = text.rfind("\nkind: List\n", begin) + 1
    if last and text.count("\n", begin, last - 1) == text.count("\n ", begin, last) + text.count("\n- ", begin, last):
        return last
    after = _AFTER.search(text, begin)
    return len(text) if after is None else after.start()


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
    """A name. Raises NotSimpleError for what is none."""
    found = read_name(text)
    if found is None:
        raise NotSimpleError
    return found
