"""Jobs that are submitted one after the other, whatever happens to Kueue meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from kueue_rehearsal.jobs.kinds import job_name
from kueue_rehearsal.paths import RehearsalError

if TYPE_CHECKING:
    from kueue_rehearsal.jobs.clients import ClusterClients

_AGAIN_SECONDS = 0.5


class JobStream:
    """Copies of DOCUMENTS, which are jobs, in turn: one each time that so many seconds have passed, until it is closed.

    A job that is refused, as while Kueue's webhooks restart, is submitted again until it is taken.
    """

    def __init__(
        self, clients: ClusterClients, home: str, documents: Sequence[Mapping[str, Any]], every_seconds: float
    ) -> None:
        self.submitted: list[dict[str, Any]] = []
        """As the API server keeps them."""
        self.refusals: list[str] = []
        """What was answered each time that a job was refused."""
        self._clients, self._home, self._documents = clients, home, documents
        self._every = every_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Submit no more; one that is on its way is taken or refused first."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        for number in count(1):
            job = _copy(self._documents[number % len(self._documents)], number)
            due = time.monotonic() + self._every
            while not self._submit(job):
                if self._closed.wait(_AGAIN_SECONDS):
                    return
            if self._closed.wait(max(0.0, due - time.monotonic())):
                return

    def _submit(self, job: Mapping[str, Any]) -> bool:
        try:
            self.submitted.append({**self._clients.create(self._home, job), "kind": job["kind"]})
        except RehearsalError as refused:
            self.refusals.append(str(refused))
            return False
        return True


def _copy(job: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The same job by a name of its own."""
    metadata = {key: value for key, value in job["metadata"].items() if key != "generateName"}
    return {**job, "metadata": {**metadata, "name": f"{job_name(job).rstrip('-')}-{number:03}"}}
