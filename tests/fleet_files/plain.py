"""Fleets with a worker outside GKE: drawn ones of GKE, and one worker more with a flavor and quota of its own."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from tests.fleet_files.drawing import Data, Draw, fields, flags, one_of
from tests.fleet_files.files import fleet_files

PARIS: Final = "paris"
_PRODUCT: Final = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
_AMOUNTS: Final = {"nvidia.com/gpu": 8, "cpu": 96, "memory": "800Gi"}
_PLACED: Final = ("flavors", "topologies", "clusterQueues", "admissionChecks", "storage")


@st.composite
def mixed_files(draw: Draw) -> Data:
    """The data of a file without errors, with the worker `paris`; entries of others stay where they were."""
    data = draw(fleet_files().filter(_has_tokens))
    before = [cluster["name"] for cluster in data["clusters"] if cluster["role"] != "manager"]
    for entry in (entry for section in _PLACED for entry in data.get(section, ())):
        if "nodePool" not in entry:  # It is where its pool is.
            entry.setdefault("clusters", list(before))
    connection = {"server": "https://k8s.paris.example:6443"} | fields(
        draw,
        context=one_of("admin@paris"),
        tlsServerName=one_of("kubernetes"),
        proxyUrl=one_of("http://proxy.example:3128"),
    )
    amounts = {"allocatable": _AMOUNTS, "labels": _PRODUCT}
    nodes = {"name": "dgx", "count": draw(st.integers(1, 3)), **amounts, **fields(draw, pricePerHour=one_of(0, 9.5))}
    paris: Data = {"name": PARIS, "role": "worker", "kubernetes": connection}
    paris |= fields(
        draw,
        location=one_of("europe-west9"),
        nodes=st.just([nodes]),
        deletionProtection=flags,
        podMonitors=one_of({}, {"labels": {"release": "prometheus"}}),
    )
    data["clusters"].insert(draw(st.integers(0, len(data["clusters"]))), paris)
    if "workers" in data["multiKueue"]:
        data["multiKueue"]["workers"].append(PARIS)
    data.setdefault("flavors", []).append({"name": "dgx.paris", "nodeLabels": _PRODUCT, "clusters": [PARIS]})
    quotas = [{"name": name, "nominalQuota": amount} for name, amount in _AMOUNTS.items()]
    groups = [{"coveredResources": list(_AMOUNTS), "flavors": [{"name": "dgx.paris", "resources": quotas}]}]
    queue = {"name": "paris-only", "namespaceSelector": {}, "resourceGroups": groups, "clusters": [PARIS]}
    data.setdefault("clusterQueues", []).append(queue)
    return data


def mixed_fleets() -> st.SearchStrategy[FleetSpec]:
    """The same, parsed."""
    return mixed_files().map(parse_fleet)


def _has_tokens(data: Data) -> bool:
    return bool(data.get("multiKueue", {}).get("credentials", {}).get("type") == "ServiceAccountToken")
