"""The configuration of the deployed controller: the parts of the fleet that it decides by.

What it finds in the clusters (queues, quotas, who is connected) is not in it.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from kueue_admission.kernel.base import Flag, Number, SpecModel, Text
from kueue_admission.kernel.duration import Duration
from kueue_admission.kernel.versions import minor_of
from kueue_admission.releases import DEFAULT_VERSION
from kueue_fleet.settings.budgets import TeamBudget
from kueue_fleet.settings.dispatch import AdmissionControllerArgs, FlavorPatience, History
from kueue_fleet.settings.fleet_quotas import FleetQuotas
from kueue_fleet.settings.tokens import CONTROLLER_NAME, WorkerToken

DEFAULT_ORIGIN: Final = "multikueue"
"""Kueue's own default. Source: kueue@v0.19.2 apis/config/v1beta2/defaults.go."""
_DEFAULT_RELEASE: Final = minor_of(DEFAULT_VERSION)
LEDGER_NAME: Final = f"{CONTROLLER_NAME}-budgets"
"""Name of the ConfigMap in which the controller keeps what teams used of their budgets, in its namespace."""
HISTORY_FOLDER: Final = "/var/lib/kueue-fleet/history"
"""Where the controller has the volume of its history."""
LEASE_NAME: Final = CONTROLLER_NAME
"""Name of the Lease that the leader holds, in the controller's namespace."""


class WorkerConfiguration(SpecModel):
    """A worker cluster."""

    name: Text
    """Name of the cluster."""
    region: Text
    """Its region."""
    kueue: Mapping[str, Any]
    """Kueue's Configuration there, as far as it decides."""
    kueue_release: Text = _DEFAULT_RELEASE
    """The minor release of Kueue there, whose defaults apply."""


class QueueFallback(SpecModel):
    """How long jobs of a queue wait for nodes of its flavors."""

    flavors: tuple[Text, ...]
    """Every flavor of the queue, in its order."""
    fallback: tuple[FlavorPatience, ...]
    """As in the fleet file."""
    manager_flavors: tuple[Text, ...] = ()
    """Flavors of the manager, where it sends the jobs to workers; they stand for all of the workers', and a job keeps
    them whatever it gives up."""
    backups: tuple[Text, ...] = ()
    """Flavors of reservations that are kept as a backup: for jobs that have given up another flavor."""
    local_queues: tuple[Text, ...] = ()
    """The LocalQueues that lead there, as NAMESPACE/NAME."""


class EnforcedBudgets(SpecModel):
    """Budgets that hold jobs back, and what their use is counted by."""

    cluster: Text
    """The controller's own."""
    teams: Mapping[Text, TeamBudget]
    """Those that are enforced, by team."""
    namespaces: Mapping[Text, Text]
    """The team of each of their namespaces."""
    usd: Mapping[Text, Mapping[Text, Number]]
    """What a GPU, a share of one, or a TPU chip costs for an hour: by cluster, then by flavor; those that have a price.
    """
    interruptible: Mapping[Text, tuple[Text, ...]]
    """By ClusterQueue: the flavors that are left where only interruptible ones are; none: jobs wait."""

    def left_to(self, team: str | None, cluster_queue: str) -> tuple[str, ...]:
        """The flavors of a ClusterQueue that jobs of a team may have over its budget; none: they wait."""
        is_limited = team is not None and self.teams[team].enforce == "interruptibleOnly"
        return self.interruptible.get(cluster_queue, ()) if is_limited else ()


class RecordedFleet(SpecModel):
    """What the controller writes into a history, and where."""

    store: Text
    """gs://BUCKET/PATH, or a folder."""
    settings: History
    """As in the fleet file."""
    home: Text
    """The controller's own cluster."""
    regions: Mapping[Text, Text]
    """Region of each cluster."""
    teams: Mapping[Text, Text]
    """The team of each namespace."""


class ControllerConfiguration(SpecModel):
    """Everything that the controller takes from the fleet."""

    fleet: Text
    """Name of the fleet."""
    namespace: Text
    """Where the Lease is."""
    region: Text = ""
    """Region of the cluster that it runs on, where that runs jobs itself; else empty."""
    asks_in: Text = ""
    """Name of the cluster that it runs on, where the queues of that ask for nodes by ProvisioningRequests; else empty.
    """
    origin: Text
    """Mark on the copies that the manager makes on the workers."""
    dispatches: Flag
    """Whether Kueue leaves the choice of clusters to this controller."""
    controller: AdmissionControllerArgs
    """The section `controller` of the fleet file."""
    workers: tuple[WorkerConfiguration, ...]
    """The workers, most preferred first; those too that get no jobs any more."""
    team_regions: Mapping[Text, tuple[Text, ...]]
    """Regions where a team's jobs may run, by namespace; a namespace that is not there has no such rule."""
    limit_ranges: Mapping[Text, Mapping[str, Any]] = Field(default_factory=dict)
    """The items of LimitRanges, by namespace. Kueue counts with their defaults, and does not write them into Workloads
    (kueue@v0.19.2 pkg/workload/resources.go, AdjustResources)."""
    kueue: Mapping[str, Any]
    """Kueue's Configuration on the manager, as far as it decides."""
    kueue_release: Text = _DEFAULT_RELEASE
    """The minor release of Kueue on the manager."""
    fallback: Mapping[Text, QueueFallback] = Field(default_factory=dict)
    """How long jobs wait for nodes, by ClusterQueue."""
    tokens: tuple[WorkerToken, ...] = ()
    """The tokens by which the workers are reached, to be renewed."""
    token_lifetime: Duration = Duration("168h")
    """How long a new token lives."""
    budgets: EnforcedBudgets | None = None
    """Where teams have budgets that hold jobs back."""
    following: FleetQuotas | None = None
    """The fleet as far as quotas depend on it, where some follow capacity or windows."""
    history: RecordedFleet | None = None
    """Where it writes what happens to jobs."""
