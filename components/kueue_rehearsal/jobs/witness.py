"""What was ever seen of Workloads and Jobs, whatever happens to the API servers: whether each job ran once."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kueue_admission.kernel.names import KUEUE_API
from kueue_fleet.kube.answers import ApiError, Json, version_number
from kueue_fleet.kube.requests import request, watch

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

_JOBSET = "jobset.sigs.k8s.io/jobset-name"
WORKLOADS = f"/apis/{KUEUE_API}/workloads"
"""Path of all Workloads of a cluster."""
_WATCH_SECONDS = 600
_WATCHES_APART_SECONDS = 0.25
"""By how much the watches of two servers may tell their news in the wrong order."""


class Server(Protocol):
    """An API server, asked as administrator; it may move to another address."""

    @property
    def server(self) -> str:
        """Its address."""

    @property
    def ca_file(self) -> Path:
        """The certificate that it is known by."""

    @property
    def token(self) -> str:
        """The administrator's."""


@dataclass
class Sighting:
    """An object, from when to when it was seen; `gone_at` None: it is there."""

    item: Json
    seen_at: float
    gone_at: float | None = None


class Witness:
    """What was ever seen in a list of a cluster, whatever happens to its API server meanwhile, until it is closed."""

    def __init__(
        self, cluster: Server, path: str, listener: Callable[[Json, bool], None] = lambda item, gone: None
    ) -> None:
        self.seen: dict[str, Sighting] = {}
        """Every object, in its last state, by uid."""
        self._listener = listener
        self._cluster = cluster
        self._path = path
        self._closed = threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()

    def close(self) -> None:
        """Follow no further than the end of the watch, which ends with the API server."""
        self._closed.set()

    def _follow(self) -> None:
        version, client = "", None
        while not self._closed.is_set():
            if client is None or client.configuration.host != self._cluster.server:
                client = _client_of(self._cluster)
            try:
                version = self._reached(client, version) or self._list(client)
                for kind, item in watch(client, self._path, version, _WATCH_SECONDS):
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._see(item, gone=kind == "DELETED")
            except (ApiError, OSError, ValueError) as error:
                if isinstance(error, ApiError) and error.asks_for_list:
                    version = ""
                self._closed.wait(0.1)

    def _reached(self, client: ApiClient, version: str) -> str:
        """The version, if the server has reached it; of one that was restored from a backup nothing would be heard."""
        newest = request(client, "GET", self._path, params={"limit": "1"})["metadata"]["resourceVersion"]
        return version if version_number(version) <= version_number(newest) else ""

    def _list(self, client: ApiClient) -> str:
        """See all that is there now, and that the rest is gone; the version of the list."""
        page = request(client, "GET", self._path)
        for item in page["items"]:
            self._see(item, gone=False)
        there = {item["metadata"]["uid"] for item in page["items"]}
        for uid, sighting in list(self.seen.items()):
            if uid not in there:
                self._see(sighting.item, gone=True)
        return str(page["metadata"]["resourceVersion"])

    def _see(self, item: Json, *, gone: bool) -> None:
        now, uid = time.monotonic(), item["metadata"]["uid"]
        sighting = self.seen.setdefault(uid, Sighting(item, now))
        sighting.item = item
        if sighting.gone_at is None and gone:
            sighting.gone_at = now
        self._listener(item, gone)

    def names(self) -> Counter[str]:
        """How many objects of each name there ever were."""
        return Counter(sighting.item["metadata"]["name"] for sighting in list(self.seen.values()))

    def there(self) -> set[str]:
        """The names of the objects that are there now."""
        return {sighting.item["metadata"]["name"] for sighting in list(self.seen.values()) if sighting.gone_at is None}


def _client_of(cluster: Server) -> ApiClient:
    from kubernetes.client import ApiClient, Configuration

    configuration = Configuration(host=cluster.server, api_key={"BearerToken": f"Bearer {cluster.token}"}, retries=0)
    configuration.ssl_ca_cert = str(cluster.ca_file)
    return ApiClient(configuration)


def job_of(workload: str) -> str:
    """The job that Kueue named a Workload after."""
    return workload.removeprefix("job-").rpartition("-")[0]


class Witnesses:
    """The copies and the jobs of every worker."""

    def __init__(self, workers: Mapping[str, Server]) -> None:
        self.copies = {name: Witness(cluster, WORKLOADS) for name, cluster in workers.items()}
        self.jobs = {name: Witness(cluster, "/apis/batch/v1/jobs") for name, cluster in workers.items()}

    def close(self) -> None:
        """Follow no further."""
        for witness in (*self.copies.values(), *self.jobs.values()):
            witness.close()

    def places(self) -> dict[str, set[str]]:
        """By job: the workers that ever had a copy of its Workload."""
        places_by_job: dict[str, set[str]] = {}
        for worker, witness in self.copies.items():
            for name in witness.names():
                places_by_job.setdefault(job_of(name), set()).add(worker)
        return places_by_job

    def there(self) -> set[str]:
        """The jobs of which a worker has anything now."""
        copies = {job_of(name) for witness in self.copies.values() for name in witness.there()}
        return copies.union(*(witness.there() for witness in self.jobs.values()))

    def lost(self, worker: str) -> None:
        """Everything on a worker went with its API server, which no watch tells."""
        for witness in (self.copies[worker], self.jobs[worker]):
            for sighting in list(witness.seen.values()):
                sighting.gone_at = sighting.gone_at or time.monotonic()

    def runs(self) -> Counter[str]:
        """How many jobs of each name there ever were on workers: how often it ran."""
        return sum((witness.names() for witness in self.jobs.values()), start=Counter())

    def runs_of(self, namespace: str, name: str) -> list[tuple[str, Json]]:
        """Each Job of a job that there ever was, and where, as they were seen: itself, or those of a JobSet."""
        runs = []
        for cluster, witness in self.jobs.items():
            for sighting in list(witness.seen.values()):
                metadata = sighting.item["metadata"]
                names = metadata["name"], (metadata.get("labels") or {}).get(_JOBSET)
                if metadata["namespace"] == namespace and name in names:
                    runs.append((sighting.seen_at, cluster, sighting.item))
        return [(cluster, item) for _, cluster, item in sorted(runs, key=lambda each: each[0])]

    def overlaps(self) -> list[str]:
        """Jobs that were on workers twice at one time."""
        runs: dict[str, list[tuple[float, float, str]]] = {}
        for worker, witness in self.jobs.items():
            for sighting in list(witness.seen.values()):
                end = math.inf if sighting.gone_at is None else sighting.gone_at
                runs.setdefault(sighting.item["metadata"]["name"], []).append((sighting.seen_at, end, worker))
        return [
            f"{name} on {first[2]} until {first[1]:.1f} and on {second[2]} from {second[0]:.1f}"
            for name, overlap_texts in runs.items()
            for first, second in pairwise(sorted(overlap_texts))
            if second[0] < first[1] - _WATCHES_APART_SECONDS
        ]
