"""Reads `PoolFacts` from the inputs of `gcp:container/nodePool:NodePool`, and names the property of each fact.

The rehearsal and the policy pack read pools with it. What an input leaves out has the default of the provider, as in
terraform-provider-google 8, or GKE's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

from kueue_fleet.gke.machines import DEFAULT_MACHINE_TYPE
from kueue_fleet.gke.pool_facts import Breach, Gpus, PoolFacts
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU

EFFECTS: Final[Mapping[str, str]] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
"""Effects of taints in Google's words, and in those of Kubernetes."""
_PROPERTIES: Final[Mapping[str, str]] = {
    "machine_type": "nodeConfig.machineType",
    "gpus": "nodeConfig.guestAccelerators",
    "zones": "nodeLocations",
    "node_count": "nodeCount",
    "initial_node_count": "initialNodeCount",
    "autoscaling": "autoscaling",
    "location_policy": "autoscaling.locationPolicy",
    "spot": "nodeConfig.spot",
    "max_run_duration": "nodeConfig.maxRunDuration",
    "reservation_type": "nodeConfig.reservationAffinity.consumeReservationType",
    "reservations": "nodeConfig.reservationAffinity",
    "compact": "placementPolicy.type",
    "tpu_topology": "placementPolicy.tpuTopology",
    "network_profile": "networkConfig.acceleratorNetworkProfile",
    "max_surge": "upgradeSettings.maxSurge",
    "auto_repair": "management.autoRepair",
    "auto_upgrade": "management.autoUpgrade",
    "disk_type": "nodeConfig.diskType",
    "ephemeral_local_ssds": "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount",
    "block_local_ssds": "nodeConfig.localNvmeSsdBlockConfig.localSsdCount",
    "taints": "nodeConfig.taints",
}


def property_path(pool: PoolFacts, breach: Breach) -> str:
    """The property that a breach is about."""
    at = "" if breach.index is None else f"[{breach.index}]"
    match breach.fact:
        case "least_nodes" | "most_nodes":
            end = "Min" if breach.fact == "least_nodes" else "Max"
            each = pool.limits_by_zone and not pool.limits_in_total
            return f"autoscaling.{end.lower()}NodeCount" if each else f"autoscaling.total{end}NodeCount"
        case "labels":
            return f"nodeConfig.labels[{pool.labels[breach.index or 0]}]"
        case "gpus.type" | "gpus.count":
            return f"{_PROPERTIES['gpus']}{at}.{breach.fact.partition('.')[2]}"
        case fact:
            return _PROPERTIES[fact] + at


_FACTS: Final = frozenset(one.name for one in fields(PoolFacts)) - {"unknown"}


class _NotKnownError(Exception):
    """An input depends on something that does not exist yet."""


class _Inputs:
    """The inputs of a pool, of which some may not be known."""

    def __init__(self, inputs: Mapping[str, Any], is_known: Callable[[Any], bool]) -> None:
        self._inputs = dict(inputs)
        self._is_known = is_known

    def get(self, path: str) -> Any:
        """The value at a dotted path; None where there is none. Raises _NotKnownError."""
        value: Any = self._inputs
        for key in path.split("."):
            if isinstance(value, list):
                # Pulumi has some objects of Terraform that occur once as lists.
                value = self._certain(value[0]) if value else None
            if not isinstance(value, dict):
                return None
            value = self._certain(value.get(key))
        return value

    def _certain(self, value: Any) -> Any:
        if not self._is_known(value):
            raise _NotKnownError
        return value

    def text(self, path: str) -> str | None:
        return _text(self.get(path))

    def flag(self, path: str, default: bool = False) -> bool:
        value = self.get(path)
        return default if value is None else str(value).lower() == "true"

    def whole(self, path: str) -> int | None:
        return _whole(self.get(path))

    def items(self, path: str) -> list[Any]:
        """Items of a list, all of whose parts are known; of a single object, itself."""
        value = self.get(path)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        for item in listed:
            parts = self._certain(item).values() if isinstance(item, dict) else [item]
            for part in parts:
                self._certain(part)
        return listed


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: Any) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


def read_pool(
    inputs: Mapping[str, Any],
    *,
    region: str | None,
    zones: Sequence[str] | None,
    zone_count: int | None,
    release_channel: bool | None,
    is_known: Callable[[Any], bool] = lambda _: True,
) -> PoolFacts:
    """The facts of a declared pool.

    `region`, `zones` and `release_channel` are the cluster's, and `zone_count` is that of a pool that names no zones;
    None: not known. `is_known` is false for inputs that a preview does not know.
    """
    given = _Inputs(inputs, is_known)
    of_cluster = {"region": region, "release_channel": release_channel}
    values: dict[str, Any] = {fact: value for fact, value in of_cluster.items() if value is not None}
    for fact, read in _READERS.items():
        with suppress(_NotKnownError):
            values[fact] = read(given)
    if values.get("zones"):
        values["zone_count"] = len(values["zones"])
    elif "zones" in values:
        del values["zones"]
        own = {"zones": None if zones is None else tuple(zones), "zone_count": zone_count}
        values |= {fact: value for fact, value in own.items() if value is not None}
    with suppress(_NotKnownError):
        values |= _limits(given, values.get("zone_count"))
    return PoolFacts(**values, unknown=_FACTS - values.keys())


