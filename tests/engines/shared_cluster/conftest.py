"""The control plane that the files of this folder share; it ends with the last of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from one_cluster import (
    OneCluster,
    ensure_queues,
    install_jobset,
    install_kueue,
    one_cluster,
    standard_cluster,
)


@pytest.fixture(scope="package")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneCluster]:
    """One Autopilot cluster with the node agent, simulated nodes and the simulated DWS."""
    with one_cluster(tmp_path_factory.mktemp("lab")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def standard(bare_cluster: OneCluster) -> Iterator[OneCluster]:
    """A Standard cluster without a node pool, beside the Autopilot one."""
    result = standard_cluster(bare_cluster)
    yield result
    result.supervisor.client.delete_cluster(result.name)


@pytest.fixture(scope="package")
def kueue_cluster(bare_cluster: OneCluster) -> OneCluster:
    """The same cluster, with Kueue, JobSet and two queues."""
    install_jobset(bare_cluster)
    install_kueue(bare_cluster)
    ensure_queues(bare_cluster)
    return bare_cluster
