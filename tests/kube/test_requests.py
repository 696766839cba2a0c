"""Requests of commands to an API server that answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kubernetes.client import ApiClient, Configuration

from kueue_fleet.kube import requests
from kueue_fleet.kube.answers import ApiError

JOBS = "/apis/batch/v1/namespaces/team/jobs"
CREATED = (201, {"kind": "Job"})
QUOTA = 'Operation cannot be fulfilled on resourcequotas "kueue-fleet": the object has been modified'
CONFLICT = (409, {"reason": "Conflict", "message": QUOTA})
EXISTS = (409, {"reason": "AlreadyExists", "message": 'jobs.batch "a" already exists'})
Answer = tuple[int, dict[str, str]]


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[ApiClient, list[str]]]:
    """A client of a server with these answers, and the methods and credentials that it was asked with."""
    left, asked = list(answers), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(" ".join([self.command, *self.headers.get_all("Authorization", [])]))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = left.pop(0)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PATCH = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield ApiClient(Configuration(host=f"http://127.0.0.1:{server.server_port}")), asked
        finally:
            server.shutdown()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_QUOTA_PAUSES", (0.0, 0.0))


def test_an_official_client_sends_its_own_credential() -> None:
    with answering(CREATED) as (client, asked):
        client.configuration.api_key["authorization"] = "Bearer of-the-client"
        requests.request(client, "POST", JOBS, {})
        assert asked == ["POST Bearer of-the-client"]


def test_what_a_quota_refused_as_it_changed_is_created_again() -> None:
    with answering(CONFLICT, CONFLICT, CREATED) as (client, asked):
        assert requests.request(client, "POST", JOBS, {}) == {"kind": "Job"}
        assert len(asked) == 3


@pytest.mark.parametrize(
    ("method", "answers", "reason"),
    [
        ("POST", (CONFLICT,) * 3, "Conflict"),
        ("POST", (EXISTS,), "AlreadyExists"),
        ("PATCH", (CONFLICT,), "Conflict"),
    ],
    ids=["it changes on", "it is there", "another object"],
)
def test_what_stays_refused_is_said(method: str, answers: tuple[Answer, ...], reason: str) -> None:
    with answering(*answers) as (client, asked):
        with pytest.raises(ApiError) as refused:
            requests.request(client, method, JOBS, {})
        assert (refused.value.reason, len(asked)) == (reason, len(answers))
