"""Node pools, and the flavors and topologies that lead to their nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from hypothesis import strategies as st

from tests.fleet_files.clusters import MANAGER, ZONES
from tests.fleet_files.drawing import Data, Draw, fields, flags, one_of, part, some_of, where

OWN_LABEL: Final = "example.com/pool"
"""Label with the pool's name, on pools that flavors by hand lead to."""
_ACCELERATORS: Final = ("nvidia-l4", "nvidia-tesla-t4", "nvidia-tesla-a100", "nvidia-h100-80gb")
_MACHINES: Final = one_of("g2-standard-24", "e2-standard-8", "n1-standard-8", "a2-highgpu-1g", "c3-standard-8")
GPU_MACHINES: Final = ("g2-standard-24", "a2-highgpu-1g")
"""Machine types that come with GPUs."""
_MANY: Final = 900
"""Nodes of a pool: more than its quotas ask for, and fewer than its reservation or GKE has."""


def runs_jobs(clusters: Sequence[Data], mode: str | None = None) -> list[str]:
    """The clusters that run jobs, of one mode or of both."""
    return [
        cluster["name"]
        for cluster in clusters
        if cluster["role"] != "manager" and mode in (None, cluster.get("mode", "Autopilot"))
    ]


def node_pools(draw: Draw, clusters: Sequence[Data], reserved: Mapping[str, Sequence[Data]]) -> list[Data]:
    """Pools on Standard clusters that run jobs."""
    standard = runs_jobs(clusters, "Standard")
    if not standard:
        return []
    return [_pool(draw, f"pool-{n}", standard, clusters, reserved) for n in range(draw(st.integers(0, 3)))]


def _pool(
    draw: Draw, name: str, standard: Sequence[str], clusters: Sequence[Data], reserved: Mapping[str, Sequence[Data]]
) -> Data:
    here = draw(st.one_of(some_of(standard, 1), st.sampled_from(standard).map(lambda cluster: [cluster])))
    capacity = _capacity(draw, here, clusters, reserved)
    result = capacity["type"] in ("reserved", "calendar")
    machine = "g2-standard-24" if result else draw(_MACHINES)
    pool: Data = {"name": name, **where(here, standard, draw), "machineType": machine, **_accelerator(draw, machine)}
    if all(cluster.get("existing") for cluster in clusters if cluster["name"] in here):
        pool |= fields(draw, existing=flags)
    pool |= _size(draw, capacity, zoned=False)
    pool |= fields(
        draw,
        diskSizeGb=st.integers(50, 500),
        diskType=one_of("pd-ssd") if machine.startswith(("e2-", "n1-")) else one_of("pd-ssd", "hyperdisk-balanced"),
        kubeletConfig=one_of(
            {"cpuManagerPolicy": "static", "topologyManager": {"policy": "restricted", "scope": "pod"}},
            {"topologyManager": {"policy": "best-effort"}, "memoryManager": {"policy": "Static"}},
        ),
        maxPodsPerNode=st.integers(16, 64),
        upgrade=one_of({"maxSurge": 2}, {"maxSurge": 0, "maxUnavailable": 1}, {"maxSurge": 2, "maxUnavailable": 1}),
        management=one_of({"autoUpgrade": True}, {"autoRepair": capacity["type"] != "flexStart"}),
        taints=some_of(_TAINTS, 1),
        deletionProtection=flags,
    )
    if machine == "n1-standard-8":
        pool |= fields(draw, localSsdCount=st.integers(1, 2))
    if all(cluster.get("imageStreaming", True) for cluster in clusters if cluster["name"] in here):
        pool |= fields(draw, secondaryBootDisks=st.sampled_from(_DISKS).map(lambda disk: [disk]))
    if draw(flags):
        pool["labels"] = {OWN_LABEL: name, **fields(draw, **{"example.com/cost": one_of("low", "high")})}
    if len(here) == 1:
        pool |= _in_one_cluster(draw, here[0], clusters, capacity, machine)
    if machine in GPU_MACHINES or "accelerator" in pool:
        pool |= fields(draw, fastSocket=flags)
    pool["capacity"] = capacity
    if capacity["type"] in ("onDemand", "spot") and draw(flags):
        pool["perCluster"] = {cluster: _override(draw, pool) for cluster in draw(some_of(here, 1))}
    if capacity == {"type": "onDemand"} and draw(flags):
        del pool["capacity"]
    return pool


