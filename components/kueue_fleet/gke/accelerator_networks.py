"""Networks of GPUs and TPUs beside that of the node, and the rules of GKE for them.

The table is `accelerator_networks.csv`.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/config-auto-net-for-accelerators (one zone; machine
types), https://cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra (DRANET),
https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods (networks of one's own),
https://cloud.google.com/vpc/docs/create-vpc-network-rdma (RDMA: one zone, MTU)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from kueue_fleet.gke.csv_tables import read_table, row_of
from kueue_fleet.gke.labels import DRANET
from kueue_fleet.gke.pool import Breach, Pool

RANGE: Final = "192.168.0.0/16"
"""Addresses of the networks that the fleet makes, of all cards together."""
TCP_MTU: Final = 8244
"""MTU of the networks of GPUDirect-TCPX and TCPXO. Source: GoogleCloudPlatform/cluster-toolkit@10470803
examples/gke-a3-highgpu/gke-a3-highgpu.yaml."""
RDMA_MTU: Final = 8896
"""MTU of a network for RDMA."""


class Card(NamedTuple):
    """A network card of each node, beside the node's own."""

    network: str
    """Name of the object Network by which pods ask for it, as in Google's examples."""
    interface: str
    """What it is called in pods; empty: pods leave it to the node."""
    device_mode: Literal["NetDevice", "RDMA"]
    addresses: str
    """Range of its subnet, where the fleet makes it, within `RANGE`: for 4,000 nodes, for RDMA 2,000."""
    mtu: int | None
    """Of its network; None: Compute Engine's default."""


def cards_of(machine: str) -> tuple[Card, ...]:
    """The cards of a machine type, in the order of the pool's networks; none where they are not known."""
    row = network_of(machine)
    devices, rdma = (int((row or {}).get(column) or 0) for column in ("netDevice", "rdma"))
    if rdma:
        gvnic = Card("gvnic-1", "", "NetDevice", "192.168.128.0/20", None)
        ranges = [f"192.168.{192 + 8 * n}.0/21" for n in range(rdma)]
        return gvnic, *(
            Card(f"rdma-{n}", f"eth{n + 2}", "RDMA", subnet_range, RDMA_MTU) for n, subnet_range in enumerate(ranges)
        )
    ranges = [f"192.168.{16 * n}.0/20" for n in range(devices)]
    return tuple(
        Card(f"vpc{n}", f"eth{n}", "NetDevice", subnet_range, TCP_MTU) for n, subnet_range in enumerate(ranges, 1)
    )


@cache
def accelerator_networks() -> Mapping[str, Mapping[str, str]]:
    """The rows of the table, by the beginning of machine types."""
    return {row["machineTypes"]: row for row in read_table("accelerator_networks")}


def network_of(machine: str) -> Mapping[str, str] | None:
    """What is known of the accelerators' networks of a machine type; None: they have none."""
    return row_of(machine, accelerator_networks())


def has_compute_domains(machine: str) -> bool:
    """Whether NVLink joins the GPUs of several machines, those of one rack."""
    row = network_of(machine)
    return row is not None and row["computeDomains"] == "yes"


def check_network_profile(pool: Pool) -> Iterator[Breach]:
    """The machines have networks that GKE makes, and stand in one zone."""
    profile = pool.network_profile
    if profile is None:
        return
    network = network_of(pool.machine_type)
    if pool.own_networks is not None:
        wrong = f"is set beside {profile}, the profile by which GKE makes networks"
        yield Breach("own_networks", wrong, "keep one of the two")
    if network is None:
        wrong = f"is {profile}, but {pool.machine_type} has no network beside that of the node"
        yield Breach("network_profile", wrong, "remove it")
    elif network["profile"] != "yes":
        yield Breach(
            "network_profile",
            f"is {profile}, but GKE is not known to make the {network['technology']} networks of {pool.machine_type}",
            f"name networks of its own, or use machines of {_listed('profile')}",
        )


def check_cards(pool: Pool) -> Iterator[Breach]:
    """Each network card has a network; of machines whose cards are not known, any number is good."""
    own, cards = pool.own_networks, len(cards_of(pool.machine_type))
    if own is not None and cards and own != cards:
        wrong = f"is {own} networks, but {pool.machine_type} has {cards} network cards beside the node's own"
        yield Breach("own_networks", wrong, f"name {cards} networks, in the order of the cards")


def check_network_zone(pool: Pool) -> Iterator[Breach]:
    """Networks that GKE makes, and those for RDMA, are those of one zone."""
    rdma = pool.own_networks and any(card.device_mode == "RDMA" for card in cards_of(pool.machine_type))
    if (pool.network_profile is not None or rdma) and pool.zone_count != 1:
        zones_text = (
            f"are {', '.join(pool.zones)}" if pool.zones else f"are not set, which means {pool.zone_count} zones"
        )
        which = "for RDMA" if pool.network_profile is None else "of acceleratorNetworkProfile"
        what = f"{zones_text}, but the networks {which} are within one zone"
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
        # DRANET's page has pools with the profile alone; of networks of one's own it says nothing.
        wrong = "is set, but without acceleratorNetworkProfile the nodes have no networks that DRANET can give to pods"
        yield Breach("labels", wrong, "set acceleratorNetworkProfile to auto, or remove it", index)


def _listed(column: str) -> str:
    machine_prefixes = [begin.rstrip("-") for begin, row in accelerator_networks().items() if row[column] == "yes"]
    return ", ".join(machine_prefixes)
