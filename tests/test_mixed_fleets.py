"""Whatever else a fleet has: a worker outside GKE gets its objects, and nothing of Google Cloud."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from drawn import examples
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.google.cost import cost_of
from kueue_fleet.google.resources import resources_on
from kueue_fleet.objects import render_cluster
from kueue_fleet.preflight.plain_clusters import plain_cluster_needs
from tests.fleet_files.plain import PARIS, mixed_fleets

OF_GOOGLE = ("gke.io", "googleapis.com", "cloud.google.com", "gke-gmp")


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(mixed_fleets())
def test_a_worker_outside_gke_has_nothing_of_google(fleet: FleetSpec) -> None:
    assert not [item.key for item in resources_on(fleet) if PARIS in item.key.split("/")]
    objects = render_cluster(fleet, PARIS)
    assert {entry["metadata"]["name"] for entry in objects if entry["kind"] == "ClusterQueue"} == {"paris-only"}
    assert not [each for each in objects if each["apiVersion"].partition("/")[0].endswith(OF_GOOGLE)]
    [needs] = plain_cluster_needs(fleet)
    assert not [version for version, _ in needs.kinds if version.partition("/")[0].endswith(OF_GOOGLE)]
    assert list(compare_fleets(fleet, fleet)) == []
    lines = [line for line in cost_of(fleet, list_prices()).lines if line.cluster == PARIS]
    assert {line.kind for line in lines} <= {"owned"}
