"""API servers of a fleet that answer from tables, and the kubeconfig with a context for each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

Object = dict[str, Any]


class Fleet:
    """`tables` has what each cluster answers by path, lists as lists and logs as text, `refused` the status of paths
    that end so, `created` what was created where, and `deleted` what was deleted, with the options of the request."""

    def __init__(self, names: Sequence[str]) -> None:
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in names}
        self.refused: dict[str, int] = {}
        self.strange: bytes | None = None
        """What every request is answered with instead."""
        self.deleted: list[tuple[str, str, Object]] = []
        self.created: list[tuple[str, str, Object]] = []
        self.selectors: list[str] = []
        self.listed: Counter[str] = Counter()
        """How often each path was listed."""
        self._watches: dict[tuple[str, str], list[SimpleQueue[bytes]]] = {}

    def change(self, cluster: str, path: str, kind: str, item: Object) -> None:
        """Put an item into a list, or take it out, and tell those that watch it; of kind ERROR only tell them."""
        if kind != "ERROR":
            name = item["metadata"]["name"]
            rest = [each for each in self.tables[cluster][path] if each["metadata"]["name"] != name]
            self.tables[cluster][path] = rest if kind == "DELETED" else [*rest, item]
        for entry in self._watches.get((cluster, path), ()):
            entry.put(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def watched(self, path: str) -> list[str]:
        """The clusters of which somebody watches the path, each as often as it is."""
        return [cluster for (cluster, at), watches in self._watches.items() if at == path for _ in watches]

    def end_watches(self) -> None:
        """End each in good order, as API servers do after some minutes."""
        for entry in (item for watches in self._watches.values() for item in watches):
            entry.put(b"")
        self._watches.clear()

    def watch(self, url: str) -> SimpleQueue[bytes] | None:
        """What is to be sent to a watch, nothing at its end; None: the request is another one."""
        parts = urlsplit(url)
        if "watch" not in parse_qs(parts.query) or self.refused.get("watch"):
            return None
        _, cluster, rest = parts.path.split("/", 2)
        result: SimpleQueue[bytes] = SimpleQueue()
        self._watches.setdefault((cluster, f"/{rest}"), []).append(result)
        return result

    def answer(self, method: str, url: str, body: Object) -> tuple[int, Object | str]:
        parts = urlsplit(url)
        _, cluster, rest = parts.path.split("/", 2)
        path = f"/{rest}"
        for end, status in self.refused.items():
            if path.endswith(end):
                return status, {"kind": "Status", "reason": "Forbidden", "message": f"no {end}"}
        result = self.tables[cluster].get(path)
        if result is None:
            return 404, {"kind": "Status", "reason": "NotFound", "message": f"{path} not found"}
        if method == "POST":
            self.created.append((cluster, path, body))
            return 201, body
        if method == "DELETE":
            self.deleted.append((cluster, path, body))
            return 200, {"kind": "Status", "status": "Success"}
        self.selectors += parse_qs(parts.query).get("labelSelector", [])
        if not isinstance(result, list):
            return 200, result
        self.listed[path] += 1
        asked = {
            name: int(values[0]) for name, values in parse_qs(parts.query).items() if name in ("limit", "continue")
        }
        begin = asked.get("continue", 0)
        until = begin + asked.get("limit", len(result))
        more = {"continue": str(until)} if until < len(result) else {}
        return 200, {"metadata": {"resourceVersion": "1", **more}, "items": result[begin:until]}


@contextmanager
def serve(names: Sequence[str], monkeypatch: pytest.MonkeyPatch, file: Path) -> Iterator[Fleet]:
    """The clusters of these names; FILE becomes the kubeconfig, the first of them its current context."""
    result = Fleet(names)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            watch = result.watch(self.path)
            if watch is not None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for chunk in iter(watch.get, b""):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.write(b"0\r\n\r\n")
                return
            length = int(self.headers.get("Content-Length") or 0)
            status, document = result.answer(self.command, self.path, json.loads(self.rfile.read(length) or "{}"))
            output = document if isinstance(document, str) else json.dumps(document)
            text = output.encode() if result.strange is None else result.strange
            status = status if result.strange is None else 200
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any, **__: Any) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        clusters = [
            {"name": name, "cluster": {"server": f"http://127.0.0.1:{server.server_port}/{name}"}}
            for name in result.tables
        ]
        contexts = [
            {"name": name, "context": {"cluster": name, "user": "u", "namespace": "vision"}} for name in result.tables
        ]
        config = {"clusters": clusters, "contexts": contexts, "users": [{"name": "u", "user": {"token": "x"}}]}
        file.write_text(yaml.safe_dump({**config, "current-context": names[0]}))
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield result
        server.shutdown()
