"""Mistakes of somebody who writes a program in Python: each ends with words of ours, before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest

import kueue_fleet as kf
import pulumi_mocks
from small_fleets import WORKER, fleet_data

NEVER_AWAITED: list[Coroutine[Any, Any, str]] = []
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


def below_two_parents() -> None:
    for name in ("c", "co"):
        parent = kf.Namespaces(name, [name])
        kf.Cohort("company", {}, object_name=name, opts=pulumi.ResourceOptions(parent=parent))


def of_two_classes() -> None:
    class Own(kf.Cohort):
        """Of the type of its base."""

    kf.Cohort("company", {})
    Own("company", {}, object_name="other")


def set_afterwards() -> None:
    spec: Any = kf.ClusterQueueSpec(cohort_name="a")
    spec.cohort_name = "b"


def delete_afterwards() -> None:
    entry = kf.Worker("std", "us-central1")
    del entry.region


def with_a_queue_that_is_not_there() -> dict[str, Any]:
    queue = {"name": "gpu", "clusterQueue": "reserch"}
    return fleet_data(WORKER, teams=[{"name": "team-a", "localQueues": [queue]}])


def provided_by(provider: pulumi.ProviderResource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=provider)


def with_options(**options: Any) -> None:
    kf.Cohort("c", {}, opts=pulumi.ResourceOptions(**options))


def after_an_option_that_is_set(option: str, value: Any) -> Callable[[], object]:
    """What its own check does not see."""
    options = pulumi.ResourceOptions()
    setattr(options, option, value)
    return lambda: kf.Cohort("c", {}, opts=options)


def below(parent: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(parent=parent)


def without_quota() -> dict[str, Any]:
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "l4", "resources": []}]}]}


def pool(spec: kf.NodePoolEntry, opts: pulumi.ResourceOptions | None = None) -> None:
    kf.NodePool("p", spec, **on_standard(), opts=opts)


def a_coroutine() -> Any:
    async def project() -> str:
        return "lab-project-1"

    NEVER_AWAITED.append(project())
    return NEVER_AWAITED[-1]


@pytest.fixture(autouse=True)
def none_is_awaited_later() -> Iterator[None]:
    yield
    while NEVER_AWAITED:
        NEVER_AWAITED.pop().close()


def pool_of(mode: str, cluster: Any) -> None:
    entry = kf.ClusterEntry.model_validate({**WORKER_ENTRY, "mode": mode})
    kf.NodePool(
        "p",
        kf.NodePoolEntry(**POOL),
        cluster_spec=entry,
        project="lab-project-1",
        cluster=cluster,
        service_account="gke-nodes@lab-project.iam.gserviceaccount.com",
    )


def on_standard() -> dict[str, Any]:
    entry = kf.ClusterEntry.model_validate({**WORKER_ENTRY, "mode": "Standard"})
    return {
        "cluster_spec": entry,
        "project": "lab-project-1",
        "cluster": "std",
        "service_account": "gke-nodes@lab-project.iam.gserviceaccount.com",
    }


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
            "ClusterEntry.regoin: is not a known field; did you mean region?",
        ),
        (
            lambda: kf.ClusterEntry(**{**WORKER_ENTRY, "role": "Worker"}),
            'ClusterEntry.role: "Worker" is not allowed; did you',
        ),
        (
            lambda: kf.ClusterQueueSpec().model_copy(update={"cohort": "a"}),
            "ClusterQueueSpec.cohort: was removed in Kueue's v1beta2; write cohort_name",
        ),
        (
            lambda: kf.NodePoolEntry(**POOL).model_copy(update={"machine_type": 24}),
            "NodePoolEntry.machine_type: 24 is given where text is needed; put it in",
        ),
        (lambda: kf.ResourceQuota(name="memory", nominal_quota="8 Gi"), '"8 Gi" has a space in it; write 8Gi'),
        (lambda: kf.NodePoolEntry(**POOL, zones=any_of("us-central1-a")), "where a list is needed"),
        (
            lambda: kf.ClusterEntry(**{**WORKER_ENTRY, "zones": ["us-central1-a"]}),
            "zones: set, but mode is Autopilot",
        ),
        (
            lambda: kf.ResourceFlavorSpec(node_labels={"net": a_later_text()}),
            "what is known later is given where plain data is needed; write the value itself",
        ),
        (
            lambda: kf.ResourceFlavor("l4", {"nodeLabels": {"net": a_later_text()}}),
            "what is known later is given where plain data is needed",
        ),
        (
            lambda: kf.ResourceFlavor("l4", {"node_labels": {}}),
            "node_labels: is not a known field; did you mean nodeLabels?",
        ),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(), object_name=a_later_text()),
            "ClusterQueue q.object_name: an Output is given; give text, which has to be known before",
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
        (below_two_parents, "Cohort company: has the URN of another component, which is of the types of its parents"),
        (of_two_classes, "Own company: has the URN of another component"),
        (
            lambda: kf.ClusterQueue("q", kf.ClusterQueueSpec(), opts=any_of(pulumi.Alias(name="x"))),
            "ClusterQueue q.opts: an Alias is given; give a pulumi.ResourceOptions",
        ),
        (lambda: kf.Fleet("lab", fleet_data(WORKER), opts=any_of("lab")), "Fleet lab.opts: 'lab' is given"),
        (another_queue, "the spec names prod, and cluster_queue is adhoc; name one queue"),
        (lambda: kf.LocalQueue("gpu", namespace="vision"), "no queue is named; give cluster_queue=..."),
        (lambda: pool_of("Autopilot", "std"), "std is an Autopilot cluster, whose nodes GKE makes"),
        (
            lambda: pool_of("Standard", kf.Cohort("c", kf.CohortSpec())),
            "NodePool p.cluster: a Cohort is given; give text: an output",
        ),
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
            "WorkerCluster std: 'std' is not an id; write projects/P/locations/L/clusters/N",
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
            "Fleet lab.project: a Cohort is given; give text",
        ),
        (
            lambda: kf.WorkerCluster(
                "m", kf.ClusterEntry("m", role="manager", region="europe-west4"), project="lab-project-1"
            ),
            "cluster m: WorkerCluster needs role worker, but it has manager; use the class of its role",
        ),
        (
            lambda: kf.FleetSpec("f", a_later_text(), clusters=[]),
            "FleetSpec.project: what is known later is given where plain",
        ),
        (
            lambda: kf.Fleet("lab", with_a_queue_that_is_not_there()),
            "teams[team-a].localQueues[gpu].clusterQueue: there is no queue reserch",
        ),
        # By position, by unknown names, or not at all.
        (
            lambda: any_of(kf.ClusterQueueSpec)("cohort"),
            "ClusterQueueSpec: takes nothing by position; give every other",
        ),
        (lambda: any_of(kf.Worker)("a", "us-central1", "Standard"), "Worker: takes name and region by position"),
        (lambda: any_of(kf.Worker)("a", name="a"), "Worker.name: is given by position and by name; give it once"),
        (
            lambda: any_of(kf.ClusterQueue)("q", kf.ClusterQueueSpec(), "other"),
            "ClusterQueue q: takes name and spec by position; give every other argument by its name",
        ),
        (lambda: any_of(kf.ClusterQueue)("q"), "ClusterQueue q.spec: is missing; give a ClusterQueueSpec or a dict"),
        (lambda: any_of(kf.ClusterQueue)(spec={}), "ClusterQueue.name: is missing; give text"),
        (
            lambda: any_of(kf.ClusterQueue)("q", {}, objectName="a"),
            "q.objectName: is not a known argument; did you mean",
        ),
        (
            lambda: any_of(kf.ClusterQueue)("q", {}, cohort="a"),
            "is not a known argument; use one of name, spec, object_",
        ),
        (
            lambda: any_of(kf.Fleet)("lab", {}, networks=1),
            "Fleet lab.networks: is not a known argument; did you mean net",
        ),
        (
            lambda: any_of(kf.ClusterQueue)("q", cohort_name="a"),
            "ClusterQueue q.cohort_name: is not a known argument; give it in spec: ClusterQueueSpec(cohort_name=...)",
        ),
        (
            lambda: any_of(kf.Fleet)("lab", clusters=[]),
            "Fleet lab.clusters: is not a known argument; give it in spec: FleetSpec(clusters=...)",
        ),
        (lambda: any_of(kf.Quota)(gpus=4), "Quota.gpus: is not a known argument; did you mean gpu?"),
        (lambda: any_of(kf.ClusterQueue.get)("q", namspace="x"), "ClusterQueue.get.namspace: is not a known argument"),
        (
            lambda: any_of(kf.Pool)("p", "g2-standard-24", node=1),
            "NodePoolEntry.node: is not a known field; did you mean node",
        ),
        (
            lambda: any_of(kf.Queue)("q", {"f": kf.Quota(gpu=1)}, cohort="a"),
            "cohort: was removed in Kueue's v1beta2; write cohort_name",
        ),
        # Plain data in the place of a model.
        (
            lambda: kf.ClusterQueueSpec(flavor_fungibility=any_of({"whenCanBorow": "TryNextFlavor"})),
            "flavor_fungibility.whenCanBorow: is not a known field; did you mean whenCanBorrow?",
        ),
        (lambda: pool(any_of({"name": "p"})), "NodePool p.spec: a dict is given; give a NodePoolEntry"),
        (
            lambda: kf.TeamEntry("a", local_queues=any_of(["gpu"])),
            'local_queues[0]: "gpu" is given where a map is needed; give T',
        ),
        (lambda: kf.Pool("p", "g2-standard-24", nodes=1, capacity=any_of("spot")), "or OnDemand(...) or Spot(...)"),
        # Outputs in texts, and where plain data is needed.
        (
            lambda: kf.WorkloadPriorityClass("p", {"value": 1, "description": f"of {a_later_text()}"}),
            "spec[description]: has an Output in an f-string; write pulumi.Output.concat",
        ),
        (lambda: kf.ClusterQueue(f"q-{a_later_text()}", {}), "ClusterQueue.name: has an Output in an f-string; write"),
        (
            lambda: kf.ResourceFlavorSpec(node_labels={"a": f"{a_later_text()}"}),
            "node_labels[a]: the text has an Output in an f-string",
        ),
        (
            lambda: kf.Network("n", project="p-12345", regions=a_later_text()),
            "Network n.regions: an Output is given; give a list",
        ),
        (lambda: kf.Namespaces("n", [a_later_text()]), "Namespaces n.spec[0]: an Output is given; give text or a dict"),
        (
            lambda: kf.Fleet("lab", a_later_text()),
            "Fleet lab.spec: an Output is given; give a FleetSpec or a dict, which",
        ),
        (
            lambda: kf.ResourceQuota("cpu", a_later_text()),
            "nominal_quota: what is known later is given where plain data",
        ),
        (
            lambda: kf.Network("n", project=a_coroutine(), regions=[]),
            "give pulumi.Output.from_input(...) of it, which can",
        ),
        (
            lambda: kf.FleetSpec("f", a_coroutine(), clusters=[]),
            "FleetSpec.project: what is known later is given where",
        ),
        # References to something else.
        (
            lambda: kf.FlavorQuotas(kf.Cohort("c", {}), [kf.ResourceQuota("cpu", 1)]),
            "FlavorQuotas.name: a Cohort is given where a ResourceFlavor is needed; give a ResourceFlavor",
        ),
        (
            lambda: kf.LocalQueue("gpu", namespace="n", cluster_queue=any_of(kf.Cohort("c", {}))),
            "LocalQueue gpu.cluster_queue: a Cohort is given; give a ClusterQueue or text",
        ),
        (
            lambda: kf.MultiKueue("m", workers=any_of(["std"])),
            "MultiKueue m.workers: a list is given; give a dict, each value",
        ),
        (
            lambda: kf.MultiKueue("m", workers={"a": any_of(kf.Cohort("c", {}))}),
            "MultiKueue m.workers[a]: a Cohort is given",
        ),
        # The same twice.
        (
            lambda: [kf.ClusterQueue(name, {}, object_name="q") for name in ("a", "b")],
            "ClusterQueue q: is declared before, on the same cluster; give each its own name",
        ),
        (
            lambda: [kf.Fleet("lab", fleet_data(WORKER)) for _ in range(2)],
            "Fleet lab: is declared before, with the same",
        ),
        (
            lambda: [kf.Fleet(name, fleet_data(WORKER)) for name in ("a", "b")],
            "projects/lab-project/global/networks/lab: is declared before; give each its own name",
        ),
        # Options.
        (
            lambda: kf.ClusterQueue("q", {}, opts=provided_by(gcp.Provider("g"))),
            "q.opts.provider: is one of gcp; give a provider",
        ),
        (
            lambda: pool(kf.NodePoolEntry(**POOL), provided_by(kubernetes.Provider("k"))),
            "p.opts.provider: is one of kubernetes;",
        ),
        (
            lambda: kf.ClusterQueue("q", {}, opts=provided_by(any_of(kf.Cohort("c", {})))),
            "q.opts.provider: a Cohort is given; giv",
        ),
        (
            lambda: kf.Cohort("c", {}, opts=pulumi.ResourceOptions(parent=any_of("x"))),
            "Cohort c.opts.parent: 'x' is given; give a pulumi.Resource",
        ),
        (
            lambda: with_options(parent=kf.Namespaces("n", ["a"]), transforms=any_of("x")),
            "c.opts.transforms: 'x' is given; give a list, each item a function",
        ),
        (lambda: with_options(aliases=any_of("old")), "c.opts.aliases: 'old' is given; give a list, each item text or"),
        (
            lambda: with_options(aliases=["old"]),
            'aliases[0]: old is not a URN; give a name as pulumi.Alias(name="old")',
        ),
        (
            lambda: with_options(aliases=[pulumi.Alias(parent="old")]),
            "c.opts.aliases[0].parent: old is not a URN; give the component, or its URN",
        ),
        (
            lambda: with_options(aliases=[pulumi.Alias(name=a_later_text())]),
            "c.opts.aliases[0].name: an Output is given",
        ),
        (
            lambda: with_options(protect=any_of(a_later_text())),
            "an Output is given; give True or False, which has to be",
        ),
        (
            lambda: with_options(deleted_with=any_of("std")),
            "c.opts.deleted_with: 'std' is given; give a pulumi.Resource",
        ),
        (lambda: with_options(id="c"), "c.opts.id: is given, and no provider reads a component; use get, which reads"),
        (
            lambda: with_options(providers=any_of([kf.Cohort("a", {})])),
            "c.opts.providers[0]: a Cohort is given; give a provider of kubernetes, such as cluster.provider",
        ),
        (
            lambda: with_options(providers={"k8s": kubernetes.Provider("k")}),
            "c.opts.providers[k8s]: is a provider of kubernetes, and Pulumi finds none by another key; give",
        ),
        (
            lambda: kf.Cohort.get("c", opts=pulumi.ResourceOptions(aliases=any_of("old"))),
            "Cohort c.opts.aliases: 'old' is given",
        ),
        (
            after_an_option_that_is_set("depends_on", ["kueue"]),
            "c.opts.depends_on[0]: 'kueue' is given; give a pulumi.R",
        ),
        # Below a component of the library, of whom the arguments are the program's.
        (
            lambda: kf.LocalQueue("n-gpu", any_of(3), nmspace="n", opts=below(kf.Namespaces("n", ["a"]))),  # type: ignore[call-arg]
            "LocalQueue n-gpu.nmspace: is not a known argument; did you mean namespace?",
        ),
        (
            lambda: kf.ClusterQueue("lab-q", without_quota(), opts=below(kf.Fleet("lab", fleet_data(WORKER)))),
            "ClusterQueue lab-q.resourceGroups[0].flavors[l4].resources: no items; list at least",
        ),
        (
            lambda: kf.FlavorQuotas(a_later_text(), []),
            "FlavorQuotas.name: what is known later is given where plain data",
        ),
        # A list for a map, one for a list, a class for one of it, and None.
        (
            lambda: kf.Queue("q", any_of(["l4"])),
            "Queue.quotas: a list is given; give a dict, each value a list, each item a",
        ),
        (
            lambda: kf.Queue("q", any_of({"l4": 4})),
            "Queue.quotas[l4]: 4 is given; give a list, each item a FleetResourceQ",
        ),
        (
            lambda: kf.Queue("q", {"l4": kf.Quota(gpu=1)}, checks=any_of("dws")),
            "Queue.checks: 'dws' is given; give a list, each item",
        ),
        (
            lambda: kf.ResourceFlavorSpec(node_labels=any_of(["a=b"])),
            "node_labels: a list is given where a map is needed; write a d",
        ),
        (
            lambda: kf.FleetSpec("f", "lab-project-1", clusters=any_of(kf.Standalone("a", "us-central1"))),
            "FleetSpec.clusters: a ClusterEntry is given where a list is needed; write a list: [...]",
        ),
        (
            lambda: kf.Network("n", project="p-12345", regions=any_of("us-central1")),
            "n.regions: 'us-central1' is given; give a list",
        ),
        (
            lambda: kf.Pool("p", "g2-standard-24", nodes=1, capacity=any_of(kf.Spot)),
            "capacity: the class Spot itself is given; make one",
        ),
        (
            lambda: kf.ClusterQueue("q", any_of(kf.ClusterQueueSpec)),
            "the class ClusterQueueSpec itself is given; make one: C",
        ),
        (lambda: kf.Pool("p", "g2-standard-24", nodes=any_of("1")), "Pool.nodes: '1' is given; give a whole number"),
        (
            lambda: kf.ClusterQueue("q", any_of(None)),
            "ClusterQueue q.spec: None is given; give a ClusterQueueSpec or a dict",
        ),
        (lambda: kf.ClusterQueue(any_of(None), {}), "ClusterQueue.name: None is given; give text"),
        (lambda: kf.Network("n", project=any_of(None), regions=[]), "Network n.project: None is given; give text"),
        (lambda: kf.Worker("a", any_of(None)), "ClusterEntry.region: nothing is given where a value is needed"),
        (delete_afterwards, "ClusterEntry.region: is deleted; leave it out where the model is made"),
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

    result = pulumi_mocks.run(program).one("LocalQueue", custom=True)
    assert result.inputs["spec"]["clusterQueue"] == "prod"
