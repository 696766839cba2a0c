"""Commands for a live fleet where something else than an API server answers, such as a proxy that wants a login."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.in_process import Command
from tests.cli.live_fleet import serve

from kueue_fleet.cli.fleet_files import load_fleet

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"
ANSWERS = {
    "page": b"<html>login</html>",
    "empty": b"",
    "list": b"[]",
    "no items": b"{}",
    "null": b'{"items": null}',
    "list of null": b'{"items": [null]}',
    "nameless": b'{"items": [{"metadata": {}}]}',
    "no text": b"\xff",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize(
    "arguments", ["status", "top", "when {stack} --job j", "describe j", "logs j", "cancel j --yes", "rotate"]
)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_something_else_than_an_api_server_answers(
    answer: bytes, arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = Command(monkeypatch, capsys)
    if " " not in arguments:
        arguments += " {stack}"
    with serve(load_fleet(STACK).cluster_names, monkeypatch, tmp_path / "kubeconfig") as fleet:
        fleet.strange = answer
        ended = command(arguments.format(stack=STACK))
    assert ended.code == 1
    assert "the answer is not" in ended.out + ended.err or "its Secret has no kubeconfig" in ended.err
