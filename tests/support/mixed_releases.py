"""Fleets whose clusters have several releases of Kueue, as during an upgrade."""

from __future__ import annotations

from typing import Any, NamedTuple


class Mix(NamedTuple):
    """Which release runs on the manager, and which on the other clusters."""

    manager: str
    others: str

    @classmethod
    def named(cls, name: str) -> Mix:
        """Of a name such as `0.19.2`, or `0.19.2-with-0.17.1`."""
        manager, _, others = name.partition("-with-")
        return cls(manager, others or manager)

    def give_to(self, fleet: dict[str, Any]) -> None:
        """The file names the releases, as its user would."""
        fleet.setdefault("kueue", {})["version"] = self.others
        for item in fleet["clusters"]:
            if item["role"] == "manager" and self.manager != self.others:
                item["kueue"] = {"version": self.manager}
                if self.others < "0.18" < self.manager:
                    # Workers of 0.17 know the Workload of a Job by its label alone.
                    item["kueue"]["configuration"] = {"featureGates": {"WorkloadIdentifierAnnotations": False}}
            elif self.manager < "0.18" < self.others:
                # They would finish the copies of a manager of 0.17, which have a Job's label and no owner.
                item["kueue"] = {"configuration": {"featureGates": {"FinishOrphanedWorkloads": False}}}


MIXES = (
    Mix("0.19.2", "0.18.3"),
    Mix("0.17.1", "0.17.1"),
    Mix("0.18.3", "0.18.3"),
    Mix("0.18.3", "0.19.2"),
    Mix("0.19.2", "0.17.1"),
    Mix("0.17.1", "0.18.3"),
    Mix("0.17.1", "0.19.2"),
)
