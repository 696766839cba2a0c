"""Data of teams: buckets, file systems and disks, and the claims by which jobs mount them.

An entry is one claim in each namespace of its teams, and in each region of its clusters one bucket, instance or disk
behind it: a place of `model.storage_places`. What is made in Google Cloud is in `google.storage`, the objects are in
`objects.storage`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import Count, DnsLabel, Flag, RuledModel, SpecModel, Text, syntax_of
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED, OUT_OF_RANGE
from kueue_admission.kernel.given import ListOfText
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity, QuantityField
from kueue_fleet.fleet_file.model.gcp_names import Region, ResourceName, Zone
from kueue_fleet.fleet_file.model.google_apis import UsesApis
from kueue_fleet.fleet_file.model.tagged import Tagged
from kueue_fleet.gke import google_syntax
from kueue_fleet.settings.dispatch import bucket_name

BucketName = Annotated[Text, syntax_of(bucket_name)]
"""Name of a bucket of Cloud Storage."""
IpAddress = Annotated[Text, syntax_of(google_syntax.ip_address)]
"""An IPv4 address."""
ProjectNumber = Annotated[Text, syntax_of(google_syntax.project_number)]
"""Number of a Google Cloud project."""
CLAIM_SIZE: Final = 1
"""GiB that each claim asks for, whatever is behind it: a claim cannot grow as that can."""
NOT_COUNTED: Final = 1024
"""GiB of a volume where they mean nothing: a bucket grows, and how large it is what exists is not known."""

Sizes = Sequence[tuple[int, int, int]]
"""Ranges of capacities in GiB: least, largest, and the step between."""
FILESTORE_SIZES: Final[Mapping[str, Sizes]] = {
    "BASIC_HDD": ((1024, 65433, 1),),
    "BASIC_SSD": ((2560, 65433, 1),),
    "ZONAL": ((1024, 9984, 256), (10240, 102400, 2560)),
    "REGIONAL": ((1024, 9984, 256), (10240, 102400, 2560)),
    "ENTERPRISE": ((1024, 10240, 256),),
}
"""By tier. Source: https://cloud.google.com/filestore/docs/service-tiers."""
LUSTRE_SIZES: Final[Mapping[int, Sizes]] = {
    1000: ((9000, 1530000, 9000), (1584000, 10008000, 72000)),
    500: ((18000, 3060000, 18000), (3168000, 20016000, 144000)),
    250: ((36000, 6120000, 36000), (6336000, 40032000, 288000)),
    125: ((72000, 12240000, 72000),),
}
"""By MB/s for each TiB. Source: https://docs.cloud.google.com/managed-lustre/docs/performance-tiers."""
HYPERDISK_ML_SIZES: Final[Sizes] = ((4, 65536, 1),)
"""Source: https://cloud.google.com/compute/docs/disks/hyperdisks#limits-disk."""


class GcsFuse(Tagged, UsesApis):
    """A bucket of Cloud Storage, mounted by Cloud Storage FUSE."""

    apis: ClassVar = {"storage": "buckets of teams"}

    type: Literal["gcsFuse"] = "gcsFuse"
    """Always `gcsFuse`."""
    location: Text | None = None
    """One new bucket for all, in this region, `US`, `EU` or `ASIA`; default: one in the region of each cluster. A
    change replaces it.
    """
    hierarchical_namespace: Flag = False
    """Whether folders are real folders, which speeds up checkpoints; it cannot be changed. Default false."""
    existing: Mapping[Region, BucketName] = Field(default_factory=dict)
    """Existing buckets, by region; their real location is not checked."""


class ExistingInstance(SpecModel):
    """An existing file server, in the network of the clusters."""

    name: ResourceName
    """Name of the instance."""
    location: Text
    """Its zone; its region for the tiers REGIONAL and ENTERPRISE of Filestore."""
    address: IpAddress
    """Its IP address."""
    share: Text
    """Name of its share (Filestore), or file system (Lustre)."""


