"""What is different between two fleets, in the words of those who use them: what a change does, and who gains or loses.

Sentences, each with the path of what changed; the consequences of applying the second fleet over the first come first.
Quotas and node pools are compared as they end up on each cluster, so a change in one place of the file shows on every
cluster it reaches; the rest is compared field by field.
"""

from __future__ import annotations

from kueue_fleet.diff.cloud import CloudPlan, cloud_consequences
from kueue_fleet.diff.contents import contents_consequences
from kueue_fleet.diff.difference import Area, Difference, consequence
from kueue_fleet.diff.fields import compare_fields
from kueue_fleet.diff.quotas import compare_capacity, compare_clusters, compare_quotas, compare_regions
from kueue_fleet.fleet_file.model.fleet import FleetSpec

__all__ = ["Area", "Difference", "compare_fleets"]


def compare_fleets(old: FleetSpec, new: FleetSpec) -> list[Difference]:
    """Every difference between two fleets, consequences first; none if and only if they are equal."""
    differences = [*_consequences(old, new), *compare_clusters(old, new), *compare_capacity(old, new)]
    differences += [*compare_quotas(old, new), *compare_regions(old, new)]
    paths = {difference.path for difference in differences if difference.area != "consequences"}
    paths |= {difference.path for difference in differences if difference.whole}
    differences += [compare_field for compare_field in compare_fields(old, new) if compare_field.path not in paths]
    if not differences and old != new:
        differences.append(Difference("settings", "", "written in another way, with the same effect"))
    return differences


def _consequences(old: FleetSpec, new: FleetSpec) -> list[Difference]:
    """What applying `new` over `old` does to what runs there. Two fleets of different names are two stacks."""
    for field, sides in (("name", (old.name, new.name)), ("project", (old.project, new.project))):
        if sides[0] != sides[1]:
            text = f"these are two fleets; applied over the first, the second makes everything again, in {sides[1]}"
            return [consequence(field, text)]
    change = CloudPlan(old, new)
    return [*cloud_consequences(change), *contents_consequences(old, new, change.clusters_that_stay)]
