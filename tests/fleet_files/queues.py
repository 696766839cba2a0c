"""Queues with their quotas, cohorts and admission checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from tests.fleet_files.clusters import MANAGER, NEVER_ENOUGH
from tests.fleet_files.drawing import Data, Draw, fields, flags, named, one_of, part, some_of
from tests.fleet_files.nodes import GPU_MACHINES, flavor_clusters, runs_jobs, standard_pools

OURS: Final = "kueue-fleet.dev/admission-check"
_COVERED: Final = ("nvidia.com/gpu", "cpu", "memory", "ephemeral-storage")
_AMOUNTS: Final[Mapping[str, st.SearchStrategy[object]]] = {
    "nvidia.com/gpu": one_of(0, 1, 4, "8"),
    "cpu": one_of(0, 16, "1500m", "2k"),
    "memory": one_of(0, "64Gi", "1536Mi", "5M"),
    "ephemeral-storage": one_of("100Gi", "1Ti"),
    "example.com/licence": one_of(3, "10"),
}
_WEIGHTS: Final = one_of({"weight": 2}, {"weight": "500m"}, {"weight": 0})
_NAMES: Final = ("training", "batch", "evaluation")


@dataclass(frozen=True)
class Nodes:
    """What quotas are given on."""

    clusters: Sequence[Data]
    pools: Sequence[Data]
    flavors: Sequence[Data]

    @property
    def job_clusters(self) -> list[str]:
        """The clusters that run jobs."""
        return runs_jobs(self.clusters)

    @property
    def has_manager(self) -> bool:
        """Whether jobs are dispatched."""
        return any(cluster["role"] == "manager" for cluster in self.clusters)

    def on(self, flavor: Data) -> list[str]:
        """The clusters of a flavor."""
        return flavor_clusters(flavor, self.clusters, self.pools)

    def is_queued(self, flavor: Data) -> bool:
        """Whether the flavor's nodes come only for ProvisioningRequests."""
        capacity = (standard_pools(flavor, self.pools) or {}).get("capacity", {})
        return capacity.get("type") == "flexStart" and bool(capacity.get("queuedProvisioning", True))

    def has_gpus(self, flavor: Data) -> bool:
        """Whether the flavor's nodes have GPUs."""
        pool = standard_pools(flavor, self.pools)
        return pool is None or pool["machineType"] in GPU_MACHINES or "type" in pool.get("accelerator", {})

    def may_be_asked_for(self, flavor: Data) -> bool:
        """Whether a check may ask DWS for the flavor's nodes."""
        by_gke = standard_pools(flavor, self.pools) is None and "computeClass" not in flavor
        return self.is_queued(flavor) or by_gke


def cohorts(draw: Draw, nodes: Nodes) -> list[Data]:
    """A tree of up to three cohorts."""
    names = draw(some_of(("company", "research", "vision.lab")))
    result: list[Data] = []
    for name in names:
        parent = fields(draw, parentName=one_of(*named(result))) if result else {}
        cohort = {"name": name, **parent, **fields(draw, fairSharing=_WEIGHTS)}
        flavors = [flavor for flavor in nodes.flavors if set(nodes.on(flavor)) & set(nodes.job_clusters)]
        if flavors and draw(one_of(False, False, True)):
            chosen = draw(some_of(flavors, 1))
            cohort["resourceGroups"] = [_group(draw, nodes, ("cpu",), chosen, nodes.job_clusters, limits=bool(parent))]
        result.append(cohort)
    return list(draw(st.permutations(result)))


def cluster_queues(draw: Draw, nodes: Nodes, cohorts: Sequence[Data]) -> list[Data]:
    """Up to three queues, each where its flavors are."""
    usable = [flavor for flavor in nodes.flavors if set(nodes.on(flavor)) & set(nodes.job_clusters)]
    if not usable:
        return []
    return [_queue(draw, name, nodes, usable, cohorts) for name in draw(some_of(_NAMES, 1))]


