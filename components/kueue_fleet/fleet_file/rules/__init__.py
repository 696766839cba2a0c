"""The rules of a fleet file, and of what is read with it. A module has those of a section of docs/troubleshooting.md.

The first digit of a code stands for the section.
"""

from __future__ import annotations

from typing import Final

from kueue_admission.kernel import job_rules
from kueue_admission.kernel.problem import Rule
from kueue_admission.kernel.rule_lists import by_code, rules_of
from kueue_fleet.fleet_file.rules import clusters, commands, files, queues, teams
from kueue_fleet.gke.google_syntax import NO_PROJECT
from kueue_fleet.gke.pool_rules import POOL_RULES
from kueue_fleet.settings.dispatch import IMAGE, WINDOWS_OVERLAP

POOL: Final = {
    broken.name: Rule(
        broken.code,
        seen=f"`{broken.name}`: {broken.asks}",
        why="GKE refuses such a pool."
        if broken.refused
        else "GKE takes such a pool, and it does not work as it should.",
        remedy="Change the pool as the message says",
        source=broken.source,
    )
    for broken in POOL_RULES
}
"""The rules of one node pool, by name; the policies have them too."""
FLEET_RULES: Final = by_code(
    job_rules.RULES.values(),
    *(rules_of(section) for section in (files, clusters, queues, teams, commands)),
    (IMAGE, NO_PROJECT, WINDOWS_OVERLAP),
    POOL.values(),
)
"""All rules there are, by code; a code that two have is refused when this is imported."""
