"""Clusters, and how the manager dispatches jobs to workers.

Frozen models with the rules of one entry alone; those between clusters are in `check.clusters`.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import Enum, auto
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from kueue_admission.kernel import syntax
from kueue_admission.kernel.base import Count, DnsLabel, DnsSubdomain, Flag, RuledModel, SpecModel, Text
from kueue_admission.kernel.described import AlsoCalled, Hint
from kueue_admission.kernel.duration import DurationField, OptionalDurationField, duration
from kueue_admission.kernel.form_rules import EXCLUDED, MISSING, NEEDED, OUT_OF_RANGE, listed_twice
from kueue_admission.kernel.given import NOT_GIVEN, Given, ListOf, ListOfText
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.model.cluster_options import NodeAutoProvisioning, SystemPool
from kueue_fleet.fleet_file.model.gcp_names import (
    GkeClusterName,
    GkeVersion,
    GoogleServiceAccountAddress,
    KmsKey,
    ProjectId,
    Region,
    Zone,
)
from kueue_fleet.fleet_file.model.installations import ClusterKueue
from kueue_fleet.fleet_file.model.maintenance import Maintenance
from kueue_fleet.fleet_file.model.observability import PodMonitors
from kueue_fleet.fleet_file.model.plain_clusters import ClusterNodes, KubernetesConnection
from kueue_fleet.fleet_file.model.tagged import Tagged
from kueue_fleet.fleet_file.model.zone_rules import zones_in_region
from kueue_fleet.fleet_file.rules.clusters import KEY_REGION, SECURITY_GROUP
from kueue_fleet.gke.zones import default_zones

ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
"""Kueue's name for the dispatcher AllAtOnce."""
INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
"""Kueue's name for the dispatcher Incremental."""


class Mark(Enum):
    """What fields of a cluster have in common, as metadata of each."""

    GKE_ONLY = auto()
    STANDARD_ONLY = auto()
    OF_ITS_OWNER = auto()


GKE_ONLY: Final = Mark.GKE_ONLY
"""Marks a field that only clusters of GKE have; so do the other marks."""
STANDARD_ONLY: Final = Mark.STANDARD_ONLY
"""Marks a field that only Standard clusters have."""
OF_ITS_OWNER: Final = Mark.OF_ITS_OWNER
"""Marks a field that is decided where the cluster is made: one that exists has it from its owner."""


FIRST_DRIVERS: Final = ("PersistentDisk", "Filestore", "GcsFuse")
"""Storage drivers that a cluster has from the beginning; Autopilot always."""


