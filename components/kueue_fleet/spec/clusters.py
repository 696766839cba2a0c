"""Clusters, their network, and what is installed on them.

In: the sections clusters, network, kueue, jobSet, multiKueue of the file. Out: frozen models with the rules of GKE's
names and places, and the defaults of the installation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from kueue_fleet.spec import syntax
from kueue_fleet.spec.base import Count, DnsLabel, DnsSubdomain, Flag, RuledModel, SpecModel, Text, syntax_of
from kueue_fleet.spec.configuration import KueueConfiguration
from kueue_fleet.spec.duration import Duration
from kueue_fleet.spec.problem import Problem, syntax_problems

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"

GkeClusterName = Annotated[Text, syntax_of(syntax.gke_cluster_name)]
Region = Annotated[Text, syntax_of(syntax.region)]
Ipv4Range = Annotated[Text, syntax_of(syntax.ipv4_range)]
Zone = Annotated[Text, syntax_of(syntax.zone)]
ProjectId = Annotated[Text, syntax_of(syntax.project_id)]
GcpLabelKey = Annotated[Text, syntax_of(syntax.gcp_label_key)]
GcpLabelValue = Annotated[Text, syntax_of(syntax.gcp_label_value)]
Version = Annotated[Text, syntax_of(syntax.version)]
Chart = Annotated[Text, Field(min_length=1)]


class KueueInstallation(SpecModel):
    """How Kueue is installed on every cluster."""

    version: Version = "0.19.2"
    """Version of the chart and of Kueue; the fleet's rules are those of 0.19.2."""
    chart: Chart = "oci://registry.k8s.io/kueue/charts/kueue"
    """Reference of the Helm chart; a mirror or a path works too."""
    namespace: DnsLabel = "kueue-system"
    """Where Kueue runs, and where the manager keeps its workers' credentials."""
    configuration: KueueConfiguration = Field(default_factory=KueueConfiguration)
    """Kueue's own Configuration, for all clusters."""


class ClusterKueue(SpecModel):
    """What of Kueue is different on one cluster."""

    configuration: KueueConfiguration = Field(default_factory=KueueConfiguration)
    """Merged over the fleet's: maps are merged, lists and scalars replaced."""


class JobSetInstallation(SpecModel):
    """How JobSet is installed on every cluster."""

    enabled: Flag = True
    """Default true."""
    version: Version = "0.11.0"
    """Version of the chart and of JobSet."""
    chart: Chart = "oci://registry.k8s.io/jobset/charts/jobset"
    """Reference of the Helm chart; a mirror or a path works too."""
    namespace: DnsLabel = "jobset-system"
    """Where JobSet runs."""


class Network(SpecModel):
    """The VPC network of all clusters."""

    name: GkeClusterName | None = None
    """Default: the fleet's name."""
    ranges: Mapping[Region, Ipv4Range] = Field(default_factory=dict)
    """Range of the nodes by region, such as `us-east4: 10.150.0.0/20`. Default: that of Google's auto-mode networks."""


class ClusterEntry(RuledModel):
    """One GKE cluster. Its name is also the name of its kubeconfig context."""

    name: GkeClusterName
    role: Literal["manager", "worker", "standalone"]
    """manager: takes the jobs and dispatches them; worker: runs them; standalone: a fleet of one cluster."""
    region: Region
    zones: tuple[Zone, ...] = ()
    """Zones of the nodes, Standard only; default: GKE's choice."""
    mode: Literal["Autopilot", "Standard"] = "Autopilot"
    """Who manages the nodes: GKE, or the pools of this file."""
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"] = "REGULAR"
    """GKE's release channel; default REGULAR."""
    kueue: ClusterKueue = Field(default_factory=ClusterKueue)
    """What of Kueue is different on this cluster."""

    @property
    def runs_jobs(self) -> bool:
        """Whether pods of jobs run here: on every cluster but the manager."""
        return self.role != "manager"

    def own_problems(self) -> Iterator[Problem]:
        """Zones belong to Standard clusters and to the region."""
        if self.zones and self.mode == "Autopilot":
            yield Problem(
                "zones", f"{', '.join(self.zones)} given, but mode is Autopilot", "remove zones or set mode to Standard"
            )
        for index, zone in enumerate(self.zones):
            if zone.rpartition("-")[0] != self.region:
                yield Problem(
                    f"zones[{index}]",
                    f"{zone} is not in region {self.region}",
                    f"name zones of {self.region}, or change region",
                )
            elif zone in self.zones[:index]:
                yield Problem(f"zones[{index}]", f"{zone} is listed twice", "list each zone once")


