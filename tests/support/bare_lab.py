"""Real control planes with nothing beside them, and a plain client, for the tests in tests/engines."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from api_server import api_server
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import RehearsalPaths, engines_dir
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, SupervisorClient, start_supervisor

PATIENCE_SECONDS = 60.0
"""How long anything may take on a machine that does other work too."""

CONTROL_PLANE_ENGINES = ("etcd", "kubernetes")
Json = dict[str, Any]
Seen = TypeVar("Seen")


def until(look: Callable[[], Seen | None], what: str) -> Seen:
    """What `look` returns once that is not None or empty."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        seen = look()
        if seen:
            return seen
        time.sleep(0.1)
    raise AssertionError(f"not seen in {PATIENCE_SECONDS:.0f} s: {what}")


@dataclass(frozen=True)
class Answer:
    """What an API server said."""

    status: int
    body: Json


@dataclass(frozen=True)
class BareCluster:
    """A control plane, talked to as its administrator unless another token is given; an empty one is none."""

    name: str
    server: str
    authority: str
    token: str = field(repr=False)

    def call(self, method: str, path: str, body: Json | None = None, *, token: str | None = None) -> Answer:
        token = self.token if token is None else token
        status, text = api_server(self.server, self.authority).request(method, path, body, token=token)
        return Answer(status, json.loads(text))

    def create(self, path: str, body: Json) -> Json:
        """The object made. Fails the test when it is refused."""
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer
        return answer.body

    def names(self, path: str) -> set[str]:
        """The names in a list."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return {item["metadata"]["name"] for item in answer.body["items"]}


@dataclass(frozen=True)
class BareLab:
    """A supervisor without services beside its control planes."""

    running: RunningSupervisor

    @property
    def client(self) -> SupervisorClient:
        return self.running.client

    def cluster(self, name: str, location: str = "us-east4") -> BareCluster:
        """The control plane of this name, made when there is none."""
        result = self.client.put_cluster(name, project="p", location=location, autopilot=True)
        cluster = BareCluster(
            name=name,
            server=f"https://{result['endpoint']}",
            authority=base64.b64decode(result["caCertificate"]).decode(),
            token=self.running.paths.admin_token.read_text().strip(),
        )
        # An API server is ready before it has made its namespaces.
        path = "/api/v1/namespaces/default"
        until(lambda: cluster.call("GET", path).status == 200, "the namespace `default`")
        return cluster

    def clusters(self, *names: str) -> list[BareCluster]:
        """All of them, started side by side."""
        with ThreadPoolExecutor(len(names)) as pool:
            return list(pool.map(self.cluster, names))


@contextmanager
def bare_lab(folder: Path) -> Iterator[BareLab]:
    """A lab in `folder`; engines that are not there are built first."""
    build_engines(EngineCache(engines_dir()), names=CONTROL_PLANE_ENGINES)
    with start_supervisor(RehearsalPaths(folder / "lab"), services="none") as running:
        yield BareLab(running)