def _queue(draw: Draw, name: str, nodes: Nodes, usable: Sequence[Data], cohorts: Sequence[Data]) -> Data:
    chosen = draw(st.permutations(draw(some_of(usable, 1))))
    split = draw(st.integers(0, len(chosen) - 1))
    # A second group has flavors of its own, and is where the first one is.
    first, second = chosen[split:], chosen[:split]
    possible = {cluster for flavor in first for cluster in nodes.on(flavor)}
    if second:
        possible &= {cluster for flavor in second for cluster in nodes.on(flavor)}
    clusters = [cluster for cluster in nodes.job_clusters if cluster in possible]
    if not clusters:
        first, second = chosen[:1], []
        clusters = [cluster for cluster in nodes.job_clusters if cluster in nodes.on(first[0])]
    here = draw(st.permutations(draw(some_of(clusters, 1))))
    cohort = fields(draw, cohortName=one_of(*named(cohorts))) if cohorts else {}
    covered = draw(some_of(_COVERED, 1))
    groups = [_group(draw, nodes, covered, first, here, limits=bool(cohort), within=True)]
    if second:
        groups.append(_group(draw, nodes, ["example.com/licence"], second, here, limits=bool(cohort), within=True))
    place = {} if list(here) == nodes.job_clusters and draw(flags) else {"clusters": list(here)}
    queue = {"name": name, **place, **cohort, "namespaceSelector": draw(_SELECTORS), "resourceGroups": groups}
    queue |= fields(
        draw,
        queueingStrategy=one_of("BestEffortFIFO", "StrictFIFO"),
        flavorFungibility=_fungibility(),
        preemption=_preemption(),
        stopPolicy=one_of("None", "Hold", "HoldAndDrain"),
        fairSharing=_WEIGHTS,
        admissionScope=st.fixed_dictionaries(
            {"admissionMode": one_of("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")}
        ),
    )
    if len(groups) == 1 and queue.get("queueingStrategy") != "StrictFIFO":
        everywhere = [flavor["name"] for flavor in first if set(clusters) <= set(nodes.on(flavor))]
        queue |= fields(draw, concurrentAdmissionPolicy=_concurrent(everywhere))
    return queue


_SELECTORS: Final[st.SearchStrategy[Data]] = one_of(
    {},
    {},
    {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]},
    {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
)


def _group(
    draw: Draw,
    nodes: Nodes,
    covered: Sequence[str],
    flavors: Sequence[Data],
    clusters: Sequence[str],
    *,
    limits: bool,
    within: bool = False,
) -> Data:
    return {
        "coveredResources": list(covered),
        "flavors": [
            {
                "name": flavor["name"],
                "resources": [
                    _quota(
                        draw,
                        name,
                        _AMOUNTS[name] if name != "nvidia.com/gpu" or nodes.has_gpus(flavor) else one_of(0),
                        [cluster for cluster in clusters if cluster in nodes.on(flavor)],
                        limits=limits,
                        within=within,
                    )
                    for name in covered
                ],
            }
            for flavor in flavors
        ],
    }


def _quota(
    draw: Draw, name: str, amount: st.SearchStrategy[object], clusters: Sequence[str], *, limits: bool, within: bool
) -> Data:
    # What a queue lends is within its nominal quota, wherever that may be another.
    lent = one_of(0) if within else amount
    quota = {"name": name, "nominalQuota": draw(amount)}
    if limits:
        quota |= fields(draw, borrowingLimit=amount, lendingLimit=lent)
    if clusters and draw(one_of(False, False, True)):
        own = {"nominalQuota": amount, **({"borrowingLimit": amount, "lendingLimit": lent} if limits else {})}
        quota["perCluster"] = {cluster: draw(part(**own)) for cluster in draw(some_of(clusters, 1))}
    return quota


def _fungibility() -> st.SearchStrategy[Data]:
    both = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
    return st.one_of(
        st.fixed_dictionaries(
            {
                "whenCanBorrow": one_of("MayStopSearch", "TryNextFlavor"),
                "whenCanPreempt": one_of("MayStopSearch", "TryNextFlavor"),
            }
        ),
        one_of("BorrowingOverPreemption", "PreemptionOverBorrowing").map(lambda text: {**both, "preference": text}),
    )


def _preemption() -> st.SearchStrategy[Data]:
    within = one_of("Never", "LowerPriority", "LowerOrNewerEqualPriority")
    lower: Data = {"policy": "LowerPriority"}
    return st.one_of(
        st.fixed_dictionaries({"withinClusterQueue": within}),
        st.fixed_dictionaries(
            {
                "reclaimWithinCohort": one_of("LowerPriority", "Any"),
                "borrowWithinCohort": one_of(lower, {**lower, "maxPriorityThreshold": 100}, {"policy": "Never"}),
                "withinClusterQueue": within,
            }
        ),
    )