class Filestore(Tagged, UsesApis):
    """A file share of Filestore (NFS)."""

    apis: ClassVar = {"file": "Filestore instances"}

    type: Literal["filestore"] = "filestore"
    """Always `filestore`."""
    tier: Literal["BASIC_HDD", "BASIC_SSD", "ZONAL", "REGIONAL", "ENTERPRISE"] = "ZONAL"
    """Google's tier of an instance that is made; default ZONAL. REGIONAL and ENTERPRISE outlive a zone."""
    capacity_gib: Count | None = None
    """Size of the share in GiB, in the steps of its tier; needed where an instance is made."""
    zones: ListOfText[Zone] = ()
    """Zones of the instances that are made, one for each region; default: the cluster's first zone."""
    existing: Mapping[Region, ExistingInstance] = Field(default_factory=dict)
    """Instances that are there, by region."""

    @property
    def sizes(self) -> Sizes:
        """The capacities that Google has."""
        return FILESTORE_SIZES[self.tier]

    @property
    def shrinks(self) -> bool:
        """Whether an instance can be made smaller. Source: https://docs.cloud.google.com/filestore/docs/scale."""
        return not self.tier.startswith("BASIC")

    @property
    def regional(self) -> bool:
        """Whether an instance is in a region, not in a zone."""
        return self.tier in ("REGIONAL", "ENTERPRISE")


class Lustre(Tagged, UsesApis):
    """A file system of Managed Lustre."""

    apis: ClassVar = {"lustre": "Managed Lustre instances", "servicenetworking": "the way to Managed Lustre"}

    type: Literal["lustre"] = "lustre"
    """Always `lustre`."""
    per_unit_storage_throughput: Count = 1000
    """MB/s for each TiB of an instance that is made: 125, 250, 500 or 1000; default 1000."""
    capacity_gib: Count | None = None
    """Size in GiB, in the steps of the throughput: 9000 at least; needed where an instance is made. It can grow."""
    zones: ListOfText[Zone] = ()
    """Zones of the instances that are made, one for each region; default: the cluster's first zone."""
    existing: Mapping[Region, ExistingInstance] = Field(default_factory=dict)
    """Instances that are there, by region."""

    @property
    def sizes(self) -> Sizes:
        """The capacities that Google has."""
        return LUSTRE_SIZES.get(self.per_unit_storage_throughput, ())

    shrinks: ClassVar[bool] = False
    """Instances only grow. Source: https://docs.cloud.google.com/managed-lustre/docs/increase-capacity."""

    def own_problems(self) -> Iterator[Problem]:
        """A throughput that Google has."""
        if not self.sizes:
            wrong = f"{self.per_unit_storage_throughput}, which Google does not have"
            yield OUT_OF_RANGE.at("perUnitStorageThroughput", wrong, "write 125, 250, 500 or 1000")


class HyperdiskMl(Tagged):
    """A read-only disk of the type Hyperdisk ML for many nodes."""

    type: Literal["hyperdiskMl"] = "hyperdiskMl"
    """Always `hyperdiskMl`."""
    snapshot: Text | None = None
    """The snapshot that disks are created from, such as projects/P/global/snapshots/NAME."""
    image: Text | None = None
    """Or the image that they are created from."""
    capacity_gib: Count | None = None
    """Size in GiB; needed where a disk is made."""
    zones: ListOfText[Zone] = ()
    """Zones with a disk, in each region; default: those of the cluster's nodes. Pods run only on nodes in these zones.
    """
    existing: Mapping[Region, ResourceName] = Field(default_factory=dict)
    """Names of existing disks, by region, in every one of the zones; several disks of one name need the label
    `goog-gke-multi-zone: "true"`."""

    @property
    def sizes(self) -> Sizes:
        """The capacities that Google has."""
        return HYPERDISK_ML_SIZES

    def own_problems(self) -> Iterator[Problem]:
        """Made of something: no node can write to it."""
        if self.snapshot is not None and self.image is not None:
            yield EXCLUDED.at("image", "set, but so is snapshot", "keep one of the two")
        if not (self.existing or self.snapshot or self.image):
            wrong = "not set, and a disk that is made of nothing stays empty: many nodes read it and none writes"
            yield NEEDED.at("snapshot", wrong, "write snapshot or image, or name disks in existing")