class ClusterEntry(RuledModel):
    """A cluster of GKE, or of any Kubernetes. Its name is also the name of its kubeconfig context."""

    name: GkeClusterName = Field(kw_only=False)
    """Name of the cluster and of its kubeconfig context."""
    role: Annotated[
        Literal["manager", "worker", "standalone"],
        Hint("add role: manager, worker or standalone"),
        AlsoCalled("manager", "type", "worker"),
    ]
    """manager: takes the jobs and dispatches them; worker: runs them; standalone: a fleet of one cluster."""
    region: Annotated[Region, GKE_ONLY] = Field("", kw_only=False, exclude_if=operator.not_)
    """Region of Google Cloud; needed, unless `kubernetes` is set. The control plane is regional."""
    kubernetes: Annotated[KubernetesConnection | None, AlsoCalled("context", "endpoint", "kubeconfig", "server")] = None
    """How an existing cluster that is not of GKE is reached, `{}` for the defaults."""
    location: DnsLabel | None = None
    """Where a cluster with `kubernetes` is, for `allowedRegions` and the dispatcher: a region, or a name of your own;
    default: not known, so that jobs with `allowedRegions` never go there.
    """
    nodes: ListOf[ClusterNodes] = ()
    """Nodes of a cluster with `kubernetes`; default: not known."""
    project: Annotated[ProjectId | None, GKE_ONLY] = None
    """Project of a worker that the fleet creates: a service project of the Shared VPC in `network.existing`; default:
    the fleet's.
    """
    existing: Annotated[Flag, GKE_ONLY] = False
    """Whether the cluster exists; the fleet then only adds node pools and objects inside; default false."""
    upsert_existing_objects: Flag = False
    """Whether `pulumi up` takes over objects of the same names, such as queues; default: it fails."""
    zones: Annotated[ListOfText[Zone], STANDARD_ONLY] = ()
    """Zones of the nodes, Standard only; default: the first three of the region."""
    mode: Annotated[Literal["Autopilot", "Standard"], GKE_ONLY, AlsoCalled("autopilot", "enableAutopilot")] = (
        "Autopilot"
    )
    """Who manages the nodes: GKE, or the pools of this file."""
    release_channel: Annotated[Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"], OF_ITS_OWNER] = "REGULAR"
    """GKE's release channel; default REGULAR."""
    min_master_version: Annotated[
        GkeVersion | None, OF_ITS_OWNER, AlsoCalled("clusterVersion", "kubernetesVersion", "nodeVersion", "version")
    ] = None
    """Least version of the control plane, and that of a new cluster, such as "1.34" or 1.34.1-gke.1829001; default: the
    channel's. GKE upgrades from there, unless `exclusions` with `endTimeBehavior` keep a minor version.
    """
    deletion_protection: Flag | None = None
    """Whether this cluster and its Kueue are protected from deletion; default: as the fleet. To remove a protected
    worker, set it to false and run `pulumi up` first.
    """
    kueue: ClusterKueue = Field(default_factory=ClusterKueue)
    """Settings of Kueue that differ on this cluster."""
    pod_monitors: PodMonitors | None = None
    """PodMonitors by which a Prometheus Operator in the cluster reads metrics, `{}` for the defaults; default: none.
    The operator is not installed."""
    system_pool: Annotated[SystemPool, STANDARD_ONLY, OF_ITS_OWNER] = Field(default_factory=SystemPool)
    """Nodes for Kueue and the like, Standard only."""
    node_auto_provisioning: Annotated[NodeAutoProvisioning | None, STANDARD_ONLY, OF_ITS_OWNER] = None
    """GKE makes node pools for pods that fit no other, Standard only; default: off. Autopilot always does."""
    maintenance: Annotated[Maintenance | None, OF_ITS_OWNER] = None
    """A recurring window, such as nights of weekends, for upgrades by GKE; default: any time."""
    database_encryption_key: Annotated[KmsKey | None, OF_ITS_OWNER] = None
    """Key of Cloud KMS for Secrets in etcd (CIS GKE 5.3.1)."""
    disk_encryption_key: Annotated[KmsKey | None, GKE_ONLY] = None
    """Key of Cloud KMS for boot disks (CIS GKE 5.9.2)."""
    node_service_account: Annotated[GoogleServiceAccountAddress | None, GKE_ONLY] = None
    """Google service account of the nodes, with its roles; default: the fleet creates one (CIS GKE 5.2.1)."""
    rbac_security_group: Annotated[Text | None, OF_ITS_OWNER] = None
    """gke-security-groups@your-domain: lets groups be members of teams (CIS GKE 5.8.2). Without the field a cluster
    keeps its group, until `gcloud container clusters update NAME --location REGION --security-group=""`.
    """
    binary_authorization: Annotated[Flag, OF_ITS_OWNER] = False
    """Whether images need the attestations of the project's policy (CIS GKE 5.1.4); default false."""
    fleet_membership: Annotated[Flag, OF_ITS_OWNER] = True
    """Whether the cluster is a member of the project's GKE fleet; default true."""
    cost_allocation: Annotated[Flag, OF_ITS_OWNER] = True
    """Whether the bill says which namespace used what; default true."""
    image_streaming: Annotated[Flag, STANDARD_ONLY] = True
    """Whether containers start before their image is complete; default true."""
    multi_networking: Annotated[Flag, STANDARD_ONLY, OF_ITS_OWNER] = False
    """Whether nodes may have several networks, as `acceleratorNetworks` of pools need; Standard only, default false."""
    slice_controller: Annotated[Flag, STANDARD_ONLY, OF_ITS_OWNER] = False
    """Whether GKE's slice controller joins pools of TPU7x to the slices that jobs request; Standard only, with channel
    RAPID. Default false. Once on, only gcloud turns it off.
    """
    storage_drivers: Annotated[
        ListOfText[Literal["PersistentDisk", "Filestore", "GcsFuse", "Lustre", "MultiTierCheckpoints"]],
        STANDARD_ONLY,
        OF_ITS_OWNER,
    ] = FIRST_DRIVERS
    """Default: the first three, which Autopilot always has; it can only add Lustre. Lustre and MultiTierCheckpoints,
    once on, stay on until `gcloud container clusters update NAME --location REGION --update-addons
    LustreCsiDriver=DISABLED` or HighScaleCheckpointing=DISABLED.
    """

    @property
    def platform(self) -> Literal["Autopilot", "Standard", "Kubernetes"]:
        """What it is a cluster of: a mode of GKE, or plain Kubernetes."""
        return "Kubernetes" if self.outside_gke else self.mode

    @property
    def outside_gke(self) -> bool:
        """Whether it is of any other Kubernetes, so that nothing of Google Cloud is there."""
        return self.kubernetes is not None

    @property
    def place(self) -> str:
        """Where it is, for residency and dispatch: its region, or the location of one outside GKE; empty: not known."""
        return self.location or "" if self.outside_gke else self.region

    @property
    def context(self) -> str:
        """The context of the kubeconfig by which Pulumi reaches it, unless it is of GKE."""
        return (self.kubernetes and self.kubernetes.context) or self.name

    @property
    def node_locations(self) -> Sequence[str]:
        """The zones that GKE is asked for; empty in a region that is not known, where GKE chooses."""
        return self.zones or default_zones(self.region)

    @property
    def runs_jobs(self) -> bool:
        """Whether pods of jobs run here: on every cluster but the manager."""
        return self.role != "manager"

    def own_problems(self) -> Iterator[Problem]:
        """Fields belong to the platform and the mode of the cluster, zones and keys to its region."""
        yield from self._of_platform()
        if self.kubernetes is not None:
            return
        if self.project is not None and self.role != "worker":
            wrong = f"set, but a {self.role} is in the fleet's project"
            yield EXCLUDED.at("project", wrong, "remove it, or write the project at the top of the file")
        yield from self._standard_only()
        yield from self._of_its_owner()
        yield from self._zones()
        yield from self._group()
        yield from self._keys()

    @where_read
    def _of_platform(self) -> Iterator[Problem]:
        """The fields that clusters of this platform need, and none that only others have."""
        names = [node.name for node in self.nodes]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield listed_twice(f"nodes[{index}].name", name, "kind of nodes")
        if self.kubernetes is None:
            if not self.region:
                yield MISSING.at("region", "is missing", "add a region of Google Cloud, such as region: europe-west4")
            for alias, instead in (("location", "region"), ("nodes", "nodePools")):
                if getattr(self, alias):
                    fix = f"remove it, and use {instead}; or add kubernetes, if it is another one"
                    yield EXCLUDED.at(alias, "set, but the cluster is of GKE", fix)
            return
        for alias in dict.fromkeys(alias for mark in Mark for alias in self._fields_marked(mark)):
            wrong = "set, but kubernetes says that the cluster is not of GKE"
            yield EXCLUDED.at(alias, wrong, "write location instead" if alias == "region" else "remove it")

    @where_read
    def _zones(self) -> Iterator[Problem]:
        yield from zones_in_region("zones", self.zones, self.region)
        if self.node_auto_provisioning is not None:
            at, zones = "nodeAutoProvisioning.zones", self.node_auto_provisioning.zones
            yield from zones_in_region(at, zones, self.region)

    @where_read
    def _group(self) -> Iterator[Problem]:
        group = self.rbac_security_group
        if group == "":
            wrong = "empty, with which the Google provider crashes when it creates the cluster"
            revoke = f'gcloud container clusters update {self.name} --location {self.region} --security-group=""'
            yield SECURITY_GROUP.at(
                "rbacSecurityGroup", wrong, f"remove it; to revoke the rights of a group, use `{revoke}`"
            )
        elif group and not group.startswith("gke-security-groups@"):
            yield SECURITY_GROUP.at(
                "rbacSecurityGroup",
                f"{group}, but GKE looks into one group only",
                "write gke-security-groups@ and your domain, and put the other groups into it",
            )

    @where_read
    def _keys(self) -> Iterator[Problem]:
        for field, key in (
            ("databaseEncryptionKey", self.database_encryption_key),
            ("diskEncryptionKey", self.disk_encryption_key),
        ):
            where = key.split("/")[3] if key is not None else self.region
            if self.region and where != self.region:
                yield KEY_REGION.at(
                    field, f"the key is in {where}, the cluster in {self.region}", "use a key of that region"
                )

    @where_read
    def _of_its_owner(self) -> Iterator[Problem]:
        for alias in self._fields_marked(OF_ITS_OWNER) if self.existing else ():
            yield EXCLUDED.at(alias, "set, but existing says that the cluster is there", "remove it, or existing")

    def _fields_marked(self, mark: Mark) -> Iterator[str]:
        """The fields with that mark that are not as they are by default."""
        for alias, name in fields_marked(mark).items():
            if getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True):
                yield alias

    @where_read
    def _standard_only(self) -> Iterator[Problem]:
        if self.mode != "Autopilot":
            return
        for alias in self._fields_marked(STANDARD_ONLY):
            drivers = set(self.storage_drivers) if alias == "storageDrivers" else set()
            if not {"Lustre"} <= drivers <= {"Lustre", *FIRST_DRIVERS}:
                yield EXCLUDED.at(alias, "set, but mode is Autopilot", "remove it or set mode to Standard")