def _day(value: object) -> object:
    """YAML parsers that know dates hand over midnight of that day."""
    return value[:10] if isinstance(value, str) and value[10:] in ("T00:00:00Z", " 00:00:00 +0000 UTC") else value


class ServiceAccountToken(SpecModel):
    """The manager holds a token of a service account of each worker."""

    type: Literal["ServiceAccountToken"]
    rotation: DnsLabel
    """Serial of the token, such as "2026-11"; a new one makes a new token and drops the old."""
    rotate_by: Annotated[date, BeforeValidator(_day)]
    """Day by which the token should have been replaced; `check` and `pulumi up` warn from 14 days before."""


class ClusterProfile(SpecModel):
    """The manager reaches each worker through a ClusterProfile of the worker's name (alpha in Kueue)."""

    type: Literal["ClusterProfile"]


class IncrementalDispatcher(SpecModel):
    """Settings of the Incremental dispatcher."""

    step_size: Annotated[Count, Field(ge=1)] = 3
    """Workers added per round of five minutes; default 3."""


class ExternalDispatcher(SpecModel):
    """Settings of an External dispatcher."""

    name: Annotated[Text, Field(min_length=1)]
    """Name under which the dispatcher is known to Kueue."""


class MultiKueue(RuledModel):
    """How the manager dispatches jobs to the workers."""

    admission_check_name: DnsSubdomain = "multikueue"
    """Name of the AdmissionCheck."""
    config_name: DnsLabel = "multikueue"
    """Name of the MultiKueueConfig."""
    workers: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)] | None = None
    """The workers, most preferred first; default: in the order of `clusters`."""
    dispatcher: Literal["AllAtOnce", "Incremental", "External"] = "AllAtOnce"
    """AllAtOnce (default): every worker may take a job; Incremental: more and more of them; External: someone says."""
    incremental: IncrementalDispatcher | None = None
    external: ExternalDispatcher | None = None
    manager_flavor_name: DnsSubdomain = "multikueue"
    """The manager's only flavor, without labels, that derived quotas are on."""
    headroom_percent: Annotated[Count, Field(le=1000)] = 0
    """How much more than the sum of the workers' quotas the manager offers, against fragmentation; default 0."""
    queues: tuple[Text, ...] | None = None
    """Queues that are dispatched; default: every queue that is on a worker."""
    gc_interval: Duration | None = None
    """How often remote objects without a local one are removed; default 1m; 0s: never."""
    origin: Text | None = None
    """Mark on remote objects; two managers that share a worker need different ones; default multikueue."""
    worker_lost_timeout: Duration | None = None
    """How long a job stays with a worker that does not answer; default 15m."""
    credentials: Annotated[ServiceAccountToken | ClusterProfile, Field(discriminator="type")]
    """How the manager reaches the workers."""

    @property
    def dispatcher_name(self) -> str:
        """The dispatcher by the name Kueue's Configuration has for it."""
        if self.dispatcher == "External" and self.external:
            return self.external.name
        return INCREMENTAL if self.dispatcher == "Incremental" else ALL_AT_ONCE

    def own_problems(self) -> Iterator[Problem]:
        """Settings fit the dispatcher; validateMultiKueue of pkg/config/validation.go."""
        if self.incremental is not None and self.dispatcher != "Incremental":
            yield Problem(
                "incremental",
                f"set, but dispatcher is {self.dispatcher}",
                "set dispatcher to Incremental or remove this",
            )
        if self.external is not None and self.dispatcher != "External":
            yield Problem(
                "external", f"set, but dispatcher is {self.dispatcher}", "set dispatcher to External or remove this"
            )
        if self.external is None and self.dispatcher == "External":
            yield Problem(
                "external", "not set, but dispatcher is External", "set external.name to the dispatcher's name"
            )
        for path, value in (("gcInterval", self.gc_interval), ("workerLostTimeout", self.worker_lost_timeout)):
            if value is not None and value.nanoseconds < 0:
                yield Problem(path, f"{value} is negative", "write 0s or longer")
        if self.origin is not None:
            yield from syntax_problems("origin", self.origin, syntax.label_value)
        for field, names in (("workers", self.workers or ()), ("queues", self.queues or ())):
            for index, name in enumerate(names):
                if name in names[:index]:
                    yield Problem(f"{field}[{index}]", f"{name} is listed twice", "list each name once")
