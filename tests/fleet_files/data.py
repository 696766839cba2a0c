"""The data of teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from tests.fleet_files.clusters import ZONES
from tests.fleet_files.drawing import Data, Draw, fields, flags, named, one_of, part, some_of

_DRIVERS: Final = {
    "gcsFuse": "GcsFuse",
    "filestore": "Filestore",
    "lustre": "Lustre",
    "hyperdiskMl": "PersistentDisk",
    "multiTierCheckpoints": "MultiTierCheckpoints",
}
_USUAL: Final = ("PersistentDisk", "Filestore", "GcsFuse")


def storage(draw: Draw, teams: Sequence[Data], clusters: Sequence[Data], pools: Sequence[Data]) -> list[Data]:
    """Up to one entry of each kind, on clusters that have its driver."""
    entries = []
    for kind in draw(some_of(list(_DRIVERS))):
        bucket = kind in ("gcsFuse", "multiTierCheckpoints")
        who = [team["name"] for team in teams if not bucket or _has_account(team)]
        where = [item for item in clusters if _can_mount(item, kind)]
        if who and where and (kind != "multiTierCheckpoints" or pools):
            entries.append(_entry(draw, kind, who, where, pools))
    return entries


def _has_account(team: Data) -> bool:
    return "googleServiceAccount" in team or "existingGoogleServiceAccount" in team


def _can_mount(cluster: Data, kind: str) -> bool:
    if cluster["role"] == "manager" or "project" in cluster:
        return False
    if kind == "multiTierCheckpoints" and cluster.get("mode") != "Standard":
        return False
    return bool(cluster.get("existing")) or _DRIVERS[kind] in cluster.get("storageDrivers", _USUAL)


def _entry(draw: Draw, kind: str, teams: Sequence[str], clusters: Sequence[Data], pools: Sequence[Data]) -> Data:
    where = [cluster for cluster in clusters if cluster["name"] in draw(some_of(named(clusters), 1))]
    where = where or list(clusters)
    regions = sorted({cluster["region"] for cluster in where})
    return {
        "name": kind.lower(),
        "teams": draw(some_of(teams, 1)),
        "clusters": named(where),
        "volume": {"type": kind, **draw(_volume(kind, regions, pools))},
        **fields(draw, readOnly=flags, mountOptions=one_of(["implicit-dirs", "uid=1000"])),
    }


def _volume(kind: str, regions: Sequence[str], pools: Sequence[Data]) -> st.SearchStrategy[Data]:
    some = {region: f"data-of-{region}" for region in regions}
    buckets = {"location": one_of("US", regions[0]), "hierarchicalNamespace": flags, "existing": one_of(some)}
    if kind == "gcsFuse":
        # Outside of a team's regions it would be refused.
        return part(**{**buckets, "location": st.just(regions[0])})
    if kind == "multiTierCheckpoints":
        needed = {
            "nodePool": one_of(*named(pools)),
            "inMemoryVolumeSize": one_of("64Gi"),
            "projectNumber": one_of("123456789012"),
        }
        return st.fixed_dictionaries(needed, optional={**buckets, "location": st.just(regions[0])})
    zones = one_of([ZONES[region][0] for region in regions])
    if kind == "hyperdiskMl":
        source = st.one_of(
            st.fixed_dictionaries({"snapshot": st.just("s")}), st.fixed_dictionaries({"image": st.just("i")})
        )
        rest = st.fixed_dictionaries(
            {"capacityGib": st.integers(4, 999)}, optional={"zones": zones, "existing": one_of(some)}
        )
        return st.tuples(source, rest).map(lambda both: {**both[0], **both[1]})
    servers = {
        region: {"name": f"s-{region}", "location": ZONES[region][0], "address": "10.1.2.3", "share": "vol1"}
        for region in regions
    }
    common = {"zones": zones, "existing": one_of(servers)}
    if kind == "filestore":
        size = one_of(10240)
        zonal = st.fixed_dictionaries({"capacityGib": size}, optional={"tier": one_of("ZONAL"), **common})
        regional = {"capacityGib": size, "tier": one_of("REGIONAL", "ENTERPRISE")}
        return zonal | st.fixed_dictionaries(regional, optional={"existing": common["existing"]})
    return st.fixed_dictionaries(
        {"capacityGib": one_of(72000)}, optional={"perUnitStorageThroughput": one_of(1000, 125), **common}
    )
