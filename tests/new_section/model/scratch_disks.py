"""Empty disks of teams, for whatever their jobs may lose."""

from collections.abc import Iterator

from pydantic import Field

from kueue_admission.kernel.base import Count, DnsLabel, RuledModel
from kueue_admission.kernel.form_rules import OUT_OF_RANGE
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.gcp_names import ResourceName, Zone

LEAST_GIB = 10
"""Source: https://cloud.google.com/compute/docs/disks/persistent-disks."""


class ScratchDiskEntry(RuledModel):
    """An empty disk, and a ConfigMap with its name in the namespaces of its team."""

    name: ResourceName = Field(kw_only=False)
    """Name of the disk."""
    team: DnsLabel
    """The team whose jobs use it."""
    zone: Zone
    """Where it is."""
    size_gib: Count
    """Its size in GiB."""

    def own_problems(self) -> Iterator[Problem]:
        """A size that Google has."""
        if self.size_gib < LEAST_GIB:
            yield OUT_OF_RANGE.at("sizeGib", f"{self.size_gib}, which is too small", f"write {LEAST_GIB} or more")
