"""Small workers and requests for the tests of dispatch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kueue_admission.decide.model import (
    Admission,
    ClusterQueue,
    Configuration,
    FlavorQuotas,
    LocalQueue,
    Objects,
    PodSetAssignment,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet
from kueue_fleet.dispatch import Request, Worker, WorkerQuota
from kueue_fleet.settings.dispatch import Dispatch

GPU = "nvidia.com/gpu"
SETTINGS = Dispatch(give_up_after="3600s")
EU, US, ASIA = "europe-west4", "us-east4", "asia-southeast1"


def objects(gpus: int = 8, flavor: str = "l4", **changes: Any) -> Objects:
    """One queue `gpu` with so many GPUs, and its LocalQueue in the namespace `ns`."""
    group = ResourceGroup((GPU,), (FlavorQuotas(flavor, ((GPU, ResourceQuota(gpus)),)),))
    queue = ClusterQueue("gpu", groups=(group,), **changes)
    return Objects(
        cluster_queues=(queue,),
        local_queues=(LocalQueue("ns", "gpu", "gpu"),),
        flavors=(ResourceFlavor(flavor),),
        configuration=Configuration(wait_for_pods_ready=None),
    )


def borrowed_from() -> WorkerQuota:
    """A queue of four GPUs that may borrow four more, of which one is in use."""
    alone = objects(4, cohort="all")
    lender = replace(alone.cluster_queues[0], name="lender")
    quota = WorkerQuota(replace(alone, cluster_queues=(*alone.cluster_queues, lender)))
    lent = running("lent", 1)
    assert lent.status.admission is not None
    admission = replace(lent.status.admission, cluster_queue="lender")
    quota.put(replace(lent, status=replace(lent.status, admission=admission)))
    return quota


def job(name: str = "train", gpus: int = 1, **changes: Any) -> Workload:
    """A workload of one pod with GPUs."""
    result = {"namespace": "ns", "name": name, "uid": name, "queue": "gpu"}
    return Workload(**{**result, "pod_sets": (PodSet(requests=((GPU, gpus),)),), **changes})


def running(name: str, gpus: int, flavor: str = "l4", **status: Any) -> Workload:
    """A workload that holds quota on a worker."""
    assignment = PodSetAssignment("main", 1, ((GPU, flavor),), ((GPU, gpus),))
    admission = Admission("gpu", (assignment,))
    return job(name, gpus, status=WorkloadStatus(**{"admission": admission, "reserved_at": 1.0, **status}))


def worker(name: str, region: str = EU, gpus: int = 8, **changes: Any) -> Worker:
    """A worker that answers, with free GPUs."""
    return Worker(**{"name": name, "region": region, "quota": WorkerQuota(objects(gpus)), **changes})


def request(gpus: int = 1, **changes: Any) -> Request:
    """A job that nothing was nominated for."""
    return Request(**{"workload": job(gpus=gpus), **changes})