def _concurrent(flavors: Sequence[str]) -> st.SearchStrategy[Data]:
    retain = st.just({"migration": {"mode": "RetainFirstAdmission"}})
    if not flavors:
        return retain
    last = one_of(*flavors).map(lambda name: {"constraints": {"lastAcceptableFlavorName": name}})
    return st.one_of(
        retain, last.map(lambda constraints: {"migration": {"mode": "TryPreferredFlavors", **constraints}})
    )


def admission_checks(draw: Draw, nodes: Nodes, queues: Sequence[Data], *, controller: bool) -> list[Data]:
    """Checks, and in the queues what they are for; those that ask DWS where nodes come only when asked for."""
    result: list[Data] = []
    flavors = {flavor["name"]: flavor for flavor in nodes.flavors}
    used = {name for queue in queues for name in flavors_of(queue)}
    asked = [name for name in used if nodes.is_queued(flavors[name])]
    if asked or draw(one_of(False, True)):
        result.append(_dws(draw))
    if draw(one_of(False, True)):
        result.append(_of_others(draw, nodes))
    if controller and draw(flags):
        result.append({"name": "residency", "clusters": [MANAGER], "controllerName": OURS})
    for queue in queues:
        rules = [rule for check in result for rule in _rule(draw, check, queue, nodes, flavors)]
        if rules:
            queue["admissionChecksStrategy"] = {"admissionChecks": draw(st.permutations(rules))}
    return list(draw(st.permutations(result)))


def flavors_of(queue: Data) -> list[str]:
    """The flavors that a queue has quotas on."""
    return [flavor["name"] for group in queue["resourceGroups"] for flavor in group["flavors"]]


def _dws(draw: Draw) -> Data:
    request: Data = {"provisioningClassName": "queued-provisioning.gke.io"}
    updates = [{"key": "example.com/node", "valueFromProvisioningClassDetail": "NodeName"}]
    request |= fields(
        draw,
        configName=one_of("dws-config"),
        parameters=one_of({"maxRunDurationSeconds": "3600"}, {}),
        managedResources=one_of(["nvidia.com/gpu"]),
        retryStrategy=part(
            backoffLimitCount=st.integers(0, 9),
            backoffBaseSeconds=st.integers(1, 60),
            backoffMaxSeconds=st.integers(900, 2000),
        ),
        podSetUpdates=one_of({"nodeSelector": updates}),
        podSetMergePolicy=one_of("IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"),
    )
    return {"name": draw(one_of("dws", "ask-dws")), "provisioningRequest": request}


def _of_others(draw: Draw, nodes: Nodes) -> Data:
    parameters = {"apiGroup": "example.com", "kind": "Budget", "name": "monthly"}
    everywhere = [*nodes.job_clusters, *([MANAGER] if nodes.has_manager else [])]
    place = draw(one_of({}, {"clusters": everywhere}))
    check = {"name": "budget", "controllerName": "example.com/budget", **place}
    return check | fields(draw, parameters=st.just(parameters))


def _rule(draw: Draw, check: Data, queue: Data, nodes: Nodes, flavors: Mapping[str, Data]) -> list[Data]:
    own = flavors_of(queue)
    if "provisioningRequest" not in check:
        rule: Data = {"name": check["name"], **draw(part(onFlavors=some_of(own, 1)))}
        return [rule] if draw(flags) else []
    needed = [name for name in own if nodes.is_queued(flavors[name])]
    possible = [name for name in own if nodes.may_be_asked_for(flavors[name])]
    chosen = [name for name in possible if name in needed or draw(flags)]
    if not chosen:
        return []
    return [{"name": check["name"], **({} if chosen == own and draw(flags) else {"onFlavors": chosen})}]


def managers_quotas(draw: Draw, queue: Data, flavor: str) -> Data:
    """`manager` of a queue: enough for all workers, in one group."""
    covered = list(dict.fromkeys(name for group in queue["resourceGroups"] for name in group["coveredResources"]))
    amounts = {"memory": "4Pi", "ephemeral-storage": "4Pi"}
    resources: list[Data] = [{"name": name, "nominalQuota": amounts.get(name, NEVER_ENOUGH)} for name in covered]
    if "cohortName" in queue:
        resources[0] |= fields(draw, borrowingLimit=one_of(5), lendingLimit=one_of(1))
    flavors = [{"name": flavor, "resources": resources}]
    return {"manager": {"resourceGroups": [{"coveredResources": covered, "flavors": flavors}]}}
