"""What was read of a Google Cloud project, as plain data.

`Facts` has a part for each question. What could not be read is named in `unread`, and its part is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kueue_admission.kernel.form_rules import Fault
from kueue_fleet.fleet_file.projects import HostGrant
from kueue_fleet.preflight.quotas import Metric, QuotaNeed

Part = Literal[
    "apis", "quotas", "machines", "reservations", "addresses", "grants", "permissions", "project", "clusters"
]
"""What a fleet needs of a project, or of a cluster outside GKE; project: that it can be asked at all."""


class Quota(NamedTuple):
    """How much there may be, and how much there is."""

    limit: float
    """Negative: no limit."""
    usage: float | None
    """None: not known."""


def without_preemptible(need: QuotaNeed, quotas: Mapping[Metric, Quota]) -> bool:
    """Whether what NEED has of preemptible quota counts as standard, since the project has no preemptible one."""
    quota = quotas.get(need.metric)
    return need.standard is not None and (quota is None or quota.limit == 0)


class Reservation(NamedTuple):
    """A reservation that exists."""

    zone: str
    status: str
    """READY once its machines are there."""
    machine_type: str
    accelerators: tuple[tuple[str, int], ...]
    """GPUs that are attached to each machine."""
    machines: int
    in_use: int
    specific: bool
    """Whether only those use it that name it."""
    share_type: str
    """LOCAL, SPECIFIC_PROJECTS or ORGANIZATION."""
    shared_with: frozenset[str]
    """Projects, by id or number, as the API has them."""


class Subnet(NamedTuple):
    """A range of a subnet in the fleet's network."""

    name: str
    region: str
    cidr: str
    secondary: str
    """Name of the secondary range; "" for the nodes'."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a project has."""

    not_asked: Fault | None = None
    """Why nothing is known; None: it was asked."""
    enabled_apis: frozenset[str] = frozenset()
    quotas: Mapping[Metric, Quota] = field(default_factory=dict)
    machine_types: frozenset[tuple[str, str]] = frozenset()
    """By zone and name."""
    accelerators: frozenset[tuple[str, str]] = frozenset()
    """By zone and name."""
    reservations: Mapping[tuple[str, str], tuple[Reservation, ...]] = field(default_factory=dict)
    """By project and name; one in each zone."""
    project_number: str = ""
    subnets: tuple[Subnet, ...] | None = None
    """None: the network does not exist."""
    host_grants: frozenset[HostGrant] = frozenset()
    """What the host project of a Shared VPC, or each of the subnets, grants."""
    permissions: frozenset[str] = frozenset()
    unread: Mapping[Part | str, Fault] = field(default_factory=dict)
    """What could not be read, and why: a part, or a part and a region or project, as in `quotas us-east4`."""
