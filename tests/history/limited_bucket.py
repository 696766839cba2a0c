"""Cloud Storage as who may only create and read objects below one path of the bucket `b` is let use it.

`python -m tests.history.limited_bucket` prints its port, then a line for each object that is created or request that is
refused. In a process of its own: pyarrow holds the interpreter while it waits for an answer.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import ClassVar
from urllib.parse import unquote

from gcp_storage_emulator import server
from gcp_storage_emulator.server import Request, Response, Router, create_server

PATH = "team-a/history/"


class LimitedRouter(Router):  # type: ignore[misc]
    """Refuses what roles/storage.objectCreator and objectViewer, with a condition on PATH, do not allow."""

    names: ClassVar[list[str]] = []

    def handle(self, method: str) -> None:
        request = Request(self._request_handler, method)
        if self._allows(method, request.path, request.query):
            super().handle(method)
            return
        print("refused", method, request.full_url, flush=True)
        response = Response(self._request_handler)
        response.status = HTTPStatus.FORBIDDEN
        response.close()

    def _allows(self, method: str, path: str, query: dict[str, list[str]]) -> bool:
        """Who may not list the whole bucket is refused, too, where an object is not there."""
        name = unquote(path.partition("/o/")[2]) or query.get("name", [""])[0]
        if method == "GET" and path.endswith("/b/b/o"):
            return query.get("prefix", [""])[0].startswith(PATH)
        if method == "GET":
            return name in self.names and name.startswith(PATH)
        if method == "POST" and name not in self.names and name.startswith(PATH):
            self.names.append(name)
            print("created", name, flush=True)
            return True
        return method == "PUT" and "upload_id" in query


if __name__ == "__main__":
    server.Router = LimitedRouter
    with create_server("127.0.0.1", 0, in_memory=True, default_bucket="b") as made:
        print(made._api._httpd.server_port, flush=True)
        while True:
            time.sleep(60)
