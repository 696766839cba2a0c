"""Text into Kubernetes objects: YAML with several documents, JSON, Lists; each with the line where it begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from kueue_admission.forms.problem import SpecError
from kueue_admission.forms.yaml_large import load_large
from kueue_admission.simulate.errors import SimulationError

_LARGE: Final = 1_000_000
"""Texts of more characters are checked by `look_over` before they are read, and use the faster reader."""

_MOST_FIELDS: Final = 200
"""The most fields that a document may have; Kubernetes' objects have five to ten."""
_WORDS: Final = re.compile(r"- [\w .,]+")


class Document(NamedTuple):
    """One object and where it stands: `source:line`, and its index if it is in a List."""

    where: str
    data: Mapping[str, Any]


def read_documents(text: str, source: str) -> list[Document]:
    """The objects in `text`, Lists unpacked, empty documents left out.

    Raises SimulationError with every problem: text that is neither YAML nor JSON, or holds something else than objects.
    """
    if len(text) > _LARGE and "kind" not in text:
        raise SimulationError([f"{source}: holds no Kubernetes object: the word kind is not in it; give another file"])
    look_over(text, source, of_objects=True)
    problems: list[str] = []
    documents = list(_unpack(_load(text, source), problems))
    if problems:
        raise SimulationError(problems)
    return documents


def look_over(text: str, source: str, *, of_objects: bool = False) -> None:
    """Refuse a large text at once that cannot be valid: reading it would take minutes.

    That is a list, a field that is written twice, or more fields than any document has; with `of_objects`, where each
    document has to be a Kubernetes object, also one without metadata, and a List of words.
    Raises SimulationError with the line. The callers find what is wrong with smaller texts.
    """
    if len(text) <= _LARGE or source.endswith(".json"):
        return
    fields: dict[str, int] = {}
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("---", "...")):
            _end_document(fields, source, of_objects=of_objects)
            fields.clear()
        elif line.startswith("- "):
            if not fields:
                raise SimulationError([f"{source}:{number}: is a list; write fields, name: value"])
            if of_objects and last == "items" and _WORDS.fullmatch(line):
                what = f"is the text {line[2:42]!r}, not a Kubernetes object; write apiVersion and kind"
                raise SimulationError([f"{source}:{number}: {what}"])
        elif number == 1 and line[:1].isalnum() and ":" not in line:
            raise SimulationError([f"{source}:1: is the text {line[:40]!r}; write fields, name: value"])
        elif line and line[0] not in " #\t%{}[]\"'&*!|>?" and ":" in line:
            last = line.partition(":")[0]
            if last in fields:
                twice = f"{last[:40]} is written twice, first in line {fields[last]}; remove one of the two"
                raise SimulationError([f"{source}:{number}: {twice}"])
            fields[last] = number
            if len(fields) > _MOST_FIELDS:
                many = f"has more than {_MOST_FIELDS} fields from line {min(fields.values())} on; give another file"
                raise SimulationError([f"{source}:{number}: {many}"])
    _end_document(fields, source, of_objects=of_objects)


def _end_document(fields: Mapping[str, int], source: str, *, of_objects: bool) -> None:
    if of_objects and "kind" in fields and "metadata" not in fields and "items" not in fields:
        raise SimulationError([f"{source}:{fields['kind']}: has no metadata; give it a name there"])


def _load(text: str, source: str) -> list[tuple[str, Any]]:
    if source.endswith(".json"):
        try:
            return [(f"{source}:1", _read_json(text))]
        except json.JSONDecodeError as error:
            raise SimulationError(
                [f"{source}:{error.lineno}: is not readable as JSON: {error.msg}; correct it"]
            ) from None
        except ValueError:
            raise SimulationError([f"{source}: has a number of thousands of digits; write a shorter one"]) from None
        except RecursionError:
            raise SimulationError([f"{source}: is nested too deeply; write plain objects"]) from None
    if len(text) > _LARGE and (large := load_large(text)) is not None:
        return [(f"{source}:{line}", data) for line, data in large]
    from kueue_admission.forms.yaml_text import load_documents

    try:
        return [(f"{source}:{document.line}", document.data) for document in load_documents(text, source)]
    except SpecError as error:
        raise SimulationError(str(problem) for problem in error.problems) from None
    except RecursionError:
        raise SimulationError([f"{source}: is nested too deeply; write plain objects"]) from None


def _read_json(text: str) -> Any:
    """As `json.loads`, which knows line and reason of what is wrong, but takes longer over a large text."""
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        return json.loads(text)


def _unpack(loaded: Iterable[tuple[str, Any]], problems: list[str]) -> Iterator[Document]:
    for where, data in loaded:
        if data is None:
            continue
        if isinstance(data, list):
            problems.append(f"{where}: is a list of {len(data)}; write objects, or a List with items")
        elif not isinstance(data, Mapping):
            problems.append(f"{where}: is {_shown(data)}, not a Kubernetes object; write apiVersion and kind")
        elif str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
            yield from _items(where, data["items"], problems)
        elif "kind" not in data:
            problems.append(f"{where}: {_no_object(data)}")
        else:
            yield from _document(where, data, problems)


def _no_object(data: Mapping[str, Any]) -> str:
    if isinstance(data.get("clusters"), list) and "name" in data:
        return "is a fleet, not a Kubernetes object; give a file with jobs"
    if isinstance(data.get("jobs"), list):
        return "is a workload file, not a Kubernetes object; give it to simulate or explain with --workload"
    keys = ", ".join(str(key) for key in list(data)[:3])
    return f"has no kind, but {keys[:60] or 'nothing'}; write apiVersion and kind"


def _items(where: str, items: list[Any], problems: list[str]) -> Iterator[Document]:
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and "kind" in item:
            yield from _document(f"{where}: items[{index}]", item, problems)
        else:
            what = "has no kind" if isinstance(item, Mapping) else f"is {_shown(item)}, not a Kubernetes object"
            problems.append(f"{where}: items[{index}]: {what}; write apiVersion and kind")


def _document(where: str, data: Mapping[str, Any], problems: list[str]) -> Iterator[Document]:
    """The object, unless its labels or annotations are not maps: whatever reads them relies on that."""
    kind, metadata = data["kind"], data.get("metadata")
    if not isinstance(kind, str) or not kind:
        problems.append(f"{where}: kind: is {_shown(kind)}; write a kind, such as Job")
        return
    fields = metadata if isinstance(metadata, Mapping) else {}
    for field in ("labels", "annotations"):
        value = fields.get(field)
        if value is not None and not isinstance(value, Mapping):
            problems.append(f"{where}: {kind}.metadata.{field}: is {_shown(value)}; write a map of names to text")
            return
    yield Document(where, data)


def _shown(data: object) -> str:
    text = " ".join(str(data)[:200].split())
    return f"the text {text[:40]!r}{'...' if len(text) > 40 else ''}" if isinstance(data, str) else repr(data)[:40]
