"""Reads YAML as the fleet has it: the 1.2 core schema, duplicate keys refused, every failure with its line.

`yes` and `on` are text, `12:30` is text and dates are text, as in Pulumi's own reader; so a file means the same to the
checker and to `pulumi up`. What Go's readers take for another number, `010` and `1_000`, is refused.
Source: gopkg.in/yaml.v3@v3.0.1 resolve.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import yaml

from kueue_admission.kernel.form_rules import YAML
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_bounds import has_aliases, refuse_deep_text, refuse_expansion
from kueue_admission.kernel.yaml_errors import explain, remedy_of_twice
from kueue_admission.kernel.yaml_lines import Lines

_MOST_DIGITS: Final = 1000
"""Digits of a whole number. Python refuses to read 4,301, and to print what 3,600 of base 16 are."""
_WIDTH: Final = 120
"""Columns of a line that is written."""
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlLoader(_Base):  # type: ignore[misc]
    """libyaml's loader where PyYAML has it, which is ten times faster."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The map of a node. Raises _DuplicateKeyError, which only this module sees."""
        self._refuse_duplicates(node)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def _refuse_duplicates(self, node: Any) -> None:
        first: dict[Any, int] = {}
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge" or not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.value in first:
                raise _DuplicateKeyError(key.value, first[key.value], line)
            first[key.value] = line


class _DuplicateKeyError(Exception):
    def __init__(self, key: str, first: int, again: int) -> None:
        super().__init__(key)
        self.key, self.first, self.again = key, first, again


class _OtherNumberError(Exception):
    def __init__(self, text: str, value: int, line: int) -> None:
        super().__init__(text)
        self.text, self.value, self.line = text, value, line


_RESOLVERS: Final = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)
_GO_NUMBER: Final = r"[-+]?(0b[01_]+|0[0-7_]+|[1-9][0-9]*_[0-9_]*)"
"""Whole numbers that Go's readers know beyond the core schema, or read otherwise: binary, octal, with underscores."""
GO_TAG: Final = "tag:yaml.org,2002:go-number"
"""Of such numbers."""


class _Dumper(yaml.SafeDumper):
    """Quotes text that this reader, or one of YAML 1.1, would take for something else."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (PyYAML declares it so)
        letter: [*resolvers] for letter, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


for _name, _pattern, _first in _RESOLVERS:
    for _letter in _first:
        for _of in (YamlLoader, _Dumper):
            _of.yaml_implicit_resolvers.setdefault("" if _letter == "\0" else _letter, []).append(
                (f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})\Z"))
            )


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    """Text of several lines as a block, where YAML has one for it: a Configuration, a script or a query is read so."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.rstrip("\n") else None)


_Dumper.add_representer(str, _text)


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    if len(text) > _MOST_DIGITS:
        raise yaml.MarkedYAMLError(problem=f"a number has {len(text)} digits", problem_mark=node.start_mark)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _go_number(loader: Any, node: Any) -> int:
    """A number that Go's readers have too. Raises _OtherNumberError for what the core schema reads otherwise."""
    text = loader.construct_scalar(node)
    value = as_go_reads(text)
    if not text.lstrip("-+").isdecimal() or value != int(text):
        raise _OtherNumberError(text, value, node.start_mark.line + 1)
    return value


def as_go_reads(text: str) -> int:
    """The number that a text is to them."""
    plain = text.replace("_", "")
    digits = plain.lstrip("-+")
    value = int(digits, 2 if digits[:2] == "0b" else 8 if digits[0] == "0" and len(digits) > 1 else 10)
    return -value if plain[0] == "-" else value


YamlLoader.add_constructor("tag:yaml.org,2002:int", _integer)
for _of in (YamlLoader, _Dumper):
    for _letter in "-+0123456789":  # Before the others, which are longer in coming.
        _of.yaml_implicit_resolvers[_letter].insert(0, (GO_TAG, re.compile(rf"(?:{_GO_NUMBER})\Z")))
YamlLoader.add_constructor(GO_TAG, _go_number)