class MultiTierCheckpoints(Tagged, UsesApis):
    """Multi-tier checkpointing: in the memory of nodes, of their neighbours, and in a bucket. Standard clusters only.

    Source:
    https://cloud.google.com/kubernetes-engine/docs/how-to/machine-learning/training/multi-tier-checkpointing.
    """

    apis: ClassVar = GcsFuse.apis

    type: Literal["multiTierCheckpoints"] = "multiTierCheckpoints"
    """Always `multiTierCheckpoints`."""
    node_pool: ResourceName
    """The node pool whose nodes keep checkpoints."""
    in_memory_volume_size: QuantityField
    """Memory of each node for checkpoints, such as 200Gi."""
    project_number: ProjectNumber
    """Number of the fleet's project, by which the bucket's policy names GKE's own account."""
    location: Text | None = None
    """As of `gcsFuse`."""
    hierarchical_namespace: Flag = True
    """As of `gcsFuse`; default true."""
    existing: Mapping[Region, BucketName] = Field(default_factory=dict)
    """As of `gcsFuse`."""


Bucket = GcsFuse | MultiTierCheckpoints
"""What is kept in a bucket."""
Instance = Filestore | Lustre
"""What is kept by a file server."""
Volume = Annotated[GcsFuse | Filestore | Lustre | HyperdiskMl | MultiTierCheckpoints, Field(discriminator="type")]
"""What is behind a claim: one of the classes, told apart by `type`."""


class StorageEntry(RuledModel):
    """A PersistentVolumeClaim in the namespaces of teams, and its storage in each region."""

    name: DnsLabel = Field(kw_only=False)
    """Name of the PersistentVolumeClaim, for jobs; also part of the name of the storage."""
    teams: Annotated[ListOfText[DnsLabel], Field(min_length=1)]
    """The teams whose jobs mount it, in each of their namespaces."""
    volume: Volume
    """Its storage."""
    clusters: Annotated[ListOfText[Text], Field(min_length=1)] | None = None
    """Clusters with the claim; default: every one that runs jobs. Each region has a bucket, instance or disk of its
    own, and nothing copies between them.
    """
    read_only: Flag = False
    """Whether jobs only read it; default false. A disk is always read only."""
    mount_options: ListOfText[Text] | None = None
    """Options of the mount; default: `implicit-dirs` for buckets, none for others."""

    @property
    def access_mode(self) -> Literal["ReadOnlyMany", "ReadWriteMany"]:
        """How pods on many nodes mount it."""
        return "ReadOnlyMany" if self.read_only or isinstance(self.volume, HyperdiskMl) else "ReadWriteMany"

    @property
    def options(self) -> Sequence[str]:
        """Options of the mount."""
        if self.mount_options is not None:
            return self.mount_options
        return ("implicit-dirs",) if isinstance(self.volume, GcsFuse) else ()

    @property
    def size(self) -> Quantity:
        """Of the volume, as pods see it; nothing holds them to it."""
        return Quantity(f"{getattr(self.volume, 'capacity_gib', None) or NOT_COUNTED}Gi")

    def own_problems(self) -> Iterator[Problem]:
        """Teams once each; a size that Google has."""
        yield from self.listed_once("teams", "team")
        yield from self._size()

    @where_read
    def _size(self) -> Iterator[Problem]:
        volume = self.volume
        if isinstance(volume, Bucket) or volume.capacity_gib is None or not volume.sizes:
            return
        size = volume.capacity_gib
        if not any(least <= size <= most and (size - least) % step == 0 for least, most, step in volume.sizes):
            ranges = " or ".join(f"{least} to {most} in steps of {step}" for least, most, step in volume.sizes)
            yield OUT_OF_RANGE.at("volume.capacityGib", f"{size}, which Google does not have", f"write {ranges}")