_DISKS: Final[tuple[Data, ...]] = (
    {"diskImage": "global/images/training", "mode": "CONTAINER_IMAGE_CACHE"},
    {"diskImage": "projects/images-1234/global/images/weights"},
)
_TAINTS: Final[tuple[Data, ...]] = (
    {"key": "example.com/batch", "value": "true", "effect": "NoSchedule"},
    {"key": "example.com/rare", "effect": "NoExecute"},
    {"key": "example.com/prefer", "value": "x", "effect": "PreferNoSchedule"},
)


def _capacity(
    draw: Draw, here: Sequence[str], clusters: Sequence[Data], reserved: Mapping[str, Sequence[Data]]
) -> Data:
    kinds: list[Data] = [
        {"type": "onDemand"},
        {"type": "onDemand", "affinity": "Any"},
        {"type": "spot"},
        {"type": "flexStart", **draw(part(queuedProvisioning=flags, maxRunDuration=one_of("72h", "3600s")))},
        {"type": "reserved", "reservation": "of-others", **draw(part(project=one_of("shared-project")))},
    ]
    regions = {cluster["region"] for cluster in clusters if cluster["name"] in here}
    elsewhere = any("project" in cluster for cluster in clusters if cluster["name"] in here)
    for section, kind in (("reservations", "reserved"), ("futureReservations", "calendar")):
        for entry in reserved.get(section, ()):
            if entry["machineType"].startswith("n1-") or elsewhere:
                continue
            if {entry["zone"].rpartition("-")[0]} == regions and len(here) == 1:
                same = {"start": entry["start"], "duration": entry["duration"]} if kind == "calendar" else {}
                active = draw(part(active=flags)) if kind == "calendar" else {}
                kinds += [{"type": kind, "reservation": entry["name"], **same, **active}] * 3
    chosen: Data = draw(one_of(*kinds))
    return dict(chosen)


