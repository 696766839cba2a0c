"""A topology assignment in the compressed form of v1beta2, as plain domains.

Each slice has, per level, either one value for all its domains or one value each with a common prefix and suffix, and
likewise pod counts. Source: kueue@v0.19.2 pkg/util/tas/tas_assignment.go.
"""

from __future__ import annotations

from kueue_fleet.admission.model import DomainAssignment
from kueue_fleet.admission.reading.fields import Fields


def parse_topology_assignment(fields: Fields) -> tuple[tuple[str, ...], tuple[DomainAssignment, ...] | None]:
    """The levels and the domains; None for the domains when there is no assignment."""
    levels = fields.texts("levels")
    if not levels:
        return (), None
    domains = []
    for part in fields.children("slices"):
        count = part.integer("domainCount", 1, least=1)
        columns = [_values(item, count) for item in part.children("valuesPerLevel")]
        pods = _counts(part.child("podCounts"), count)
        domains += [DomainAssignment(tuple(column[row] for column in columns), pods[row]) for row in range(count)]
    return levels, tuple(domains)


def _values(fields: Fields, count: int) -> list[str]:
    if "universal" in fields:
        return [fields.text("universal")] * count
    individual = fields.child("individual")
    roots = individual.texts("roots")
    if len(roots) != count:
        individual.wrong("roots", f"has {len(roots)} values", f"give one for each of the {count} domains")
        roots = (*roots, *([""] * count))[:count]
    prefix, suffix = individual.text("prefix"), individual.text("suffix")
    return [f"{prefix}{root}{suffix}" for root in roots]


def _counts(fields: Fields, count: int) -> list[int]:
    if "universal" in fields:
        return [fields.integer("universal", 1, least=1)] * count
    given = fields.data.get("individual")
    if not isinstance(given, list) or len(given) != count or not all(isinstance(item, int) for item in given):
        fields.wrong("individual", "does not have one number for each domain", f"give {count} numbers")
        return [1] * count
    return list(given)
