"""The schema in the editor: what the YAML language server of VS Code and others completes and underlines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.fleet_file import json_schema
from tests.engines.node import npm_package

SERVER = "1.25.0"
FILE = """# yaml-language-server: $schema=file://SCHEMA
config:
  kueue-fleet:fleet:
    name: acme
    project: my-project
    clusters: [{ name: a, role: standalone, region: us-east4, mode: Standard }]
    nodePools:
      - name: typing-error
        machineType: g2-standard-24
        capacity: { type: flexStart, maxRunDuratoin: 2h }
      - name: field-of-another-branch
        machineType: g2-standard-24
        capacity: { type: spot, maxRunDuration: 1h }
      - name: no-machine
      - name: unfinished
        machineType: g2-standard-24
        capacity:
          type: flexStart
          CURSOR
    flavors: 5
"""
URI = "file:///Pulumi.acme.yaml"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(FILE.splitlines(), 1) if text in line)


class Editor:
    """A client of the Language Server Protocol, with one file open."""

    def __init__(self, server: subprocess.Popen[bytes], text: str) -> None:
        self._server, self._sent = server, 0
        self.underlined: dict[int, str] | None = None
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {"textDocument": {"hover": {}}}})
        self._send({"method": "initialized", "params": {}})
        opened = {"uri": URI, "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})

    def at(self, method: str, text: str, column: int) -> Any:
        """What is answered for a column of the line that has TEXT."""
        place = {"line": line_of(text) - 1, "character": column}
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": URI}, "position": place})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._sent += 1
        self._send({"id": self._sent, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self._sent and "method" not in message:
                return message["result"]

    def receive(self) -> dict[str, Any]:
        """The next message; questions of the server are answered with nothing."""
        assert self._server.stdout is not None
        length = 0
        while header := self._server.stdout.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        assert length, "the language server has ended"
        message: dict[str, Any] = json.loads(self._server.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            result = message["params"]["diagnostics"]
            self.underlined = {item["range"]["start"]["line"] + 1: item["message"] for item in result}
        elif "id" in message and "method" in message:
            asked = message["params"].get("items", []) if message["method"] == "workspace/configuration" else []
            self._send({"id": message["id"], "result": [{} for _ in asked]})
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(json_schema()))
    node, package = npm_package("yaml-language-server", SERVER)
    command = [str(node), str(package / "bin" / "yaml-language-server"), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            yield Editor(server, FILE.replace("SCHEMA", str(schema)).replace("CURSOR", ""))
        finally:
            server.kill()


def test_a_branch_of_capacity_offers_its_own_fields_with_their_defaults_and_refuses_those_of_others(
    editor: Editor,
) -> None:
    offered = {item["label"]: item for item in editor.at("completion", "CURSOR", 10)["items"]}
    assert set(offered) == {"queuedProvisioning", "maxRunDuration"}
    assert "168h" in offered["maxRunDuration"]["insertText"]
    documentation = offered["maxRunDuration"]["documentation"]
    assert "at most seven days" in (documentation if isinstance(documentation, str) else documentation["value"])

    while editor.underlined is None:
        editor.receive()
    assert editor.underlined == {
        line_of("maxRunDuratoin"): "Property maxRunDuratoin is not allowed.",
        line_of("type: spot"): "Property maxRunDuration is not allowed.",
        line_of("no-machine"): 'Missing property "machineType".',
        line_of("flavors: 5"): 'Incorrect type. Expected "array".',
    }

    hovered = editor.at("hover", "    nodePools:", 6)
    assert "Nodes of Standard clusters." in hovered["contents"]["value"]
