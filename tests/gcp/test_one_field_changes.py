"""One field changes, and changes back: `diff` names what the provider makes again, by the facts of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from pydantic import BaseModel
from tests.gcp.test_second_plan import declared

from google_cloud import created, planned, updated
from kueue_fleet.diff import compare_fleets
from kueue_fleet.diff.difference import Difference
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.network import NetworkArgs
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.google.resource_kinds import RESERVATIONS
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from pulumi_mocks import Recorded

A, B, F = "us-central1-a", "us-central1-b", "us-central1-f"
KEY = "projects/keys-1/locations/us-central1/keyRings/r/cryptoKeys/"
ACCOUNT = "gpu-nodes@lab-project.iam.gserviceaccount.com"
GROUP = "gke-security-groups@example.com"
LIMITS = [{"resourceType": "cpu", "maximum": 1000}, {"resourceType": "memory", "maximum": 4000}]
WINDOW = {"start": "2026-01-03T00:00:00Z", "end": "2026-01-04T00:00:00Z", "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}
FREEZE = {"name": "year-end", "start": "2026-12-20T00:00:00Z", "end": "2027-01-04T00:00:00Z"}
OFFICE = [{"name": "office", "cidr": "203.0.113.0/24"}]
SUBNET = {"name": "a", "podRangeName": "p", "serviceRangeName": "s"}
VPC = {"name": "vpc", "project": "host-project", "subnets": {"us-central1": SUBNET}}
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
UNPLANNED: Final = {"initialNodeCount"}
"""What is asked for once, and means nothing later."""

UNZONED = {"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard"}
STANDARD = {**UNZONED, "zones": [A]}
AUTOPILOT = {"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Autopilot"}
NAP = {**STANDARD, "nodeAutoProvisioning": {"resourceLimits": LIMITS}}
N1 = {"name": "nodes", "machineType": "n1-standard-8", "zones": [A], "autoscaling": {"totalMaxNodeCount": 3}}
L4 = {**N1, "machineType": "g2-standard-24"}
A100 = {**N1, "machineType": "a2-highgpu-1g"}
H200 = {"name": "nodes", "machineType": "a3-ultragpu-8g", "zones": [B], "nodeCount": 2}
H200 |= {"capacity": {"type": "reserved", "reservation": "r"}}
CARDS = [{"network": f"net-{number}", "subnetwork": f"subnet-{number}"} for number in range(9)]
V6E = {"name": "nodes", "machineType": "ct6e-standard-4t", "zones": [B], "nodeCount": 4, "tpuTopology": "4x4"}
V7 = {"name": "nodes", "machineType": "tpu7x-standard-4t", "zones": ["us-central1-c"], "nodeCount": 2}
V7 |= {"tpuTopology": "2x2x2"}
CUBE = {**V7, "nodeCount": 16, "tpuTopology": "4x4x4"}
CUBE |= {"capacity": {"type": "reserved", "reservation": "r", "block": "b", "subBlock": "s"}}
RESERVED = {"name": "r", "zone": A, "machineType": "n1-standard-16", "count": 2}
FUTURE = {"name": "f", "zone": A, "machineType": "a3-highgpu-8g", "count": 2, "start": "2027-01-10T00:00:00Z"}
FUTURE |= {"duration": "336h"}
COMMITTED: dict[str, Any] = {"name": "c", "region": "us-central1", "plan": "TWELVE_MONTH"}
COMMITTED |= {
    "resources": [{"type": "VCPU", "amount": 8}, {"type": "MEMORY", "amount": 32}],
    "confirm": "I-accept-the-cost",
}


class Entry(NamedTuple):
    """Where a field is."""

    section: str
    data: Mapping[str, Any]
    others: Mapping[str, Any] = {}
    """Other sections of the file."""

    def fleet(self, **fields: Any) -> FleetSpec:
        """The fleet with these fields in this entry."""
        entry = {name: value for name, value in {**self.data, **fields}.items() if value is not None}
        file: dict[str, Any] = {"name": "lab", "project": "lab-project", "clusters": [STANDARD], **self.others}
        return parse_fleet({**file, self.section: entry if self.section in ("network", "labels") else [entry]})


def _pool(data: Mapping[str, Any], **cluster: Any) -> Entry:
    return Entry("nodePools", data, {"clusters": [{**STANDARD, **cluster}]})


def _each(entry: Entry, *changes: tuple[str, Any]) -> list[tuple[Entry, dict[str, Any]]]:
    """The entry with each of these fields set to its value."""
    return [(entry, {field: value}) for field, value in changes]


def _capacity(**fields: Any) -> Entry:
    return _pool({**L4, "capacity": fields})


_FLEX = _capacity(type="flexStart")
_KEPT = _pool({**N1, "nodeCount": 2, "autoscaling": None, "capacity": {"type": "reserved", "reservation": "r"}})
_NET = Entry("network", {})
_SHARED_NET = Entry("network", {"existing": VPC})
_ADDRESSES = Entry("network", {"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": OFFICE})
CHANGES: Final[list[tuple[Entry, dict[str, Any]]]] = [
    (Entry("clusters", UNZONED), {"region": "us-east4"}),
    (Entry("clusters", UNZONED), {"mode": "Autopilot"}),
    *_each(
        Entry("clusters", STANDARD),
        ("zones", [A, F]),
        ("zones", [F]),
        ("releaseChannel", "RAPID"),
        ("minMasterVersion", "1.34"),
        ("deletionProtection", False),
        ("systemPool", {"machineType": "n2-standard-4"}),
        ("systemPool", {"machineType": "n1-standard-4"}),
        ("systemPool", {"spot": True}),
        ("systemPool", {"totalMinNodeCount": 2}),
        ("systemPool", {"totalMaxNodeCount": 9}),
        ("systemPool", {"diskSizeGb": 200}),
        ("nodeAutoProvisioning", {"resourceLimits": LIMITS}),
        ("maintenance", WINDOW),
        ("maintenance", {**WINDOW, "exclusions": [FREEZE]}),
        ("databaseEncryptionKey", f"{KEY}a"),
        ("diskEncryptionKey", f"{KEY}a"),
        ("nodeServiceAccount", ACCOUNT),
        ("rbacSecurityGroup", GROUP),
        ("binaryAuthorization", True),
        ("fleetMembership", False),
        ("costAllocation", False),
        ("imageStreaming", False),
        ("multiNetworking", True),
        ("storageDrivers", ["GcsFuse"]),
        ("storageDrivers", []),
        ("storageDrivers", ["PersistentDisk", "Filestore"]),
        ("storageDrivers", ["PersistentDisk", "Filestore", "GcsFuse", "Lustre", "MultiTierCheckpoints"]),
    ),
    (Entry("clusters", {**STANDARD, "databaseEncryptionKey": f"{KEY}a"}), {"databaseEncryptionKey": f"{KEY}b"}),
    (Entry("clusters", {**STANDARD, "diskEncryptionKey": f"{KEY}a"}), {"diskEncryptionKey": f"{KEY}b"}),
    (
        Entry("clusters", {**STANDARD, "diskEncryptionKey": f"{KEY}a"}),
        {"nodeAutoProvisioning": {"resourceLimits": LIMITS}},
    ),
    (Entry("clusters", {**STANDARD, "rbacSecurityGroup": GROUP}), {"rbacSecurityGroup": "gke-security-groups@b.com"}),
    (Entry("clusters", {**STANDARD, "maintenance": WINDOW}), {"maintenance": {**WINDOW, "recurrence": "FREQ=DAILY"}}),
    (Entry("clusters", {**STANDARD, "minMasterVersion": "1.34"}), {"minMasterVersion": "1.35"}),
    *_each(
        Entry("clusters", NAP),
        ("nodeAutoProvisioning", {"resourceLimits": [LIMITS[0], {**LIMITS[1], "maximum": 8000}]}),
        ("nodeAutoProvisioning", {"resourceLimits": LIMITS, "zones": [F]}),
        ("nodeAutoProvisioning", {"resourceLimits": LIMITS, "autoscalingProfile": "BALANCED"}),
        ("diskEncryptionKey", f"{KEY}a"),
        ("nodeServiceAccount", ACCOUNT),
        ("imageStreaming", False),
    ),
    *_each(
        Entry("clusters", AUTOPILOT),
        ("region", "us-east4"),
        ("releaseChannel", "RAPID"),
        ("maintenance", WINDOW),
        ("databaseEncryptionKey", f"{KEY}a"),
        ("diskEncryptionKey", f"{KEY}a"),
        ("nodeServiceAccount", ACCOUNT),
        ("rbacSecurityGroup", GROUP),
        ("binaryAuthorization", True),
        ("fleetMembership", False),
        ("costAllocation", False),
    ),
    *_each(
        _pool(N1),
        ("zones", [A, F]),
        ("zones", [F]),
        ("machineType", "n1-standard-16"),
        ("machineType", "n2-standard-8"),
        ("machineType", "g2-standard-24"),
        ("accelerator", {"type": "nvidia-tesla-t4", "count": 1}),
        ("initialNodeCount", 2),
        ("diskSizeGb", 200),
        ("diskType", "pd-ssd"),
        ("localSsdCount", 2),
        ("secondaryBootDisks", [{"diskImage": "global/images/cache", "mode": "CONTAINER_IMAGE_CACHE"}]),
        ("kubeletConfig", {"cpuManagerPolicy": "static", "topologyManager": {"policy": "best-effort"}}),
        ("maxPodsPerNode", 32),
        ("labels", {"company.test/a": "b"}),
        ("taints", [{"key": "a", "value": "b", "effect": "NoSchedule"}]),
        ("upgrade", {"maxSurge": 2, "maxUnavailable": 1}),
        ("capacity", {"type": "spot"}),
        ("capacity", {"type": "onDemand", "affinity": "Any"}),
        ("capacity", {"type": "reserved", "reservation": "r"}),
        ("capacity", {"type": "flexStart"}),
        ("deletionProtection", False),
        ("autoscaling", {"totalMaxNodeCount": 9}),
        ("autoscaling", {"totalMinNodeCount": 1, "totalMaxNodeCount": 3}),
        ("autoscaling", {"totalMaxNodeCount": 3, "locationPolicy": "BALANCED"}),
        ("perCluster", {"batch": {"diskSizeGb": 300}}),
        ("perCluster", {"batch": {"capacity": {"type": "spot"}}}),
    ),
    (_pool({**N1, "labels": {"a": "b"}}), {"labels": {"a": "c"}}),
    (_pool({**N1, "labels": {"a": "b"}}), {"labels": {"c": "b"}}),
    (_pool({**N1, "maxPodsPerNode": 32}), {"maxPodsPerNode": 64}),
    (_pool({**N1, "localSsdCount": 1}), {"localSsdCount": 2}),
    (
        _pool({**N1, "accelerator": {"type": "nvidia-tesla-t4", "count": 1}}),
        {"accelerator": {"type": "nvidia-tesla-t4", "count": 2}},
    ),
    (
        _pool({**N1, "accelerator": {"type": "nvidia-tesla-t4", "count": 1}}),
        {"accelerator": {"type": "nvidia-tesla-p4", "count": 1}},
    ),
    (_pool({**N1, "autoscaling": None, "nodeCount": 2}), {"nodeCount": 1}),
    (_pool({**N1, "autoscaling": None, "nodeCount": 2}), {"nodeCount": None, "autoscaling": {"totalMaxNodeCount": 3}}),
    *_each(
        _pool(L4),
        ("machineType", "g2-standard-48"),
        ("machineType", "g2-standard-12"),
        ("machineType", "n2-standard-8"),
        ("machineType", "e2-standard-8"),
        ("machineType", "a2-highgpu-1g"),
        ("accelerator", {"driverVersion": "LATEST"}),
        ("accelerator", {"sharing": {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 6}}),
        ("fastSocket", True),
        ("accelerator", {"driverVersion": "DEFAULT"}),
        ("capacity", {"type": "flexStart"}),
        ("capacity", {"type": "flexStart", "queuedProvisioning": False}),
        ("capacity", {"type": "spot"}),
    ),
    (
        _pool({**A100, "accelerator": {"partitionSize": "1g.5gb"}}),
        {"accelerator": {"partitionSize": "2g.10gb", "sharing": {"strategy": "MPS", "maxSharedClientsPerGpu": 2}}},
    ),
    (_FLEX, {"capacity": {"type": "flexStart", "maxRunDuration": "24h"}}),
    (_FLEX, {"capacity": {"type": "flexStart", "queuedProvisioning": False}}),
    (_FLEX, {"machineType": "g2-standard-48"}),
    (_KEPT, {"capacity": {"type": "reserved", "reservation": "other"}}),
    (_KEPT, {"capacity": {"type": "reserved", "reservation": "r", "project": "other-project"}}),
    (_KEPT, {"capacity": {"type": "reserved", "reservation": "r", "block": "b"}}),
    (_KEPT, {"capacity": {"type": "onDemand"}}),
    (_pool(H200), {"acceleratorNetworkProfile": "auto"}),
    (_pool(H200, multiNetworking=True), {"acceleratorNetworks": {}}),
    (_pool({**H200, "acceleratorNetworks": {}}, multiNetworking=True), {"acceleratorNetworks": {"existing": CARDS}}),
    (_pool({**H200, "acceleratorNetworks": {}}, multiNetworking=True), {"ncclPlugin": False}),
    (_pool(H200), {"compactPlacement": True}),
    (_pool({**H200, "acceleratorNetworkProfile": "auto"}), {"machineType": "a3-megagpu-8g"}),
    (_pool(V6E), {"nodeCount": 8, "tpuTopology": "4x8"}),
    (_pool(V7), {"nodeCount": 4, "tpuTopology": "2x2x4"}),
    (_pool(V6E), {"nodeCount": 1, "tpuTopology": "2x2"}),
    (Entry("clusters", {**STANDARD, "releaseChannel": "RAPID"}), {"sliceController": True}),
    (_pool(CUBE, releaseChannel="RAPID", sliceController=True), {"acceleratorTopologyMode": "PROVISION_ONLY"}),
    (_NET, {"name": "other"}),
    (_NET, {"ranges": {"us-central1": "10.128.0.0/19"}}),
    (_NET, {"ranges": {"us-central1": "10.200.0.0/20"}}),
    (_NET, {"podRanges": {"us-central1": "172.24.0.0/16"}}),
    (_NET, {"serviceRanges": {"us-central1": "10.127.0.0/20"}}),
    (
        Entry("network", {"serviceRanges": {"us-central1": "10.127.0.0/20"}}),
        {"serviceRanges": {"us-central1": "10.126.0.0/20"}},
    ),
    (_NET, {"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": OFFICE}),
    (_NET, {"existing": VPC}),
    (_ADDRESSES, {"authorizedNetworks": [*OFFICE, {"name": "home", "cidr": "198.51.100.0/24"}]}),
    (_SHARED_NET, {"existing": {**VPC, "name": "other"}}),
    (_SHARED_NET, {"existing": {**VPC, "project": "other-project"}}),
    (_SHARED_NET, {"existing": {**VPC, "subnets": {"us-central1": {**SUBNET, "name": "b"}}}}),
    (_SHARED_NET, {"existing": {**VPC, "subnets": {"us-central1": {**SUBNET, "podRangeName": "q"}}}}),
    (_SHARED_NET, {"existing": {**VPC, "subnets": {"us-central1": {"name": "a", "podRangeName": "p"}}}}),
    *_each(
        Entry("reservations", RESERVED),
        ("zone", F),
        ("machineType", "n1-standard-8"),
        ("machineType", "n2-standard-8"),
        ("count", 3),
        ("accelerator", {"type": "nvidia-tesla-t4", "count": 1}),
        ("localSsdCount", 2),
        ("sharedWith", ["123456789012"]),
        ("sharedWith", ["team-a"]),
        ("purpose", "backup"),
    ),
    (
        Entry("reservations", {**RESERVED, "accelerator": {"type": "nvidia-tesla-t4", "count": 1}}),
        {"accelerator": {"type": "nvidia-tesla-t4", "count": 2}},
    ),
    (
        Entry("reservations", {**RESERVED, "sharedWith": ["123456789012"]}),
        {"sharedWith": ["123456789012", "210987654321"]},
    ),
    (Entry("reservations", {**RESERVED, "sharedWith": ["123456789012"]}), {"sharedWith": ["team-a"]}),
    (Entry("reservations", {**RESERVED, "localSsdCount": 1}), {"localSsdCount": 2}),
    *_each(
        Entry("futureReservations", FUTURE),
        ("zone", B),
        ("machineType", "a3-megagpu-8g"),
        ("count", 3),
        ("start", "2027-01-11T00:00:00Z"),
        ("duration", "168h"),
        ("planningStatus", "SUBMITTED"),
        ("sharedWith", ["123456789012"]),
        ("sharedWith", ["team-a"]),
    ),
    *_each(
        Entry("commitments", COMMITTED),
        ("region", "us-east4"),
        ("plan", "THIRTY_SIX_MONTH"),
        ("type", "COMPUTE_OPTIMIZED"),
        ("resources", [{"type": "VCPU", "amount": 16}, {"type": "MEMORY", "amount": 32}]),
    ),
    (Entry("labels", {}), {"cost-center": "a"}),
    (Entry("labels", {"cost-center": "a"}), {"cost-center": "b"}),
]
ELSEWHERE: Final[Mapping[type[BaseModel], set[str]]] = {
    ClusterEntry: {"name", "role", "project", "kueue", "existing", "upsertExistingObjects"}
    | {"kubernetes", "location", "nodes", "podMonitors"},
    NodePoolEntry: {"name", "existing", "clusters", "management"},
    NetworkArgs: set(),
    ReservationEntry: {"name"},
    FutureReservationEntry: {"name"},
    CommitmentEntry: {"name", "confirm", "reservations"},
}
"""Fields that are no property of a resource that stays, or that check refuses to change."""


class Step(NamedTuple):
    """One way of a change."""

    before: FleetSpec
    after: FleetSpec
    found: list[tuple[Recorded, Recorded, dict[str, str]]]
    """Each resource that stays, before and after, with what an update changes of it."""
    said: list[Difference]
    """What `diff` says."""


class Side(NamedTuple):
    """One fleet, with its resources in Google Cloud."""

    fleet: FleetSpec
    resources: dict[tuple[str, str], Recorded]


@cache
def side(entry: int, *, changed: bool) -> Side:
    """A fleet before or after an entry of CHANGES."""
    base, fields = CHANGES[entry]
    spec = base.fleet(**(fields if changed else {}))
    return Side(spec, {(item.type, item.place): item for item in declared(spec) if item.type.startswith("gcp:")})


@cache
def steps(entry: int) -> tuple[Step, Step]:
    """The change, and the change back."""
    first = next(index for index, (other, _) in enumerate(CHANGES) if other == CHANGES[entry][0])
    sides = [side(first, changed=False), side(entry, changed=True)]
    result = []
    for (before, old), (after, new) in (sides, sides[::-1]):
        keys = [key for key in old if key in new]
        plans = [(old[key], new[key], planned(new[key], created(key[0], old[key].inputs))) for key in keys]
        result.append(Step(before, after, plans, compare_fleets(before, after)))
    return result[0], result[1]


def replaced(found: list[tuple[Recorded, Recorded, dict[str, str]]]) -> set[tuple[str, str]]:
    """Type and name of what is made again; what is in a cluster goes with it."""
    urns = {new.urn for _, new, plan in found if any(change.endswith("REPLACE") for change in plan.values())}
    names = {(new.type, new.inputs["name"]) for _, new, _ in found if new.urn in urns or urns & set(new.replace_with)}
    return {item for item in names if item[0] != NODE_POOL or not any(token == CLUSTER for token, _ in names)}


def told(before: FleetSpec, said: list[Difference]) -> set[tuple[str, str]]:
    """The same as `diff` says it."""
    tokens = dict(zip(("reservations", "futureReservations"), RESERVATIONS, strict=True))
    result: set[tuple[str, str]] = set()
    for item in said:
        section, _, rest = item.path.partition("[")
        if "made again" not in item.text:
            continue
        if "every node pool" in item.text:
            result |= {(NODE_POOL, pool.name) for pool in before.node_pools} | {(NODE_POOL, "system")}
        elif section == "nodePools" or item.path.endswith("systemPool"):
            result.add((NODE_POOL, rest.partition("]")[0] if section == "nodePools" else "system"))
        else:
            result.add((tokens[section], rest.partition("]")[0]) if section in tokens else (CLUSTER, "batch"))
    return result


EACH: Final = pytest.mark.parametrize(
    "entry", range(len(CHANGES)), ids=["-".join([base.section, *fields]) for base, fields in CHANGES]
)


@EACH
def test_diff_names_what_the_provider_makes_again(entry: int) -> None:
    for before, _, result, differences in steps(entry):
        made_again = replaced(result)
        ours = {item for item in made_again if item[0] in (CLUSTER, NODE_POOL, *RESERVATIONS)}
        assert told(before, differences) == ours
        output = [each.text for each in differences if each.area == "consequences"]
        assert any("`pulumi up` fails" in text for text in output) or made_again <= ours | {(POLICY, "batch-nodes")}
        assert all(old.protect for old, new, _ in result if (new.type, new.inputs.get("name")) in ours)


@EACH
def test_diff_says_why_a_pool_is_made_again(entry: int) -> None:
    result = [each for step in steps(entry) for each in step.said]
    again = [item.text for item in result if item.path.startswith("nodePools") and "made again" in item.text]
    assert all(" -> " in text and not set("{}[]'") & set(text) for text in again), again


@EACH
def test_what_the_provider_leaves_as_it_is_is_said(entry: int) -> None:
    for step in steps(entry):
        kept = [new.short for old, new, plan in step.found if not plan and asked(old) != asked(new)]
        assert not kept or any(item.area == "consequences" for item in step.said), kept


@EACH
def test_an_update_settles(entry: int) -> None:
    for step in steps(entry):
        for old, new, plan in step.found:
            if not any(change.endswith("REPLACE") for change in plan.values()):
                assert planned(new, updated(new.type, created(old.type, old.inputs), new.inputs)) == {}


def asked(resource: Recorded) -> dict[str, Any]:
    return {name: value for name, value in resource.inputs.items() if name not in UNPLANNED}


def test_every_field_is_changed() -> None:
    sections: dict[type[BaseModel], str] = {
        ClusterEntry: "clusters",
        NodePoolEntry: "nodePools",
        NetworkArgs: "network",
        ReservationEntry: "reservations",
        FutureReservationEntry: "futureReservations",
        CommitmentEntry: "commitments",
    }
    for model, section in sections.items():
        fields = {field.alias or name for name, field in model.model_fields.items()}
        changed = {name for entry, change in CHANGES for name in change if entry.section == section}
        assert fields == changed | ELSEWHERE[model], section