def fields_marked(mark: Mark) -> Mapping[str, str]:
    """The fields of a cluster with that mark: their names in Python, and in the file by the latter."""
    fields = ClusterEntry.model_fields.items()
    return {field.alias or name: name for name, field in fields if mark in field.metadata}


_TOKEN_SECONDS: Final = (600, 2**32)
"""Shortest and longest life of a token. Source: kubernetes@v1.36.3 pkg/apis/authentication/validation/validation.go."""


def _day(value: object) -> object:
    """YAML parsers that know dates hand over midnight of that day."""
    return value[:10] if isinstance(value, str) and value[10:] in ("T00:00:00Z", " 00:00:00 +0000 UTC") else value


class ServiceAccountToken(Tagged):
    """The manager holds a token of a service account of each worker.

    The fleet's own controller, where there is one, and `kueue-fleet rotate` replace it by tokens that expire.
    """

    type: Literal["ServiceAccountToken"] = "ServiceAccountToken"
    """Always `ServiceAccountToken`."""
    rotation: Annotated[DnsLabel, Hint('add a serial for the token, such as rotation: "2026-11"')] = Field(
        kw_only=False
    )
    """Serial of the first token: the month in which it is created, such as "2026-11"; a new one starts again."""
    lifetime: DurationField = duration("168h")
    """Lifetime of a token, unless the API server grants less; tokens are renewed after half of it; default 168h."""
    rotate_by: Given[Annotated[date, BeforeValidator(_day)] | None, date | str | None] = NOT_GIVEN
    """Without a controller that renews tokens: day by which to do so, within 366 days; `check` and `pulumi up` warn
    from 14 days before."""

    def own_problems(self) -> Iterator[Problem]:
        """A lifetime that Kubernetes accepts."""
        if not _TOKEN_SECONDS[0] <= self.lifetime.seconds <= _TOKEN_SECONDS[1]:
            yield OUT_OF_RANGE.at(
                "lifetime", f"{self.lifetime} is not accepted for a token", "write 10m or more, such as 168h"
            )


