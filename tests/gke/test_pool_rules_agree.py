"""The fleet file, the rehearsal and the policy pack say the same of a node pool: they read the same rules.

Every machine type with every capacity class and every option, alone and in pairs, as the file has it: judged as a file,
declared by the component, and the declaration judged by the stand-in and by the policies. `make properties` tries every
machine type with every pair of a capacity class and a set of options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from tests.policies.declared import Declared, Ref, as_stack

from drawn import some_of
from kueue_admission.forms.base import DEFER_RULES
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.pool_rules import pool_facts, pool_problems, pool_problems_on
from kueue_fleet.fleet_file.model.resolved_pools import resolve_pool
from kueue_fleet.gke.declared_pools import read_pool
from kueue_fleet.gke.machines import machine_names, machine_type, n1_accelerators
from kueue_fleet.gke.pool_facts import PoolFacts
from kueue_fleet.gke.pool_rules import POOL_RULES, breaches
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU
from kueue_fleet.google.node_pools import node_pool_properties
from kueue_fleet_policies import RULES, ResourceRule
from kueue_fleet_policies import node_pools as node_pool_policies
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.pool import pool_facts as policies_of_pools
from kueue_fleet_policies.resource import CLUSTER, NODE_POOL, Resource
from kueue_rehearsal.cloud.node_pool_rules import refusals

REGION = "us-central1"
ZONES = [f"{REGION}-a", f"{REGION}-b", f"{REGION}-c"]
MACHINES = (*machine_names(), "h4d-standard-192", "x9-unheard-of-8")
CAPACITY: Mapping[str, Mapping[str, Any]] = {
    "onDemand": {"type": "onDemand"},
    "spot": {"type": "spot"},
    "reserved": {"type": "reserved", "reservation": "mine"},
    "calendar": {
        "type": "calendar",
        "reservation": "december",
        "start": "2026-12-01T00:00:00Z",
        "duration": "336h",
        "active": True,
    },
    "flexStart": {"type": "flexStart", "queuedProvisioning": False},
    "queued": {"type": "flexStart"},
    "for too long": {"type": "flexStart", "maxRunDuration": "169h"},
}
SCALED = {"totalMaxNodeCount": 6}
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "fixed size": {"nodeCount": 1, "autoscaling": None},
    "two sizes": {"nodeCount": 1},
    "never empty": {"autoscaling": {**SCALED, "totalMinNodeCount": 1}},
    "balanced": {"autoscaling": {**SCALED, "locationPolicy": "BALANCED"}},
    "minimum above maximum": {"autoscaling": {**SCALED, "totalMinNodeCount": 7}},
    "initial nodes": {"initialNodeCount": 1},
    "too many initial nodes": {"initialNodeCount": 7},
    "compact": {"compactPlacement": True},
    "one zone": {"zones": ZONES[:1]},
    "zone elsewhere": {"zones": ["us-east1-b"]},
    "no such zone": {"zones": [f"{REGION}-z"]},
    "no surge": {"upgrade": {"maxSurge": 0}},
    "repaired": {"management": {"autoRepair": True}},
    "not repaired": {"management": {"autoRepair": False}},
    "not upgraded": {"management": {"autoUpgrade": False}},
    "persistent disk": {"diskType": "pd-ssd"},
    "Hyperdisk": {"diskType": "hyperdisk-balanced"},
    "slice of four": {"tpuTopology": "4x4"},
    "slice of one": {"tpuTopology": "2x2"},
    "slice of four, in three dimensions": {"tpuTopology": "2x2x4", "zones": ZONES[:1]},
    "two local SSDs": {"localSsdCount": 2},
    "networks": {"acceleratorNetworkProfile": "auto"},
    "DRANET": {"labels": {"cloud.google.com/gke-networking-dra-driver": "true"}},
    "own label": {"labels": {"team": "a"}},
    "label of Kubernetes": {"labels": {"node.kubernetes.io/team": "a"}},
    "taint": {"taints": [TAINT]},
    "taint twice": {"taints": [TAINT, {**TAINT, "value": "b"}]},
    "one L4": {"accelerator": {"type": "nvidia-l4", "count": 1}},
    "eight H100": {"accelerator": {"type": "nvidia-h100-80gb", "count": 8}},
    "three T4": {"accelerator": {"type": "nvidia-tesla-t4", "count": 3}},
    **{f"{kind} attached": {"accelerator": {"type": kind, "count": 1}} for kind in n1_accelerators()},
}
STANDARD = ClusterEntry.model_validate(
    {"name": "batch", "role": "standalone", "region": REGION, "mode": "Standard", "zones": ZONES}
)
ELSEWHERE = {"pool-managed": {"gke-auto-upgrade", "gke-auto-repair"}}
"""Policies that say what a rule says, by numbers of the CIS benchmark."""
ABOUT_POOLS = {rule.name for rule in POOL_RULES} | {name for names in ELSEWHERE.values() for name in names}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policies, which Pulumi calls one by one, read the facts of a resource once here."""
    facts: dict[tuple[int, int], tuple[Resource, Resource | None, PoolFacts]] = {}

    def read(pool: Resource, cluster: Resource | None = None) -> PoolFacts:
        key = (id(pool), id(cluster))
        if key not in facts:
            facts[key] = (pool, cluster, policies_of_pools(pool, cluster))
        return facts[key][2]

    monkeypatch.setattr(node_pool_policies, "pool_facts", read)


