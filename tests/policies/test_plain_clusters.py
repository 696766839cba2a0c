"""The pack on fleets outside GKE, by Pulumi's mocks: its rules about objects and releases hold there too."""

from __future__ import annotations

from pulumi_policy import EnforcementLevel
from tests.policies.recorded import findings

from kueue_fleet.fleet_file import FleetSpec
from mocked_fleets import run
from plain_fleets import alone, mixed

RELEASES = ["Release paris/jobset", "Release paris/kueue"]


def fallen(fleet: FleetSpec) -> list[tuple[str, str]]:
    """The mandatory rules that are broken, and by what."""
    return [(one.rule, one.resource) for one in findings(run(fleet)) if one.level is EnforcementLevel.MANDATORY]


def test_nothing_mandatory_falls() -> None:
    assert fallen(alone()) == fallen(mixed()) == []


def test_kueue_without_protection_is_named() -> None:
    assert fallen(alone(deletionProtection=False)) == [("protect-kueue", name) for name in RELEASES]
