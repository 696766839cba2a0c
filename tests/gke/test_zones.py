"""Zones of regions, and where machine types are offered."""

from __future__ import annotations

from importlib import resources

import pytest

from kueue_fleet.gke.consumption import is_offered, options_of, zones_with
from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.machines import machine_names, n1_accelerators
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range
from kueue_fleet.gke.zones import region_names, regions_offering, regions_with, zones_of, zones_offering

TABLES = sorted(
    file.name.removesuffix(".csv")
    for file in resources.files("kueue_fleet.gke").iterdir()
    if file.name.endswith(".csv")
)


def test_regions_have_the_zones_that_google_has_there() -> None:
    assert zones_of("us-central1") == ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f")
    assert zones_of("us-east1") == ("us-east1-b", "us-east1-c", "us-east1-d")
    assert zones_of("europe-west1") == ("europe-west1-b", "europe-west1-c", "europe-west1-d")
    assert zones_of("mars-north1") == ()
    assert all(len(zones_of(region)) >= 3 and default_pod_range(region) for region in region_names())
    assert [*REGION_RANGES] == [*region_names()]


def test_a_machine_type_is_offered_in_some_zones() -> None:
    assert zones_offering("a2-highgpu-1g", "us-east1") == ("us-east1-b",)
    assert zones_offering("a2-highgpu-1g", "europe-west3") == ()
    assert zones_offering("g2-standard-24", "us-east4") == ("us-east4-a", "us-east4-c")
    assert zones_offering("e2-standard-4", "us-east1") is None
    assert "us-east4" in regions_offering("a2-ultragpu-1g")
    assert regions_offering("e2-standard-4") == ()


def test_a_kind_of_gpu_is_offered_where_any_of_its_machines_is() -> None:
    assert set(regions_with("nvidia-tesla-a100") or ()) == {*regions_offering("a2-highgpu-1g")} | {
        *regions_offering("a2-megagpu-16g")
    }
    assert regions_with("nvidia-gb200") is None, "not all of its machine types are listed"
    assert "us-central1" in (regions_with("nvidia-tesla-t4") or ())
    assert regions_with("nvidia-tesla-v100") is None, "its zones are not listed"
    assert regions_with("no-such-gpu") is None


def test_what_is_offered_is_in_zones_that_exist_on_machines_that_exist() -> None:
    for row in read_table("machine_zones"):
        assert set(row["zones"].split()) <= {zone.rpartition("-")[2] for zone in zones_of(row["region"])}, row
        known = (*machine_names(), *n1_accelerators())
        assert any(name.startswith(row["machineTypes"]) for name in known), row


@pytest.mark.parametrize("table", TABLES)
def test_a_table_says_where_it_is_from_and_when_it_was_read(table: str) -> None:
    text = resources.files("kueue_fleet.gke").joinpath(f"{table}.csv").read_text()
    comment = "".join(line for line in text.splitlines() if line.startswith("#"))
    assert "https://" in comment
    assert "Read 20" in comment
    rows = read_table(table)
    assert rows
    assert all(None not in row and None not in row.values() for row in rows), "as many values as columns in each row"


def test_there_is_no_other_table() -> None:
    assert TABLES == [
        "accelerator_networks",
        "consumption",
        "gpu_partitions",
        "local_ssds",
        "machine_zones",
        "machines",
        "n1_accelerators",
        "prices",
        "regions",
        "tpu_topologies",
    ]
    with pytest.raises(FileNotFoundError):
        read_table("gpus")


def test_consumption_is_of_machines_and_zones_that_exist() -> None:
    for row in read_table("consumption"):
        assert any(name.startswith(row["machineTypes"]) for name in machine_names()), row
        for option in ("onDemand", "spot", "flexStart", "calendar"):
            for zone in zones_with(row["machineTypes"], option) or ():
                assert zone in (zones_offering(row["machineTypes"], zone.rpartition("-")[0]) or ()), (row, zone)


def test_options_of_a_machine() -> None:
    assert options_of("a4-highgpu-8g") == ("spot", "flexStart", "calendar", "reserved")
    assert options_of("a4x-highgpu-4g") == ("reserved",)
    assert is_offered("e2-standard-4", "onDemand")
    assert zones_with("e2-standard-4", "flexStart") is None
    assert zones_with("a3-highgpu-1g", "calendar") is None, "not known"