def pool_of(machine: str, capacity: str, options: Iterable[str], cluster: ClusterEntry = STANDARD) -> NodePoolEntry:
    """A pool that a file may say, its rules not looked at."""
    data: dict[str, Any] = {"name": "pool", "machineType": machine, "autoscaling": SCALED}
    data["capacity"] = CAPACITY[capacity]
    for option in options:
        data |= OPTIONS[option]
    data = {field: value for field, value in data.items() if value is not None}
    return NodePoolEntry.model_validate(data, context={DEFER_RULES: True})


def declared(pool: NodePoolEntry, cluster: ClusterEntry) -> dict[str, Any]:
    """What the component declares for it, with what it would leave out of a pool that breaks a rule."""
    made = resolve_pool(pool, cluster)
    account = "nodes@my-project.iam.gserviceaccount.com"
    inputs = node_pool_properties(
        made, service_account=account, disk_encryption_key=None, image_streaming=True, labels={}
    )
    if pool.autoscaling is not None:
        least, most = pool.autoscaling.total_min_node_count, pool.autoscaling.total_max_node_count
        limits = {"totalMinNodeCount": least, "totalMaxNodeCount": most}
        inputs["autoscaling"] = {**limits, "locationPolicy": pool.autoscaling.location_policy}
    if made.compact_placement and pool.machine_type.startswith(WORKLOAD_POLICY_TPU):
        inputs["placementPolicy"]["policyName"] = "batch-pool"
    if pool.accelerator is not None:
        asked = {"type": pool.accelerator.type, "count": pool.accelerator.count}
        inputs["nodeConfig"]["guestAccelerators"] = [asked]
    if pool.initial_node_count is not None:
        inputs["initialNodeCount"] = pool.initial_node_count
    if pool.local_ssd_count == 0:
        inputs["nodeConfig"].pop("ephemeralStorageLocalSsdConfig", None)
    return inputs


def of_file(pool: NodePoolEntry, cluster: ClusterEntry) -> set[str]:
    """The rules that the file's check says are broken."""
    rules = {rule.name for rule, _ in breaches(pool_facts(pool, cluster))}
    said = [*pool_problems(pool), *pool_problems_on(pool, cluster)]
    # What is not used is only warned of.
    assert any(problem.severity == "error" for problem in said) == bool(rules), said
    return rules


def of_stand_in(inputs: Mapping[str, Any], machine: str) -> set[str]:
    """The rules that the stand-in for Google Cloud says are broken."""
    reasons = refusals("pool", inputs, REGION, ZONES, [])
    if machine_type(machine) is None:
        assert reasons.pop(0).startswith("nodeConfig.machineType: the rehearsal does not know")
    facts = read_pool(inputs, region=REGION, zones=ZONES, zone_count=len(ZONES), release_channel=True)
    found = [rule for rule, _ in breaches(facts)]
    assert len(reasons) == sum(rule.refused for rule in found), reasons
    return {rule.name for rule in found}


