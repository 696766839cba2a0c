from __future__ import annotations

from controller.build import Fixture, configured, workload

CLUSTER_QUEUE = ("clusterqueues", "gpu")


async def test_what_is_on_its_way_is_kept_while_the_queues_cannot_be_read() -> None:
    fixture = Fixture()
    await fixture.look(workload("one", 8))
    worker = fixture.workers["us"]
    readable = worker._manifests[CLUSTER_QUEUE]
    worker._manifests[CLUSTER_QUEUE] = configured("ClusterQueue", "gpu", {"resourceGroups": "none"})
    worker.read_configuration()
    assert worker.books is None
    worker._manifests[CLUSTER_QUEUE] = readable
    worker.read_configuration()
    assert worker.books is not None
    assert worker.books.held == {"ns/one"}