def _limits(given: _Inputs, zones: int | None) -> dict[str, Any]:
    """Autoscaling's limits for all zones; those that are given for each zone are multiplied."""
    if given.get("autoscaling") is None:
        return dict.fromkeys(("limits_in_total", "limits_by_zone"), False) | {"least_nodes": 0, "most_nodes": 0}
    least, most = given.whole("autoscaling.totalMinNodeCount"), given.whole("autoscaling.totalMaxNodeCount")
    by_zone = [given.whole(f"autoscaling.{end}NodeCount") or 0 for end in ("min", "max")]
    found: dict[str, Any] = {"limits_in_total": bool(least or most), "limits_by_zone": any(by_zone)}
    for fact, total, each in (("least_nodes", least, by_zone[0]), ("most_nodes", most, by_zone[1])):
        if found["limits_in_total"] or not each:
            found[fact] = total or 0
        elif zones is not None:
            found[fact] = each * zones
    return found


def _gpus(given: _Inputs) -> tuple[Gpus, ...]:
    listed = [one for one in given.items("nodeConfig.guestAccelerators") if isinstance(one, dict)]
    found = (Gpus(_text(one.get("type")), _whole(one.get("count"))) for one in listed)
    # The provider asks GKE for none where there are 0.
    return tuple(gpus for gpus in found if gpus.count != 0)


def _taints(given: _Inputs) -> tuple[tuple[str, str], ...]:
    listed = [one for one in given.items("nodeConfig.taints") if isinstance(one, dict)]
    return tuple((str(one.get("key")), EFFECTS.get(str(one.get("effect")), str(one.get("effect")))) for one in listed)


def _labels(given: _Inputs) -> tuple[str, ...]:
    labels = given.get("nodeConfig.labels")
    return tuple(map(str, labels)) if isinstance(labels, dict) else ()


def _reservation_type(given: _Inputs) -> str | None:
    kind = given.text("nodeConfig.reservationAffinity.consumeReservationType")
    return None if kind == "UNSPECIFIED" else kind


def _tpu_topology(given: _Inputs) -> str | None:
    policy, machine = given.text("placementPolicy.policyName"), given.text("nodeConfig.machineType") or ""
    if policy is not None and machine.startswith(WORKLOAD_POLICY_TPU):
        raise _NotKnownError  # The workload policy has it, a resource of its own.
    return given.text("placementPolicy.tpuTopology")


def _run_seconds(given: _Inputs) -> float | None:
    text = given.text("nodeConfig.maxRunDuration") or ""
    return float(text[:-1]) if re.fullmatch(r"[0-9]+s", text) else None


def _block_ssds(given: _Inputs) -> int:
    paths = ("nodeConfig.localNvmeSsdBlockConfig.localSsdCount", "nodeConfig.localSsdCount")
    return sum(given.whole(path) or 0 for path in paths)


_READERS: Final[Mapping[str, Callable[[_Inputs], Any]]] = {
    "machine_type": lambda given: given.text("nodeConfig.machineType") or DEFAULT_MACHINE_TYPE,
    "gpus": _gpus,
    "zones": lambda given: tuple(map(str, given.items("nodeLocations"))),
    "node_count": lambda given: given.whole("nodeCount"),
    "initial_node_count": lambda given: given.whole("initialNodeCount"),
    "autoscaling": lambda given: given.get("autoscaling") is not None,
    "location_policy": lambda given: given.text("autoscaling.locationPolicy"),
    "queued": lambda given: given.flag("queuedProvisioning.enabled"),
    "flex_start": lambda given: given.flag("nodeConfig.flexStart"),
    "spot": lambda given: given.flag("nodeConfig.spot") or given.flag("nodeConfig.preemptible"),
    "max_run_duration": lambda given: given.text("nodeConfig.maxRunDuration"),
    "max_run_seconds": _run_seconds,
    "reservation_type": _reservation_type,
    "reservation_key": lambda given: given.text("nodeConfig.reservationAffinity.key"),
    "reservations": lambda given: tuple(map(str, given.items("nodeConfig.reservationAffinity.values"))),
    "compact": lambda given: given.text("placementPolicy.type") == "COMPACT",
    "tpu_topology": _tpu_topology,
    "network_profile": lambda given: given.text("networkConfig.acceleratorNetworkProfile"),
    "blue_green": lambda given: given.text("upgradeSettings.strategy") == "BLUE_GREEN",
    "max_surge": lambda given: given.whole("upgradeSettings.maxSurge"),
    "max_unavailable": lambda given: given.whole("upgradeSettings.maxUnavailable"),
    "auto_repair": lambda given: given.flag("management.autoRepair", default=True),
    "auto_upgrade": lambda given: given.flag("management.autoUpgrade", default=True),
    "disk_type": lambda given: given.text("nodeConfig.diskType") or given.text("nodeConfig.bootDisk.diskType"),
    "ephemeral_local_ssds": lambda given: given.whole("nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount") or 0,
    "block_local_ssds": _block_ssds,
    "labels": _labels,
    "taints": _taints,
}
"""How each fact is read, apart from the cluster's and those of autoscaling's limits."""
