"""Kubeconfigs, read as client-go reads them.

Source: client-go@v0.36.3 tools/clientcmd (loader.go, validation.go). A field of a cluster or a user is used, or refused
by its name in `access`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kueue_admission.kernel.yaml_text import load_yaml

_USUAL: Final = "~/.kube/config"


class AccessError(Exception):
    """Credentials that cannot be used; the message never has any of them."""


def kubeconfig_files(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files that kubectl reads: those of KUBECONFIG that are there, else ~/.kube/config."""
    file_list = environ.get("KUBECONFIG") or _USUAL
    files = (Path(name).expanduser() for name in file_list.split(os.pathsep) if name)
    return tuple(file for file in dict.fromkeys(files) if file.exists())


@dataclass(frozen=True, slots=True)
class Entry:
    """A context, cluster or user of a kubeconfig. Each method raises AccessError for a field that it cannot use."""

    path: str
    """Its file and its place there."""
    folder: Path
    """Of the file, which its own paths are relative to."""
    fields: Mapping[str, Any] = field(repr=False)

    def error(self, name: str, wrong: str, fix: str = "correct it") -> AccessError:
        """What is wrong with a field."""
        return AccessError(f"{self.path}{f'.{name}' if name else ''}: {wrong}; {fix}")

    def text(self, name: str) -> str:
        """A text; empty where the field is."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, "is not a text")
        return value or ""

    def flag(self, name: str) -> bool:
        """True or false; false where the field is empty."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(name, "is neither true nor false")
        return bool(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.fields.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(name, "is not a list of texts")
        return tuple(value)

    def file(self, name: str) -> str:
        """What is in the file that a field names; empty where the field is."""
        file_name = self.text(name)
        try:
            return (self.folder / file_name).read_text(encoding="utf-8") if file_name else ""
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise self.error(name, f"cannot be read: {why}") from None

    def content(self, name: str) -> str:
        """What `NAME-data` has in base64, or the file that `NAME` names; empty where there is neither."""
        data = self.text(f"{name}-data")
        if data and self.text(name):
            raise self.error(name, f"is beside {name}-data", "keep one of them")
        if not data:
            return self.file(name)
        try:
            return base64.b64decode("".join(data.split()), validate=True).decode()
        except ValueError:
            raise self.error(f"{name}-data", "is not base64 of a text") from None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """What one or more files have."""

    path: str
    contexts: Mapping[str, Entry]
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    current: str
    """Name of the current context; empty: none."""

    def context(self, name: str = "") -> Entry:
        """The context of this name; empty: the current one. Raises AccessError."""
        if not (name or self.current):
            raise AccessError(f"{self.path}: has no current context; name one")
        if (name or self.current) not in self.contexts:
            context_text = f"context {name or self.current}"
            raise AccessError(f"{self.path}: has no {context_text}; give a kubeconfig with a {context_text}")
        return self.contexts[name or self.current]

    def cluster(self, context: Entry) -> Entry:
        """The cluster of a context. Raises AccessError."""
        return self._of(context, "cluster", self.clusters)

    def user(self, context: Entry) -> Entry:
        """The user of a context. Raises AccessError."""
        return self._of(context, "user", self.users)

    def _of(self, context: Entry, name: str, entries: Mapping[str, Entry]) -> Entry:
        entry = entries.get(context.text(name))
        if entry is None:
            raise context.error(name, f"there is no {name} {context.text(name)!r}")
        return entry


def read_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    """One kubeconfig of several files: the first file that has a name, or a current context, counts.

    Raises AccessError.
    """
    entries: dict[str, dict[str, Entry]] = {"contexts": {}, "clusters": {}, "users": {}}
    current = ""
    for file in files:
        document = _document(file)
        for section, section_entries in entries.items():
            for entry in _entries(file, document, section):
                section_entries.setdefault(*entry)
        current = current or _text(file, document, "current-context")
    path = os.pathsep.join(map(str, files)) or "kubeconfig"
    return Kubeconfig(path, **entries, current=current)


def _document(file: Path) -> Mapping[str, Any]:
    try:
        document = load_yaml(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise AccessError(f"{file}: cannot be read: {error.strerror}; give a kubeconfig") from None
    except ValueError:
        raise AccessError(f"{file}: is not YAML; give a kubeconfig") from None
    if not isinstance(document, Mapping):
        raise AccessError(f"{file}: is not a kubeconfig; give one")
    return document


def _entries(file: Path, document: Mapping[str, Any], section: str) -> list[tuple[str, Entry]]:
    kind = section.removesuffix("s")
    listed_entries = document.get(section) or []
    named_entries = listed_entries if isinstance(listed_entries, list) else [None]
    entries = []
    for item in named_entries:
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise AccessError(f"{file}: {section}: is not a list of names, each with a {kind}; give a kubeconfig")
        name, fields = item["name"], item.get(kind) or {}
        if not isinstance(fields, Mapping):
            raise AccessError(f"{file}: {section}[{name}].{kind}: has no fields; give a kubeconfig")
        entries.append((name, Entry(f"{file}: {section}[{name}].{kind}", file.absolute().parent, fields)))
    return entries


def _text(file: Path, document: Mapping[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise AccessError(f"{file}: {name}: is not a text; give a kubeconfig")
    return value