@dataclass(frozen=True)
class YamlDocument:
    """The data of a document, and where each part of it is in the text."""

    data: Any
    source: str
    node: Any = None
    """PyYAML's node of the data; None for a document without content."""

    @property
    def line(self) -> int:
        """The line where the document begins, counted from 1."""
        return self.node.start_mark.line + 1 if self.node is not None else 1

    def below(self, *keys: str) -> YamlDocument:
        """The part of the document under these keys of maps, one in the other. Raises KeyError."""
        data, node = self.data, self.node
        for key in keys:
            data, node = data[key], next(value for name, value in node.value if name.value == key)
        return YamlDocument(data, self.source, node)

    def line_of(self, path: str) -> int | None:
        """The line of a problem's path, or of the part that is there of it; None without content."""
        return self._lines.of(path) if self._lines is not None else None

    def span_of(self, path: str) -> tuple[int, int] | None:
        """Where the text has the one value of `path`, from its first character up to that behind it; None: it has none,
        or a map or list there."""
        node = self._lines.node_of(path) if self._lines is not None else None
        return (node.start_mark.index, node.end_mark.index) if isinstance(node, yaml.ScalarNode) else None

    def written_at(self, path: str) -> str:
        """The one value of `path` as the text has it, without quotes; empty: it has none, or a map or list there."""
        node = self._lines.node_of(path) if self._lines is not None else None
        return str(node.value) if isinstance(node, yaml.ScalarNode) else ""

    @cached_property
    def _lines(self) -> Lines | None:
        return Lines(self.node) if self.node is not None else None


def dump_yaml(data: object) -> str:
    """Data as YAML that reads as the same data; where a text of it has characters that do not print, in ASCII."""
    text = _dumped(data, allow_unicode=True)
    return text if text.replace("\n", "").isprintable() else _dumped(data, allow_unicode=False)


def _dumped(data: object, *, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=_WIDTH)
    return text


def load_yaml(text: str, source: str) -> Any:
    """The data of the one document in `text`. Raises SpecError as `load_document` does."""
    return load_document(text, source).data


def load_document(text: str, source: str) -> YamlDocument:
    """The one document in `text`. Raises SpecError, with `source` and the line, for text that is not good YAML."""
    documents = load_documents(text, source)
    if len(documents) > 1:
        raise SpecError(
            [YAML.at("", f"holds {len(documents)} YAML documents", "keep one document to a file", source=source)]
        )
    return documents[0] if documents else YamlDocument(None, source)


def load_documents(text: str, source: str, loader: type[YamlLoader] = YamlLoader) -> list[YamlDocument]:
    """Every document in `text`. Raises SpecError as `load_document` does."""
    refuse_deep_text(text, source, loader)
    try:
        return list(_documents(text, source, loader))
    except _OtherNumberError as error:
        meant = error.text.lstrip("-+0")
        octal = meant.isdecimal()
        wrong = f"{error.text} is {error.value} to Pulumi and kubectl{', which read it as octal' if octal else ''}"
        fix = f"write {meant} or {error.value}" if octal else f"write {error.value}"
        fix = f'{fix}, or "{error.text}" in quotes if it is text'
        raise SpecError([YAML.at("", wrong, fix, source=source, line=error.line)]) from None
    except _DuplicateKeyError as error:
        raise SpecError(
            [
                YAML.at(
                    "",
                    f"{error.key} is written twice in the same map, first in line {error.first}",
                    remedy_of_twice(error.key),
                    source=source,
                    line=error.again,
                )
            ]
        ) from None
    except yaml.MarkedYAMLError as error:
        raise SpecError([explain(error, text, source)]) from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        reason = str(getattr(error, "reason", None) or error)
        raise SpecError(
            [YAML.at("", f"is not readable as YAML: {reason}", "remove it", source=source, line=line)]
        ) from None


def _documents(text: str, source: str, reader: type[YamlLoader]) -> Iterator[YamlDocument]:
    loader: Any = reader(text)
    expands = has_aliases(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if expands:
                refuse_expansion(node, source)
            yield YamlDocument(loader.construct_document(node), source, node)
    finally:
        loader.dispose()
