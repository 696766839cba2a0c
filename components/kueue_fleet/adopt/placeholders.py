"""Quotas that stand for "no limit", as tutorials write them: 1000000000 of everything that DWS may bring.

`check` compares quotas with nodes and refuses such a number of GPUs or TPU chips. It becomes what the nodes hold, but
where these come for ProvisioningRequests alone, as such jobs wait for their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.fleet_file.check.pool_quotas import held_by
from kueue_fleet.fleet_file.model.fleet import FleetSpec

_LEAST: Final = Quantity("1M")
"""No fleet has a million of anything that is counted, but for bytes."""
_GIB: Final = 1024**3


def lower_placeholders(data: Data, fleet: FleetSpec) -> Iterator[str]:
    """Lower them in `data`, the file of `fleet`; yields what becomes of each."""
    for queue in data.get("clusterQueues") or ():
        entry = fleet.queue(queue["name"])
        clusters = fleet.clusters_of(entry) if entry is not None else ()
        for group in queue.get("resourceGroups") or ():
            for flavor in group["flavors"]:
                for quota in flavor["resources"]:
                    quantity = quota["nominalQuota"]
                    most = max((_capacity(fleet, flavor["name"], name, quota["name"]) for name in clusters), default=0)
                    if most and _is_placeholder(quota):
                        quota["nominalQuota"] = f"{most // _GIB}Gi" if _in_bytes(quota["name"]) else most
                        yield (
                            f"clusterQueues[{queue['name']}]: nominalQuota of {quota['name']} in flavor "
                            f"{flavor['name']}: {quantity} becomes {quota['nominalQuota']}, what its nodes hold"
                        )


def _is_placeholder(quota: Mapping[str, object]) -> bool:
    amount = Quantity(str(quota["nominalQuota"]))
    return amount >= (Quantity("1000000Gi") if _in_bytes(str(quota["name"])) else _LEAST)


def _in_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage")


def _capacity(fleet: FleetSpec, flavor: str, cluster: str, resource: str) -> int:
    """What the nodes of a flavor on a cluster hold at most; 0 if that is not known, or limits nothing."""
    entry = fleet.flavor(flavor)
    pools = fleet.flavor_nodes(entry, cluster) if entry is not None and flavor in fleet.flavors_on(cluster) else ()
    if all(pool.queued for pool in pools):
        return 0
    amount = held_by(pools, resource) or 0
    return amount // 1000 if resource == "cpu" else amount
