"""The rules of what the fleet's controller is given; those between sections are in `fleet_file.rules`."""

from __future__ import annotations

from kueue_admission.kernel.problem import Rule

IMAGE = Rule(
    "KF811",
    severity="warning",
    seen="`does not say which version`",
    why="The image could change between two starts.",
    remedy="Add a tag other than latest, or a digest",
)
WINDOWS_OVERLAP = Rule(
    "KF842",
    severity="warning",
    seen="`is open at the same time as`",
    why="A job must end within one window of its check; two overlapping windows do not count as one.",
    remedy="Merge the windows, or let one begin when the other ends",
)
