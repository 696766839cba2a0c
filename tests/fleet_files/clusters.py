"""Clusters, their network, and what is reserved for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import strategies as st

from tests.fleet_files.configuration import cluster_configurations
from tests.fleet_files.drawing import Data, Draw, composed, fields, flags, one_of, part, some_of

ZONES: Final[Mapping[str, tuple[str, ...]]] = {
    "us-central1": ("us-central1-a", "us-central1-b", "us-central1-c"),
    "us-east4": ("us-east4-a", "us-east4-c"),
    "europe-west4": ("europe-west4-a", "europe-west4-b", "europe-west4-c"),
    "asia-southeast1": ("asia-southeast1-a", "asia-southeast1-b", "asia-southeast1-c"),
}
"""Regions, and zones of them that offer NVIDIA L4."""
MANAGER: Final = "manager"
NEVER_ENOUGH: Final = 100_000
"""More than all quotas of a fleet together."""
_KEY: Final = "projects/keys/locations/{region}/keyRings/gke/cryptoKeys/{use}"


def clusters(draw: Draw) -> list[Data]:
    """One standalone cluster, or a manager and up to three workers."""
    if draw(one_of(False, False, True)):
        return [_cluster(draw, "batch", "standalone")]
    workers = [_cluster(draw, f"worker-{letter}", "worker") for letter in "abc"[: draw(st.integers(1, 3))]]
    return list(draw(st.permutations([_cluster(draw, MANAGER, "manager"), *workers])))


def _cluster(draw: Draw, name: str, role: str) -> Data:
    region = draw(one_of(*ZONES))
    cluster: Data = {"name": name, "role": role, "region": region, **fields(draw, upsertExistingObjects=flags)}
    if draw(one_of(False, False, False, True)):
        cluster |= fields(draw, project=one_of("lab-project", "team-project")) if role == "worker" else {}
        return cluster | {"existing": True, "mode": draw(one_of("Autopilot", "Standard"))}
    cluster |= fields(
        draw,
        releaseChannel=one_of("RAPID", "REGULAR", "STABLE", "EXTENDED"),
        deletionProtection=flags,
        podMonitors=part(labels=one_of({"release": "prometheus"}), namespace=one_of("monitoring", "metrics")),
        kueue=st.fixed_dictionaries(
            {"configuration": composed(cluster_configurations)}, optional={"version": one_of("0.19.2")}
        ),
        maintenance=composed(_maintenance),
        minMasterVersion=one_of("1.34", "1.34.1-gke.1829001"),
        databaseEncryptionKey=st.just(_KEY.format(region=region, use="etcd")),
        diskEncryptionKey=st.just(_KEY.format(region=region, use="disks")),
        nodeServiceAccount=st.just("gpu-nodes@lab-project.iam.gserviceaccount.com"),
        rbacSecurityGroup=st.just("gke-security-groups@example.com"),
        binaryAuthorization=flags,
        fleetMembership=flags,
        costAllocation=flags,
    )
    if draw(flags):
        return cluster | fields(draw, mode=st.just("Autopilot"))
    cluster["mode"] = "Standard"
    cluster |= fields(
        draw,
        zones=some_of(ZONES[region], 1),
        systemPool=part(
            machineType=one_of("e2-standard-8", "n2-standard-4"),
            spot=flags,
            totalMinNodeCount=st.integers(1, 3),
            totalMaxNodeCount=st.integers(3, 9),
            diskSizeGb=st.integers(50, 200),
        ),
        imageStreaming=flags,
        multiNetworking=flags,
        storageDrivers=some_of(("PersistentDisk", "Filestore", "GcsFuse", "Lustre", "MultiTierCheckpoints")),
    )
    if role != "manager" and draw(flags):
        cluster["nodeAutoProvisioning"] = _auto_provisioning(draw, region)
    return cluster


def _auto_provisioning(draw: Draw, region: str) -> Data:
    limits: list[Data] = [
        {"resourceType": name, **fields(draw, minimum=st.integers(0, 9)), "maximum": NEVER_ENOUGH * 1000}
        for name in ("cpu", "memory", "nvidia-l4", "nvidia-tesla-t4")
    ]
    return {
        "resourceLimits": limits,
        **fields(draw, zones=some_of(ZONES[region]), autoscalingProfile=one_of("OPTIMIZE_UTILIZATION", "BALANCED")),
    }


def _maintenance(draw: Draw) -> Data:
    exclusions: list[Data] = [
        {"name": "year-end", "start": "2026-12-20T00:00:00Z", "end": "2027-01-04T00:00:00Z"},
        {
            "name": "launch",
            "start": "2027-02-01T00:00:00Z",
            "end": "2027-06-01T00:00:00Z",
            "scope": draw(one_of("NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES")),
        },
        {
            "name": "version",
            "start": "2026-11-01T00:00:00Z",
            "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
            "scope": "NO_MINOR_UPGRADES",
        },
    ]
    window = {"start": "2026-01-03T00:00:00Z", "end": "2026-01-04T00:00:00Z", "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU"}
    return {**window, **fields(draw, exclusions=some_of(exclusions))}


def network(draw: Draw, clusters: Sequence[Data]) -> Data:
    """The section `network`, or nothing."""
    regions = sorted({cluster["region"] for cluster in clusters})
    single = [region for region in regions if sum(cluster["region"] == region for cluster in clusters) == 1]
    if draw(flags):
        return {"network": _existing_network(draw, regions, single)}
    result = fields(
        draw,
        name=one_of("batch-vpc"),
        ranges=_ranges(regions, "172.20.{number}.0/24"),
        podRanges=_ranges(regions, "172.{number}.0.0/16", 24),
        serviceRanges=_ranges(single, "192.168.{number}.0/24"),
    )
    if draw(flags):
        networks = [{"name": "office", "cidr": "203.0.113.0/24"}, {"name": "runners", "cidr": "198.51.100.0/24"}]
        result |= {"controlPlaneAccess": "AuthorizedNetworks", "authorizedNetworks": draw(some_of(networks, 1))}
    elif draw(flags):
        result["controlPlaneAccess"] = "DnsEndpoint"
    return {"network": result} if result else {}


def _existing_network(draw: Draw, regions: Sequence[str], single: Sequence[str]) -> Data:
    subnets = {}
    for number, region in enumerate(regions):
        subnets[region] = {
            "name": f"subnet-{number}",
            "podRangeName": "pods",
            **fields(draw, cidr=one_of("10.1.0.0/20")),
        }
        subnets[region] |= fields(draw, podCidr=one_of("10.4.0.0/14"))
        if region in single:
            subnets[region] |= fields(draw, serviceRangeName=one_of("services"))
    return {"existing": {"name": "shared", "subnets": subnets, **fields(draw, project=one_of("network-host"))}}


def _ranges(regions: Sequence[str], text: str, first: int = 0) -> st.SearchStrategy[Data]:
    ranges = {region: text.format(number=number) for number, region in enumerate(regions, first)}
    return some_of(list(ranges)).map(lambda chosen: {region: ranges[region] for region in chosen})


def reserved_capacity(draw: Draw, clusters: Sequence[Data]) -> Data:
    """The sections `reservations`, `futureReservations` and `commitments`; each in a zone of some cluster."""
    zone = ZONES[draw(one_of(*(cluster["region"] for cluster in clusters)))][0]
    region = zone.rpartition("-")[0]
    shared = one_of(["123456789012"], ["other-project"], [])
    reservation = {"name": "l4-kept", "zone": zone, "machineType": "g2-standard-24", "count": NEVER_ENOUGH}
    reservation |= fields(draw, localSsdCount=one_of(0), sharedWith=shared, purpose=one_of("primary", "backup"))
    future = {
        "name": "l4-booked",
        "zone": zone,
        "machineType": "g2-standard-24",
        "count": NEVER_ENOUGH,
        "start": "2027-03-01T00:00:00Z",
        "duration": "336h",
        **fields(draw, planningStatus=one_of("DRAFT", "SUBMITTED"), sharedWith=shared),
    }
    commitment = {
        "name": "l4-year",
        "region": region,
        "plan": draw(one_of("TWELVE_MONTH", "THIRTY_SIX_MONTH")),
        "resources": [
            {"type": "VCPU", "amount": 96},
            {"type": "ACCELERATOR", "amount": 8, "acceleratorType": "nvidia-l4"},
        ],
        "reservations": ["l4-kept"],
        "confirm": "I-accept-the-cost",
        **fields(draw, type=one_of("GRAPHICS_OPTIMIZED")),
    }
    attached = {"machineType": "n1-standard-8", "accelerator": {"type": "nvidia-tesla-t4", "count": 1}}
    kept: Data = {"name": "t4-kept", "zone": zone, **attached, "count": 1, "purpose": "backup"}
    result: Data = {}
    if draw(flags):
        result["reservations"] = [reservation, *([kept] if draw(flags) else [])]
        result |= fields(draw, commitments=st.just([commitment]))
    return result | fields(draw, futureReservations=st.just([future]))
