"""Networks of GPUs and TPUs beside that of the node, and the rules of GKE for them.

The table is `accelerator_networks.csv`.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/config-auto-net-for-accelerators (one zone; machine
types), https://cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra (DRANET)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from kueue_fleet.gke.csv_tables import read_table, row_of
from kueue_fleet.gke.labels import DRANET
from kueue_fleet.gke.pool import Breach, Pool


@cache
def accelerator_networks() -> Mapping[str, Mapping[str, str]]:
    """The rows of the table, by the beginning of machine types."""
    return {row["machineTypes"]: row for row in read_table("accelerator_networks")}


def network_of(machine: str) -> Mapping[str, str] | None:
    """What is known of the accelerators' networks of a machine type; None: they have none."""
    return row_of(machine, accelerator_networks())


def check_network_profile(pool: Pool) -> Iterator[Breach]:
    """The machines have networks that GKE makes, and stand in one zone."""
    profile = pool.network_profile
    if profile is None:
        return
    network = network_of(pool.machine_type)
    if network is None:
        wrong = f"is {profile}, but {pool.machine_type} has no network beside that of the node"
        yield Breach("network_profile", wrong, "remove it")
    elif network["profile"] != "yes":
        yield Breach(
            "network_profile",
            f"is {profile}, but GKE is not known to make the {network['technology']} networks of {pool.machine_type}",
            f"remove it, or use machines of {_listed('profile')}",
        )


def check_network_zone(pool: Pool) -> Iterator[Breach]:
    """Networks that GKE makes are those of one zone."""
    if pool.network_profile is not None and pool.zone_count != 1:
        said = f"are {', '.join(pool.zones)}" if pool.zones else f"are not set, which means {pool.zone_count} zones"
        what = f"{said}, but the networks of acceleratorNetworkProfile are within one zone"
        yield Breach("zones", what, "set exactly one zone, and make a pool for each")


def check_dranet(pool: Pool) -> Iterator[Breach]:
    """Pods get by DRANET what the profile made, on machines that it knows."""
    if DRANET not in pool.labels:
        return
    index = list(pool.labels).index(DRANET)
    network = network_of(pool.machine_type)
    if network is None or network["dranet"] != "yes":
        wrong = f"is set, but GKE managed DRANET does not support {pool.machine_type}"
        yield Breach("labels", wrong, f"remove it, or use machines of {_listed('dranet')}", index)
    elif pool.network_profile is None:
        wrong = "is set, but without acceleratorNetworkProfile the nodes have no networks that DRANET can give to pods"
        yield Breach("labels", wrong, "set acceleratorNetworkProfile to auto, or remove it", index)


def _listed(column: str) -> str:
    found = [begin.rstrip("-") for begin, row in accelerator_networks().items() if row[column] == "yes"]
    return ", ".join(found)
