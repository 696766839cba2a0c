"""Jobs that are submitted one after the other while Kueue restarts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from kueue_rehearsal.jobs import stream
from kueue_rehearsal.jobs.clients import ClusterClients
from kueue_rehearsal.jobs.stream import JobStream
from kueue_rehearsal.paths import RehearsalError


class Cluster(ClusterClients):
    """Refuses the first `refusals` jobs; `enough` is set once it has taken three."""

    def __init__(self, refusals: int) -> None:
        self._refusals = refusals
        self.taken: list[str] = []
        self.enough = threading.Event()

    def create(self, cluster: str, job: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        assert (cluster, dry_run) == ("home", False)
        if self._refusals:
            self._refusals -= 1
            raise RehearsalError("home: its webhook does not answer")
        self.taken.append(job["metadata"]["name"])
        if len(self.taken) == 3:
            self.enough.set()
        return dict(job)


def submitted(cluster: Cluster) -> JobStream:
    jobs = [{"kind": "Job", "metadata": metadata} for metadata in ({"name": "a"}, {"generateName": "b-"})]
    result = JobStream(cluster, "home", jobs, 0.001)
    assert cluster.enough.wait(20)
    result.close()
    return result


def test_each_job_has_a_name_of_its_own() -> None:
    cluster = Cluster(0)
    result = submitted(cluster)
    assert cluster.taken[:3] == ["b-001", "a-002", "b-003"]
    assert [job["metadata"]["name"] for job in result.submitted] == cluster.taken


def test_a_job_that_is_refused_is_submitted_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(stream, "_AGAIN_SECONDS", 0.001)
    cluster = Cluster(2)
    result = submitted(cluster)
    assert cluster.taken[0] == "b-001"
    assert result.refusals == ["home: its webhook does not answer"] * 2
