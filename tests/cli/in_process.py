"""The command line called in this process, as its script calls it: what it prints on each stream, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from io import BytesIO, TextIOWrapper
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from kueue_fleet.cli import app, main

GROUP: Any = get_command(app)


def commands_below(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command without subcommands, by what is typed for it: `check`, `simulate fleet`."""
    for name in group.list_commands(None):
        result = group.get_command(None, name)
        if hasattr(result, "list_commands"):
            yield from commands_below(result, f"{path}{name} ")
        else:
            yield f"{path}{name}", result


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """Calls `kueue-fleet`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, arguments: Sequence[str] | str, stdin: bytes = b"") -> Ended:
        words = arguments.split() if isinstance(arguments, str) else arguments
        self._patch.setattr(sys, "argv", ["kueue-fleet", *words])
        self._patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin), encoding="utf-8"))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, *self._capsys.readouterr())
