"""Commands for a live fleet where something else than an API server answers, such as a proxy that wants a login."""

from __future__ import annotations

import os
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("server", "user", "says"),
    [
        ("http://127.0.0.1:1", "{token: x}", "no answer: Failed to establish a new connection: Connection refused; "),
        ("", "{token: x}", "server: has no address; write https://HOST"),
        (
            "http://a",
            "{auth-provider: {name: gcp}}",
            "auth-provider: is not supported; use an exec plugin, such as kubelogin",
        ),
        (
            "http://a",
            "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /nowhere/x}}",
            "the credentials plugin failed: /nowhere/x cannot be run: No such file or directory; install it",
        ),
        (
            "http://a",
            "{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
            r"command: sh, args: [-c, 'printf \\033[31mno >&2; exit 3']}}",
            r"plugin failed: sh failed with exit code 3: \x1b[31mno",
        ),
    ],
)
def test_no_way_to_a_cluster_is_one_line(
    server: str, user: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    file = tmp_path / "kubeconfig"
    file.write_text(
        f"clusters: [{{name: c, cluster: {{{server and f'server: {server!r}'}}}}}]\n"
        f"contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        f"users: [{{name: u, user: {user}}}]\ncurrent-context: c\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", "from kueue_fleet.cli import main; main()", "describe", "j", "--kubeconfig", file],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
