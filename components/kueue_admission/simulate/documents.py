"""Text into Kubernetes objects: YAML with several documents, JSON, Lists; each with the line where it begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from pydantic_core import from_json

from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import Place, Problem, SpecError, join_path
from kueue_admission.kernel.yaml_errors import remedy_of_twice
from kueue_admission.kernel.yaml_kubectl import KubectlLoader
from kueue_admission.kernel.yaml_large import load_large
from kueue_admission.kernel.yaml_text import YamlDocument, load_documents
from kueue_admission.simulate.errors import SimulationError

_LARGE: Final = 1_000_000
"""Texts of more characters are checked by `look_over` before they are read, and use the faster reader."""

_MOST_FIELDS: Final = 200
"""The most fields that a document may have; Kubernetes' objects have five to ten."""
_WORDS: Final = re.compile(r"- [\w .,]+")
_SPACE: Final = re.compile(r"\s*")
_JSON: Final = (".json", ".jsonl")
_DECODER: Final = json.JSONDecoder()
_KUBECTL: Final = re.compile(
    r"(?:Name: +\S|NAME(?:SPACE)? |No resources found|(?:error|Error from server|Unable to connect)\b).*"
)
"""The first row of what kubectl prints for people: `describe`, a table, an error."""


class _Text:
    """A text and its documents, which are read once more if somebody asks, and not if it is large."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source

    @cached_property
    def documents(self) -> Sequence[YamlDocument]:
        try:
            return load_documents(self._text, self._source, KubectlLoader) if len(self._text) <= _LARGE else ()
        except (SpecError, RecursionError):  # Several documents of JSON, without a line between them.
            return ()


class ObjectPlace(Place):
    """Where a document of a file stands, or an object in it, and on which line each part of it is."""

    text: _Text
    number: int
    label: re.Pattern[str] | None

    @classmethod
    def of(cls, source: str, line: int, text: _Text, number: int) -> Self:
        """Of the document of this number, counted from 0."""
        place = cls(source, line)
        place.text, place.number, place.label = text, number, None
        return place

    def inside(self, item: str, data: Mapping[str, Any] | None = None) -> Self:
        """Of what is at a path in the document, empty for the whole: problems of `data` begin with its name."""
        place = type(self)(self.source, self.line, item)
        place.text, place.number, place.label = self.text, self.number, None if data is None else _label_of(data)
        return place

    @cached_property
    def last_line(self) -> int:
        """Of the whole document."""
        documents = self.text.documents
        end = documents[self.number].node.end_mark if self.number < len(documents) else None
        return (self.line or 0) if end is None else int(end.line + bool(end.column))

    def line_of(self, path: str) -> int | None:
        """See `Place`."""
        documents = self.text.documents
        if self.number >= len(documents):
            return self.line
        rest = path if self.label is None else self.label.sub("", path)
        return documents[self.number].line_of(join_path(self.item, rest))


def _label_of(data: Mapping[str, Any]) -> re.Pattern[str]:
    """How paths of problems of an object begin: `Job team-vision/train`, `ClusterQueue[gpu]`, `Job`."""
    metadata = inside(data, "metadata")
    name, prefix = (re.escape(str(metadata.get(field) or "")) for field in ("name", "generateName"))
    return re.compile(rf"{re.escape(data['kind'])}(?:[ \[](?:[^/.\[]+/)?(?:{name}|{prefix}\d+)\]?)?(?:\.|$)")


class Document(NamedTuple):
    """One object and where it stands, an `ObjectPlace` for those of files."""

    where: str
    data: Mapping[str, Any]


def read_documents(text: str, source: str, left_out: list[Problem] | None = None) -> list[Document]:
    """The objects in `text`, Lists unpacked, empty documents left out.

    What is wrong with something else than an object, which is left out, is added to `left_out`.
    Raises SimulationError for text that is neither YAML nor JSON; without `left_out`, with every problem.
    """
    if len(text) > _LARGE and "kind" not in text:
        wrong = "holds no Kubernetes object: the word kind is not in it"
        raise SimulationError([OBJECT.at("", wrong, "give another file", source=source)])
    if first := _KUBECTL.match(text):
        fix = "print the objects with kubectl get KIND -A -o yaml"
        raise _refused(source, 1, f"is text of kubectl for people: {first[0][:60].strip()!r}", fix)
    look_over(text, source, of_objects=True)
    problems: list[Problem] = []
    documents = list(_unpack(_load(text, source), problems))
    if left_out is not None:
        left_out += problems
    elif problems:
        raise SimulationError(problems)
    return documents


def look_over(text: str, source: str, *, of_objects: bool = False) -> None:
    """Refuse a large text at once that cannot be valid: reading it would take minutes.

    That is a list, a field that is written twice, or more fields than any document has; with `of_objects`, where each
    document has to be a Kubernetes object, also one without metadata, and a List of words.
    Raises SimulationError with the line. The callers find what is wrong with smaller texts.
    """
    if len(text) <= _LARGE or source.endswith(_JSON):
        return
    fields: dict[str, int] = {}
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("---", "...")):
            _end_document(fields, source, of_objects=of_objects)
            fields.clear()
        elif line.startswith("- "):
            if not fields:
                raise _refused(source, number, "is a list", "write fields, name: value")
            if of_objects and last == "items" and _WORDS.fullmatch(line):
                what = f"is the text {line[2:42]!r}, not a Kubernetes object"
                raise _refused(source, number, what, "write apiVersion and kind")
        elif number == 1 and line[:1].isalnum() and ":" not in line:
            raise _refused(source, 1, f"is the text {line[:40]!r}", "write fields, name: value")
        elif line and line[0] not in " #\t%{}[]\"'&*!|>?" and ":" in line:
            last = line.partition(":")[0]
            if last in fields:
                twice = f"{last[:40]} is written twice, first in line {fields[last]}"
                raise _refused(source, number, twice, remedy_of_twice(last))
            fields[last] = number
            if len(fields) > _MOST_FIELDS:
                many = f"has more than {_MOST_FIELDS} fields from line {min(fields.values())} on"
                raise _refused(source, number, many, "give another file")
    _end_document(fields, source, of_objects=of_objects)


def _refused(source: str, line: int | None, wrong: str, fix: str) -> SimulationError:
    return SimulationError([OBJECT.at("", wrong, fix, source=source, line=line)])


def _end_document(fields: Mapping[str, int], source: str, *, of_objects: bool) -> None:
    if of_objects and "kind" in fields and "metadata" not in fields and "items" not in fields:
        raise _refused(source, fields["kind"], "has no metadata", "give it a name there")


def _placed(text: str, source: str, documents: Iterable[tuple[int, Any]]) -> list[tuple[ObjectPlace, Any]]:
    """Documents, given with the lines where they begin."""
    shared = _Text(text, source)
    return [(ObjectPlace.of(source, line, shared, number), data) for number, (line, data) in enumerate(documents)]


def _load(text: str, source: str) -> list[tuple[ObjectPlace, Any]]:
    if source.endswith(_JSON) or text[:1] == "{":
        try:
            return _placed(text, source, _read_json(text))
        except json.JSONDecodeError as error:
            if not source.endswith(_JSON):
                return _load_yaml(text, source)
            raise _refused(source, error.lineno, f"is not readable as JSON: {error.msg}", "correct it") from None
        except ValueError:
            raise _refused(source, None, "has a number of thousands of digits", "write a shorter one") from None
        except RecursionError:
            raise _refused(source, None, "is nested too deeply", "write plain objects") from None
    return _load_yaml(text, source)


def _load_yaml(text: str, source: str) -> list[tuple[ObjectPlace, Any]]:
    if len(text) > _LARGE and (large := load_large(text)) is not None:
        return _placed(text, source, large)
    try:
        read_documents = load_documents(text, source, KubectlLoader)
        return _placed(text, source, ((document.line, document.data) for document in read_documents))
    except SpecError as error:
        raise SimulationError(error.problems) from None
    except RecursionError:
        raise _refused(source, None, "is nested too deeply", "write plain objects") from None


def _read_json(text: str) -> list[tuple[int, Any]]:
    """The documents and their lines: one, or several one after another, as `jq -c '.items[]'` prints them.

    `json` knows line and reason of what is wrong, but takes longer over a large text.
    """
    try:
        return [(1, from_json(text, cache_strings="keys"))]
    except ValueError:
        pass
    items: list[tuple[int, Any]] = []
    line = end = 0
    while (start := _after_space(text, end)) < len(text) or not items:
        line += text.count("\n", end, start)
        data, after = _DECODER.raw_decode(text, start)
        items.append((line + 1, data))
        line, end = line + text.count("\n", start, after), after
    return items


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _unpack(documents: Iterable[tuple[ObjectPlace, Any]], problems: list[Problem]) -> Iterator[Document]:
    for where, data in documents:
        if data is None:
            continue
        if isinstance(data, list):
            problem = OBJECT.at("", f"is a list of {len(data)}", "write objects, or a List with items")
            problems.append(problem.behind(where))
        elif not isinstance(data, Mapping):
            problem = OBJECT.at("", f"is {_text_of(data)}, not a Kubernetes object", "write apiVersion and kind")
            problems.append(problem.behind(where))
        elif str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
            yield from _items(where, data, problems)
        elif data.get("kind") == "List":
            wrong = f"is {_text_of(data['items'])}" if data.get("items") is not None else "is missing or empty"
            problems.append(
                OBJECT.at("items", wrong, "write a list of objects, each with a '- ' before it").behind(where)
            )
        elif "kind" not in data:
            problems.append(_no_object(data).behind(where))
        else:
            yield from _document(where, data, problems)


def _no_object(data: Mapping[str, Any]) -> Problem:
    if isinstance(data.get("clusters"), list) and "name" in data:
        return OBJECT.at("", "is a fleet, not a Kubernetes object", "give a file with jobs")
    if isinstance(data.get("jobs"), list):
        fix = "give it to simulate or explain with --workload"
        return OBJECT.at("", "is a workload file, not a Kubernetes object", fix)
    if "apiVersion" in data and isinstance(data.get("items"), list):
        return OBJECT.at("", "is cut off: a List ends with kind: List", "print it again, to its end")
    keys = ", ".join(str(key) for key in list(data)[:3])
    return OBJECT.at("", f"has no kind, but {keys[:60] or 'nothing'}", "write apiVersion and kind")


def _items(where: ObjectPlace, list_data: Mapping[str, Any], problems: list[Problem]) -> Iterator[Document]:
    """The objects of a List, of Lists in it, and of a list that names the kind of its items once, as the API does."""
    kind, version = str(list_data["kind"]).removesuffix("List"), list_data.get("apiVersion")
    for index, item in enumerate(list_data["items"]):
        place = where.inside(f"{where.item}.items[{index}]".lstrip("."))
        if isinstance(item, Mapping) and kind and "kind" not in item:
            yield from _document(place, {"apiVersion": version, "kind": kind, **item}, problems)
        elif (
            isinstance(item, Mapping) and str(item.get("kind")).endswith("List") and isinstance(item.get("items"), list)
        ):
            yield from _items(place, item, problems)
        elif isinstance(item, Mapping) and "kind" in item:
            yield from _document(place, item, problems)
        else:
            what = "has no kind" if isinstance(item, Mapping) else f"is {_text_of(item)}, not a Kubernetes object"
            problems.append(OBJECT.at("", what, "write apiVersion and kind").behind(place))


def _document(where: ObjectPlace, data: Mapping[str, Any], problems: list[Problem]) -> Iterator[Document]:
    """The object, unless its labels or annotations are not maps: whatever reads them relies on that."""
    kind, metadata = data["kind"], data.get("metadata")
    if not isinstance(kind, str) or not kind:
        problems.append(OBJECT.at("kind", f"is {_text_of(kind)}", "write a kind, such as Job").behind(where))
        return
    where = where.inside(where.item, data)
    fields = metadata if isinstance(metadata, Mapping) else {}
    for field in ("labels", "annotations"):
        value = fields.get(field)
        if value is not None and not isinstance(value, Mapping):
            problem = OBJECT.at(f"{kind}.metadata.{field}", f"is {_text_of(value)}", "write a map of names to text")
            problems.append(problem.behind(where))
            return
    yield Document(where, data)


def _text_of(data: object) -> str:
    text = " ".join(str(data)[:200].split())
    return f"the text {text[:40]!r}{'...' if len(text) > 40 else ''}" if isinstance(data, str) else _plain(data)[:40]


def _plain(data: object) -> str:
    return "null" if data is None else str(data).lower() if isinstance(data, bool) else repr(data)