class ClusterProfile(Tagged):
    """The manager's Kueue and the fleet's own controller reach the workers as Google service accounts, without tokens.

    Kueue reads a ClusterProfile of each worker (alpha in Kueue), and asks a plugin for the account's credentials.
    """

    type: Literal["ClusterProfile"] = "ClusterProfile"
    """Always `ClusterProfile`."""
    plugin_image: Text = Field(kw_only=False)
    """Image with Google's gcp-auth-plugin as `/gcp-auth-plugin`; Google publishes none, so build it."""


class IncrementalDispatcher(SpecModel):
    """Settings of the Incremental dispatcher."""

    step_size: Annotated[Count, Field(ge=1)] = 3
    """Workers added per round of five minutes; default 3."""


class ExternalDispatcher(SpecModel):
    """Settings of an External dispatcher."""

    name: Annotated[Text, Field(min_length=1)] = Field(kw_only=False)
    """Name under which the dispatcher is known to Kueue."""


class MultiKueueArgs(RuledModel):
    """How the manager dispatches jobs to the workers."""

    admission_check_name: DnsSubdomain = "multikueue"
    """Name of the AdmissionCheck."""
    config_name: DnsLabel = "multikueue"
    """Name of the MultiKueueConfig."""
    workers: Annotated[ListOfText[Text], Field(min_length=1)] | None = None
    """The workers, most preferred first; default: in the order of `clusters`."""
    dispatcher: Literal["AllAtOnce", "Incremental", "External"] = "AllAtOnce"
    """AllAtOnce (default): all workers are nominated; Incremental: more and more of them; External: another dispatcher
    decides."""
    incremental: IncrementalDispatcher | None = None
    """Settings of dispatcher Incremental; default: Kueue's."""
    external: ExternalDispatcher | None = None
    """The dispatcher, if `dispatcher` is External."""
    manager_flavor_name: DnsSubdomain = "multikueue"
    """The manager's flavor of derived quotas. Where queues of a cohort tree share no flavor on any worker, each group
    that does has one: this name, and the first of its flavors.
    """
    former_manager_flavor_names: ListOfText[DnsSubdomain] = ()
    """Earlier flavors of derived quotas that jobs still hold: queues keep them with a quota of 0, or Kueue drops the
    MultiKueue check of these jobs.
    """
    headroom_percent: Annotated[Count, Field(le=1000)] = 0
    """Quota of the manager beyond the sum of the workers' quotas, against fragmentation; default 0."""
    queues: ListOfText[Text] | None = None
    """Queues that are dispatched; default: every queue that is on a worker."""
    gc_interval: OptionalDurationField = NOT_GIVEN
    """How often remote objects without a local one are deleted; default 1m; 0s: never."""
    origin: Text | None = None
    """Mark on remote objects; two managers that share a worker need different ones; default multikueue."""
    worker_lost_timeout: OptionalDurationField = NOT_GIVEN
    """How long a job stays with a worker that does not answer; default 15m."""
    credentials: Annotated[
        ServiceAccountToken | ClusterProfile,
        Field(discriminator="type"),
        Hint("add credentials: {type: ServiceAccountToken, rotation: ..., rotateBy: ...}"),
    ] = Field(kw_only=False)
    """How the manager reaches the workers."""

    @property
    def dispatcher_name(self) -> str:
        """The dispatcher by the name Kueue's Configuration has for it."""
        if self.dispatcher == "External" and self.external:
            return self.external.name
        return INCREMENTAL if self.dispatcher == "Incremental" else ALL_AT_ONCE

    def own_problems(self) -> Iterator[Problem]:
        """Settings fit the dispatcher; validateMultiKueue of pkg/config/validation.go."""
        yield from self._times()
        yield from self._origin()
        yield from self.listed_once("workers", "name")
        yield from self.listed_once("queues", "name")
        if self.incremental is not None and self.dispatcher != "Incremental":
            yield EXCLUDED.at(
                "incremental",
                f"set, but dispatcher is {self.dispatcher}",
                "set dispatcher to Incremental or remove this",
            )
        if self.external is not None and self.dispatcher != "External":
            yield EXCLUDED.at(
                "external", f"set, but dispatcher is {self.dispatcher}", "set dispatcher to External or remove this"
            )
        if self.external is None and self.dispatcher == "External":
            yield NEEDED.at(
                "external", "not set, but dispatcher is External", "set external.name to the dispatcher's name"
            )

    @where_read
    def _times(self) -> Iterator[Problem]:
        for path, value in (("gcInterval", self.gc_interval), ("workerLostTimeout", self.worker_lost_timeout)):
            if value is not None and value.nanoseconds < 0:
                yield OUT_OF_RANGE.at(path, f"{value} is negative", "write 0s or longer")

    @where_read
    def _origin(self) -> Iterator[Problem]:
        if self.origin is not None:
            yield from syntax_problems("origin", self.origin, syntax.label_value)