def of_policies(inputs: Mapping[str, Any], cluster: ClusterEntry) -> set[str]:
    """The rules that the policies say are broken."""
    owner = {
        "name": "batch",
        "location": REGION,
        "nodeLocations": list(cluster.zones),
        "releaseChannel": {"channel": "REGULAR"},
    }
    pool = {**inputs, "cluster": Ref("c", "name"), "location": REGION}
    estate = Estate.of(as_stack([Declared(CLUSTER, "c", owner), Declared(NODE_POOL, "pool", pool)]))
    resource = Resource(NODE_POOL, "pool", "urn:pool", {**inputs, "location": REGION})
    found: set[str] = set()
    for rule in RULES:
        if rule.name not in ABOUT_POOLS:
            continue
        if isinstance(rule, ResourceRule):
            found |= {rule.name} if rule.problems(resource) else set()
        else:
            found |= {rule.name} if list(rule.problems(estate)) else set()
    for name, others in ELSEWHERE.items():
        if found & others:
            found = found - others | {name}
    return found


def said(pool: NodePoolEntry, cluster: ClusterEntry, machine: str) -> Iterator[tuple[str, set[str]]]:
    inputs = declared(pool, cluster)
    yield "file", of_file(pool, cluster)
    yield "stand-in", of_stand_in(inputs, machine)
    yield "policies", of_policies(inputs, cluster)


def assert_agreed(machine: str, capacity: str, options: Iterable[str]) -> set[str]:
    answers = dict(said(pool_of(machine, capacity, options), STANDARD, machine))
    if machine.startswith(WORKLOAD_POLICY_TPU):
        # A resource of its own, the workload policy, has the topology: only the file can compare it with the pool.
        answers["file"] -= {"tpu-slice", "tpu-topology"}
    assert answers["file"] == answers["stand-in"] == answers["policies"], (machine, capacity, list(options), answers)
    return answers["file"]


def packed() -> list[tuple[str, ...]]:
    """The options in as few sets as possible, none of which says one field twice."""
    sets: list[list[str]] = []
    for option, fields in OPTIONS.items():
        fitting = (one for one in sets if not any(OPTIONS[other].keys() & fields.keys() for other in one))
        found = next(fitting, None)
        if found is None:
            sets.append(found := [])
        found.append(option)
    return [tuple(one) for one in sets]


SETS = ((), *packed(), ("compact",))


@pytest.mark.parametrize("machine", MACHINES)
def test_all_three_say_the_same_of_every_capacity_class_and_option(machine: str) -> None:
    broken: set[str] = set()
    # A quarter has each class with several sets of options and each set with a class; other machines have other pairs.
    for capacity, options in some_of(list(product(CAPACITY, SETS)), machine):
        broken |= assert_agreed(machine, capacity, options)
    assert {"pool-zones", "pool-taints"} < broken


FAMILIES = ("n1-standard-8", "g2-standard-24", "a3-highgpu-8g", "a4x-highgpu-4g", "ct6e-standard-4t")


@pytest.mark.parametrize("machine", FAMILIES)
@pytest.mark.parametrize("capacity", CAPACITY)
def test_all_three_say_the_same_of_each_option_by_itself(machine: str, capacity: str) -> None:
    for option in OPTIONS:
        assert_agreed(machine, capacity, (option,))


def test_the_pools_break_every_rule_that_a_file_can_break() -> None:
    broken: set[str] = set()
    for machine in FAMILIES:
        for capacity in CAPACITY:
            for options in (*SETS, ("networks",)):
                facts = pool_facts(pool_of(machine, capacity, options), STANDARD)
                broken |= {rule.name for rule, _ in breaches(facts)}
    unsayable = {"dws-autoscaling", "dws-no-reservation", "dws-not-spot", "spot-no-reservation", "reservation-named"}
    assert {rule.name for rule in POOL_RULES} - broken <= unsayable