def _accelerator(draw: Draw, machine: str) -> Data:
    driver = fields(draw, driverVersion=one_of("DEFAULT", "LATEST", "INSTALLATION_DISABLED"))
    driver |= fields(draw, sharing=one_of({"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 6}))
    if machine == "n1-standard-8":
        return (
            {"accelerator": {"type": "nvidia-tesla-t4", "count": draw(one_of(1, 2)), **driver}} if draw(flags) else {}
        )
    if machine == "a2-highgpu-1g":
        return fields(draw, accelerator=one_of({"partitionSize": "1g.5gb", **driver}))
    if machine == "g2-standard-24":
        return fields(draw, accelerator=one_of(driver, {"type": "nvidia-l4", **driver}, {"count": 2, **driver}))
    return {}


def _size(draw: Draw, capacity: Data, *, zoned: bool) -> Data:
    queued = capacity["type"] == "flexStart" and capacity.get("queuedProvisioning", True)
    if capacity["type"] != "flexStart" and draw(flags):
        return {"nodeCount": _MANY // 3}
    scaling: Data = {"totalMaxNodeCount": _MANY, **fields(draw, locationPolicy=one_of("ANY"))}
    if queued:
        return {"autoscaling": scaling | fields(draw, totalMinNodeCount=one_of(0))}
    scaling |= fields(draw, totalMinNodeCount=st.integers(0, 3), locationPolicy=one_of("ANY", "BALANCED"))
    return {"autoscaling": scaling, **fields(draw, initialNodeCount=st.integers(3, 5) if not zoned else st.just(3))}


def _in_one_cluster(draw: Draw, cluster: str, clusters: Sequence[Data], capacity: Data, machine: str) -> Data:
    """Zones, and what has to name one of them; machines that are placed close together, where Google does that."""
    compact = one_of(False) if machine.startswith(("e2-", "n1-")) else flags
    entry = next(entry for entry in clusters if entry["name"] == cluster)
    zones = ZONES[entry["region"]]
    if capacity["type"] in ("reserved", "calendar"):
        block = {"block": "block-1", **draw(part(subBlock=one_of("sub-1")))} if capacity["type"] == "reserved" else {}
        if draw(flags):
            capacity |= block
        return {"zones": [zones[0]], **fields(draw, compactPlacement=compact)}
    if capacity["type"] == "flexStart":
        return fields(draw, zones=some_of(zones, 1))
    if draw(flags):
        return {"zones": [draw(one_of(*zones))], **fields(draw, compactPlacement=compact)}
    return fields(draw, zones=some_of(zones, 1))


def _override(draw: Draw, pool: Data) -> Data:
    """Other amounts on one cluster, that leave the pool's nodes what its flavors take them for."""
    override = fields(
        draw,
        diskSizeGb=st.integers(50, 500),
        diskType=one_of("pd-balanced"),
        maxPodsPerNode=st.integers(16, 64),
        upgrade=one_of({"maxSurge": 3}),
        management=one_of({"autoRepair": True}),
        capacity=one_of({"type": "onDemand"}, {"type": "spot"}),
        compactPlacement=one_of(False),
    )
    override |= draw(one_of({}, {"autoscaling": {"totalMaxNodeCount": _MANY}}, {"nodeCount": _MANY // 3}))
    if "autoscaling" in override:
        override |= fields(draw, initialNodeCount=st.integers(3, 5))
    if "labels" in pool:
        override |= fields(draw, labels=st.just({**pool["labels"], "example.com/cost": "none"}))
    if "zones" in pool:
        override |= fields(draw, zones=st.just(pool["zones"][:1]))
    if pool["machineType"] == "n1-standard-8":
        override |= fields(draw, localSsdCount=st.integers(0, 2))
    if "accelerator" in pool:
        override |= fields(draw, accelerator=st.just({**pool["accelerator"], "driverVersion": "LATEST"}))
    if "fastSocket" in pool:
        override |= fields(draw, fastSocket=flags)
    if "kubeletConfig" in pool:
        override |= fields(draw, kubeletConfig=one_of({"podPidsLimit": 8192}))
    if "secondaryBootDisks" in pool:
        override |= fields(draw, secondaryBootDisks=st.just(pool["secondaryBootDisks"][:1]))
    return override | fields(draw, taints=st.just(pool.get("taints", [])))


def flavors(draw: Draw, clusters: Sequence[Data], pools: Sequence[Data]) -> tuple[list[Data], list[Data]]:
    """Flavors that each lead to nodes of their own, and topologies for some of them."""
    result = [_of_pool(draw, pool, runs_jobs(clusters, "Standard")) for pool in pools]
    job_clusters = runs_jobs(clusters)
    by_themselves = [
        entry["name"]
        for entry in clusters
        if entry["role"] != "manager"
        and (entry.get("mode") != "Standard" or (not pools and "nodeAutoProvisioning" not in entry))
    ]
    # Where there are pools too, their nodes have such labels already, and belong to another flavor.
    with_pools = {name for pool in pools for name in pool.get("clusters", runs_jobs(clusters, "Standard"))}
    provisioned = [
        entry["name"] for entry in clusters if "nodeAutoProvisioning" in entry and entry["name"] not in with_pools
    ]
    for accelerator in draw(some_of(_ACCELERATORS)) if by_themselves or provisioned else ():
        possible = [*by_themselves, *(provisioned if accelerator in _ACCELERATORS[:2] else ())]
        if possible:
            flavor = _of_accelerator(draw, accelerator, [n for n in job_clusters if n in possible], job_clusters)
            here = flavor.get("clusters", job_clusters)
            result.append(
                flavor | _nodes_by_gke(draw, accelerator, {c["region"] for c in clusters if c["name"] in here})
            )
    topologies = _topologies(draw, result, pools, job_clusters)
    if draw(flags) and any(entry["role"] == "manager" for entry in clusters):
        labels = fields(draw, nodeLabels=one_of({"example.com/anywhere": "yes"}))
        result.append({"name": draw(one_of("multikueue", "anywhere")), "clusters": [MANAGER], **labels})
    return list(draw(st.permutations(result))), topologies


def _of_pool(draw: Draw, pool: Data, standard: Sequence[str]) -> Data:
    flavor: Data = {"name": f"flavor.{pool['name']}"}
    extra: Data = {"key": "example.com/extra", "operator": "Exists", "effect": "NoSchedule"}
    by_hand = OWN_LABEL in pool.get("labels", {}) and not _closed(pool)
    if not by_hand or draw(flags):
        flavor["nodePool"] = pool["name"]
        if draw(flags) and "clusters" in pool:
            flavor["clusters"] = pool["clusters"]
        return flavor | fields(draw, tolerations=st.just([extra]))
    flavor["clusters"] = list(pool.get("clusters", standard))
    flavor["nodeLabels"] = {OWN_LABEL: pool["name"]}
    tolerated = [{"key": "example.com/batch", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
    hard = [taint for taint in pool.get("taints", ()) if taint["effect"] != "PreferNoSchedule"]
    if draw(flags):
        flavor["nodeTaints"] = hard
    else:
        flavor["tolerations"] = [{"key": taint["key"], "operator": "Exists"} for taint in hard] + tolerated
    return flavor


def _closed(pool: Data) -> bool:
    capacity = pool.get("capacity", {})
    return capacity.get("type") == "calendar" and not capacity.get("active", False)


def _of_accelerator(draw: Draw, accelerator: str, possible: Sequence[str], job_clusters: Sequence[str]) -> Data:
    seconds = {"key": "example.com/slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    return {
        "name": accelerator.removeprefix("nvidia-"),
        **where(draw(some_of(possible, 1)), job_clusters, draw),
        **fields(draw, tolerations=st.just([seconds])),
    }


def _nodes_by_gke(draw: Draw, accelerator: str, regions: Collection[str]) -> Data:
    """Labels of nodes that GKE makes for them, or a compute class."""
    if draw(flags):
        return {"nodeLabels": {"cloud.google.com/gke-accelerator": accelerator}}
    gpu: Data = {"type": accelerator, "count": 1}
    kept: Data = {"name": "of-others", "project": "shared-project", "zones": ["us-central1-a"]}
    priorities: list[Data] = [
        {"gpu": {**gpu, "driverVersion": "latest"}, "reservations": {"affinity": "Specific", "specific": [kept]}},
        {"gpu": gpu, "flexStart": {"enabled": True}, "maxRunDurationSeconds": 3600},
        {"gpu": gpu, "spot": True, "minCores": 4, "minMemoryGb": 16},
        {"gpu": gpu, "machineFamily": "n1" if accelerator == "nvidia-tesla-t4" else "g2"},
    ]
    if len(regions) == 1:
        priorities.append({"gpu": gpu, "location": {"zones": [ZONES[next(iter(regions))][0]]}})
    if accelerator == "nvidia-l4":
        priorities.append({"machineType": "g2-standard-4"})
    expected = {"priorities": draw(some_of(priorities, 1))}
    settings = fields(
        draw, whenUnsatisfiable=one_of("ScaleUpAnyway", "DoNotScaleUp"), nodePoolAutoCreation=st.just(True)
    )
    return {"computeClass": {**expected, **settings}}


def _topologies(draw: Draw, flavors: Sequence[Data], pools: Sequence[Data], job_clusters: Sequence[str]) -> list[Data]:
    """Topologies on every cluster that runs jobs, for some of the flavors."""
    if not draw(flags):
        return []
    levels = [{"nodeLabel": f"example.com/{level}"} for level in ("block", "rack")]
    result: Data = {"name": "racks", "levels": [*draw(some_of(levels)), {"nodeLabel": "kubernetes.io/hostname"}]}
    for flavor in flavors:
        if draw(flags):
            flavor["topologyName"] = "racks"
    return [result | where(job_clusters, job_clusters, draw)]


def standard_pools(flavor: Data, pools: Sequence[Data]) -> Data | None:
    """The pool that a flavor leads to, if it is one of the file's."""
    name = flavor.get("nodePool") or flavor.get("nodeLabels", {}).get(OWN_LABEL)
    return next((pool for pool in pools if pool["name"] == name), None)


def flavor_clusters(flavor: Data, clusters: Sequence[Data], pools: Sequence[Data]) -> list[str]:
    """Where a flavor is."""
    if "clusters" in flavor:
        return list(flavor["clusters"])
    pool = standard_pools(flavor, pools) if "nodePool" in flavor else None
    if pool is not None:
        return list(pool.get("clusters", runs_jobs(clusters, "Standard")))
    return runs_jobs(clusters)
