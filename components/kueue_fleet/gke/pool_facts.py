"""What the rules of GKE for one node pool look at, as plain values.

The fleet file, the rehearsal and the policy pack each read `PoolFacts` from what they have; `pool_rules` judges them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
"""Key of the affinity to a reservation, as Compute Engine has it."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs that a pool asks for on each node; None for what it leaves to the machine type."""

    type: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """A node pool as GKE is asked for it; what a pool does not say has the default here."""

    machine_type: str = ""
    gpus: tuple[Gpus, ...] = ()
    region: str = ""
    """The cluster's region."""
    zones: tuple[str, ...] = ()
    """Zones of the nodes; empty where GKE chooses them."""
    zone_count: int = 0
    """In how many zones nodes are, GKE's choice included."""
    node_count: int | None = None
    """Nodes in each zone, fixed."""
    initial_node_count: int | None = None
    """Nodes in each zone at the start."""
    autoscaling: bool = False
    limits_in_total: bool = False
    """Whether autoscaling has limits for all zones together."""
    limits_by_zone: bool = False
    """Whether autoscaling has limits for each zone."""
    least_nodes: int = 0
    """Autoscaling's minimum, in all zones together."""
    most_nodes: int = 0
    """Autoscaling's maximum, in all zones together."""
    location_policy: str | None = None
    """ANY or BALANCED; None: GKE's choice."""
    queued: bool = False
    """Whether nodes come only for ProvisioningRequests."""
    flex_start: bool = False
    spot: bool = False
    """Whether nodes are Spot VMs, or preemptible ones."""
    max_run_duration: str | None = None
    """How long a node lives, as it is written."""
    max_run_seconds: float | None = None
    """The same in seconds; None where that is not a duration."""
    reservation_type: str | None = None
    """NO_RESERVATION, ANY_RESERVATION, SPECIFIC_RESERVATION; None: whatever Compute Engine does."""
    reservation_key: str | None = None
    reservations: tuple[str, ...] = ()
    compact: bool = False
    network_profile: str | None = None
    """How GKE makes the networks of the accelerators; None: it makes none."""
    tpu_topology: str | None = None
    """The topology that is asked for, of a multi-host TPU slice; None: that of one node."""
    blue_green: bool = False
    """Whether upgrades are blue-green, not surge upgrades."""
    max_surge: int | None = None
    max_unavailable: int | None = None
    auto_repair: bool = True
    auto_upgrade: bool = True
    release_channel: bool = True
    """Whether the cluster is on a release channel."""
    disk_type: str | None = None
    ephemeral_local_ssds: int = 0
    """Local SSDs for ephemeral storage."""
    block_local_ssds: int = 0
    """Local SSDs as raw block devices."""
    labels: tuple[str, ...] = ()
    """Keys of the pool's own node labels."""
    taints: tuple[tuple[str, str], ...] = ()
    """Key and effect of the pool's own taints, the effect as Kubernetes has it."""
    unknown: frozenset[str] = field(default=frozenset())
    """Names of the facts that are not known yet; no rule reads their values."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What breaks a rule."""

    fact: str
    """Name of the fact of `PoolFacts`; `gpus.type` and `gpus.count` for those of the GPUs."""
    wrong: str
    """What is wrong, with the offending value."""
    fix: str
    """What to do, as an instruction."""
    index: int | None = None
    """Which one, of a fact that is a list."""


class UnknownFactError(Exception):
    """A rule asked for a fact that is not known yet."""


def guarded(pool: PoolFacts) -> PoolFacts:
    """`pool` to read from; a fact that is not known raises `UnknownFactError`."""
    return cast("PoolFacts", _Guarded(pool)) if pool.unknown else pool


class _Guarded:
    def __init__(self, pool: PoolFacts) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        if name in self._pool.unknown:
            raise UnknownFactError(name)
        return getattr(self._pool, name)
