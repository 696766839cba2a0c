"""Mistakes of somebody who writes a program in Python: each ends with words of ours, before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

import kueue_fleet as kf
import pulumi_mocks
from small_fleets import WORKER, fleet_data

WORKER_ENTRY: dict[str, Any] = {"name": "std", "role": "worker", "region": "us-central1"}
POOL: dict[str, Any] = {"name": "p", "machine_type": "g2-standard-24", "node_count": 1}


def group(flavor: str, **quota: Any) -> kf.ResourceGroup:
    quotas = [kf.ResourceQuota(name=name, nominal_quota=amount) for name, amount in quota.items()]
    return kf.ResourceGroup(
        covered_resources=tuple(quota), flavors=(kf.FlavorQuotas(name=flavor, resources=tuple(quotas)),)
    )


def a_later_text() -> Any:
    return pulumi.Output.from_input("known later")


def another_queue() -> None:
    queue = kf.ClusterQueue("adhoc", kf.ClusterQueueSpec())
    kf.LocalQueue("gpu", kf.LocalQueueSpec(cluster_queue="prod"), namespace="vision", cluster_queue=queue)


def twice() -> None:
    for _ in range(2):
        kf.ClusterQueue("q", kf.ClusterQueueSpec())


def set_afterwards() -> None:
    spec: Any = kf.ClusterQueueSpec(cohort_name="a")
    spec.cohort_name = "b"


def pool_of(mode: str, cluster: Any) -> None:
    entry = kf.ClusterEntry.model_validate({**WORKER_ENTRY, "mode": mode})
    kf.NodePool(
        "p",
        kf.NodePoolEntry(**POOL),
        cluster_spec=entry,
        project="lab-project-1",
        cluster=cluster,
        service_account="a@b",
    )


def on_standard() -> dict[str, Any]:
    entry = kf.ClusterEntry.model_validate({**WORKER_ENTRY, "mode": "Standard"})
    return {"cluster_spec": entry, "project": "lab-project-1", "cluster": "std", "service_account": "a@b"}


def any_of(value: object) -> Any:
    """What no type checker lets pass."""
    return value


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda: kf.NodePoolEntry(**{**POOL, "machine_type": 24}),
            "machine_type: 24 is given where text is needed; put it in",
        ),
        (
            lambda: kf.ClusterEntry(**{**WORKER_ENTRY, "regoin": "x"}),
            "ClusterEntry.regoin: is not a known field; did you mean",
        ),
        (
            lambda: kf.ClusterEntry(**{**WORKER_ENTRY, "role": "Worker"}),
            'ClusterEntry.role: "Worker" is not allowed; did you',
        ),
        (lambda: kf.ResourceQuota(name="memory", nominal_quota="8 Gi"), '"8 Gi" has a space in it; write 8Gi'),
        (lambda: kf.NodePoolEntry(**POOL, zones=any_of("us-central1-a")), "where a list is needed"),
        (
            lambda: kf.ClusterEntry(**{**WORKER_ENTRY, "zones": ["us-central1-a"]}),
            "zones: us-central1-a given, but mode is Aut",
        ),
        (
            lambda: kf.ResourceFlavorSpec(node_labels={"net": a_later_text()}),
            "the Output of a resource is given where text",
        ),
        (
            lambda: kf.ResourceFlavor("l4", {"nodeLabels": {"net": a_later_text()}}),
            "the Output of a resource is given where",
        ),
        (
            lambda: kf.ResourceFlavor("l4", {"node_labels": {}}),
            "node_labels: is not a known field; did you mean nodeLabels?",
        ),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(), object_name=a_later_text()),
            "its name comes from another",
        ),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueEntry(name="other", clusters=("std",))),
            "a ClusterQueueEntry is given",
        ),
        (
            lambda: kf.ResourceFlavor("q", kf.FlavorEntry(name="q", node_pool="l4")),
            "a FlavorEntry is given; give a Resource",
        ),
        (
            lambda: kf.ClusterQueue("q", any_of(kf.LocalQueueSpec(cluster_queue="x"))),
            "a LocalQueueSpec is given; give a Clus",
        ),
        (set_afterwards, "ClusterQueueSpec.cohort_name: is set afterwards; give it where the model is made"),
        (twice, "ClusterQueue q: is declared before, with the same parent; give each its own name"),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(), opts=any_of(pulumi.Alias(name="x"))),
            "ClusterQueue q: opts: Alias is given; give pulumi.ResourceOptions",
        ),
        (lambda: kf.Fleet("lab", fleet_data(WORKER), opts=any_of("lab")), "Fleet lab: opts: str is given"),
        (another_queue, "the spec names prod, and cluster_queue is adhoc; name one queue"),
        (lambda: kf.LocalQueue("gpu", namespace="vision"), "no queue is named; give cluster_queue=..."),
        (lambda: pool_of("Autopilot", "std"), "std is an Autopilot cluster, whose nodes GKE makes"),
        (lambda: pool_of("Standard", kf.Cohort("c", kf.CohortSpec())), "cluster is a resource; give its name"),
        (
            lambda: kf.NodePool("p", kf.NodePoolEntry(**POOL, clusters=["auto"]), **on_standard()),
            "NodePool p.clusters: is on auto, and cluster_spec is std",
        ),
        (
            lambda: kf.NodePool("p", kf.NodePoolEntry(**{**POOL, "zones": ["europe-west4-a"]}), **on_standard()),
            "nodePools[p].zones[0]: is europe-west4-a, which is not in us-central1",
        ),
        (
            lambda: kf.ReservedCapacity(
                "r",
                project="lab-project-1",
                reservations=[
                    kf.ReservationEntry(name="r", zone="us-central1-q", machine_type="a3-highgpu-8g", count=1)
                ],
            ),
            "reservations[r].zone: is us-central1-q, which does not exist",
        ),
        (
            lambda: kf.StandaloneCluster(
                "c",
                kf.ClusterEntry(name="c", role="standalone", region="europe-wst4"),
                project="lab-project-1",
                network="n",
                subnetwork="s",
            ),
            "clusters[c].region: europe-wst4 is not a known region; did you mean europe-west4?",
        ),
        (
            lambda: kf.WorkerCluster.get("std", "std"),
            "WorkerCluster std: 'std' is not the id of a cluster; write projects/P/locations/REGION/clusters/N",
        ),
        (
            lambda: kf.PriorityClass("High Priority", kf.PriorityClassFields(value=1)),
            '"High Priority" has characters or a form that are not allowed',
        ),
        (
            lambda: kf.Fleet("lab", {"name": "lab", "project": "lab-project-1", "clusters": []}),
            "clusters: there are none",
        ),
        (
            lambda: kf.Fleet("lab", fleet_data(WORKER), project=any_of(kf.Cohort("c", {}))),
            "project: the program gives a reso",
        ),
    ],
)
def test_it_is_said_what_to_do(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(kf.SpecError) as raised:
        pulumi_mocks.run(mistake)
    assert said in str(raised.value)
    assert "pydantic" not in str(raised.value)
    assert isinstance(raised.value, pulumi.RunError), "a program ends without a traceback"
    assert all(problem.endswith("]") and " [KF" in problem for problem in str(raised.value).splitlines())


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(resource_groups=(group("l4", memory=256),))),
            "counted in bytes",
        ),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(resource_groups=(group("nope", cpu=1),))),
            "flavors[nope].name: whether there is a ResourceFlavor nope is not checked",
        ),
        (
            lambda: kf.LocalQueue("gpu", {"clusterQueue": "prod"}, namespace="vision"),
            "ClusterQueue prod is not checked",
        ),
    ],
)
def test_what_may_be_right_is_said(program: Callable[[], object], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    for severity in ("info", "warn"):
        monkeypatch.setattr(pulumi.log, severity, lambda text, *_: logged.append(text))
    pulumi_mocks.run(program)
    assert any(said in text for text in logged), logged


def test_a_queue_takes_what_is_declared() -> None:
    def program() -> None:
        flavor = kf.ResourceFlavor("l4", kf.ResourceFlavorSpec())
        queue = kf.ClusterQueue(
            "prod",
            kf.ClusterQueueSpec(resource_groups=(group("l4", cpu=1),)),
            opts=pulumi.ResourceOptions(depends_on=[flavor]),
        )
        kf.LocalQueue("gpu", namespace="vision", cluster_queue=queue)

    made = pulumi_mocks.run(program).one("LocalQueue", custom=True)
    assert made.inputs["spec"]["clusterQueue"] == "prod"
