"""Prices: sums that Google's pages show, tables of users, and what is not known."""

from __future__ import annotations

import pytest

from kueue_fleet.fleet_file.model.storage import FILESTORE_SIZES
from kueue_fleet.gke.machines import accelerators, machine_names, machine_type
from kueue_fleet.gke.prices import CLUSTER, LOCAL_SSD, Missing, Model, Prices, list_prices, parse_prices
from kueue_fleet.gke.regions import REGION_RANGES

HEADER = "of,regions,onDemand,spot,flexStart\n"


def machine(name: str, region: str, model: Model = "onDemand") -> list[float | Missing]:
    return list_prices().of_machine(name, machine_type(name), region, model)


@pytest.mark.parametrize(
    ("name", "region", "usd"),
    [
        # As https://cloud.google.com/compute/vm-instance-pricing lists them.
        ("g2-standard-4", "us-central1", 0.7068),
        ("g2-standard-24", "us-central1", 2.0008),
        ("a2-highgpu-1g", "us-central1", 3.6734),
        ("a2-ultragpu-1g", "us-central1", 5.0688),
        ("a3-highgpu-8g", "us-central1", 88.49),
        ("e2-standard-4", "us-central1", 0.1340),
        ("e2-small", "us-central1", 0.016751),
        ("n1-standard-1", "us-central1", 0.0475),
    ],
)
def test_a_machine_costs_what_its_parts_cost(name: str, region: str, usd: float) -> None:
    parts = machine(name, region)
    assert sum(part for part in parts if not isinstance(part, Missing)) == pytest.approx(usd, rel=2e-4)
    assert not [part for part in parts if isinstance(part, Missing)]


def test_machines_of_n2_have_a_price_in_nearly_every_region() -> None:
    prices = list_prices()
    result = {region: prices.price("n2-standard-64", region, "onDemand") for region in REGION_RANGES}
    assert {region for region, price in result.items() if isinstance(price, Missing)} == {
        "asia-southeast3",
        "europe-north2",
        "me-central2",
        "northamerica-south1",
    }
    assert result["us-east5"] == pytest.approx(3.88472 / 80, abs=1e-6), "of n2-standard-80, in the catalogue"


def test_what_is_not_known_is_missing_and_not_free() -> None:
    a3 = Missing("a3-highgpu-8g", "us-central1", "flexStart")
    assert machine("a3-highgpu-8g", "us-central1", "flexStart")[0] == a3
    assert str(a3) == "a3-highgpu-8g in us-central1, flexStart"
    assert machine("g2-standard-4", "mars-north1") == [
        Missing("g2-standard-4", "mars-north1", "onDemand"),
        Missing("nvidia-l4", "mars-north1", "onDemand"),
    ]
    assert list_prices().of_machine("x9-standard-1", None, "us-central1", "spot") == [
        Missing("x9-standard-1", "us-central1", "spot")
    ]


def test_rows_are_of_machines_gpus_and_regions_that_exist() -> None:
    tiers = {f"filestore-{tier.lower().replace('_', '-')}" for tier in FILESTORE_SIZES}
    other = {CLUSTER, LOCAL_SSD, "pd-balanced", "pd-standard", *tiers}
    for (of, region), row in list_prices().rows.items():
        assert region in REGION_RANGES or (of, region) == (CLUSTER, ""), (of, region)
        assert of in other or of in accelerators() or any(name.startswith(of) for name in machine_names()), of
        assert row.get("spot", 0) <= row.get("onDemand", row.get("spot", 0)), (of, region)


def test_the_longest_beginning_of_a_name_counts() -> None:
    prices, _ = parse_prices(
        f"{HEADER}g2-,r1,1,,\ng2-standard-24,r1,3,,\ng2-standard-,r1,2,,\ng2-standard,r1,9,,\n", ""
    )
    result = [prices.price(name, "r1", "onDemand") for name in ("g2-standard-24", "g2-standard-4", "g2-highmem-4")]
    assert result == [3, 2, 1]


def test_own_prices_replace_those_of_the_library() -> None:
    own, problems = parse_prices(
        f"# Prices of our contract\n{HEADER}nvidia-l4,us-central1 us-east4,0.4,,\ncluster,,0\n", "own"
    )
    assert (own.date, list(problems)) == ("our contract", [])
    prices = list_prices().under(own)
    assert prices.date == "2026-11, and our contract"
    assert prices.price("nvidia-l4", "us-east4", "onDemand") == 0.4
    assert prices.price("nvidia-l4", "europe-west4", "onDemand") == 0.58804
    assert prices.price(CLUSTER, "us-east4", "onDemand") == 0
    assert isinstance(prices.price("nvidia-l4", "us-east4", "spot"), Missing), "a line replaces all of a line"


def test_a_table_of_a_spreadsheet() -> None:
    prices, problems = parse_prices(f"{HEADER}nvidia-l4,us-east4,0.4,,\n".replace("\n", "\r\n"), "ours.csv")
    assert (list(problems), prices.price("nvidia-l4", "us-east4", "onDemand")) == ([], 0.4)


def test_a_table_without_a_date_has_that_of_its_name() -> None:
    assert parse_prices(HEADER, "our.csv") == (Prices("our.csv", {}), [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the header is not `of,regions,onDemand,spot,flexStart`; write that line"),
        ("name,price\na,1\n", "line 1: the header is not `of,regions,onDemand,spot,flexStart`; write that line"),
        (f"{HEADER}a,r,free,,\n", "line 2: onDemand: free is not a price; write a number such as 0.56, or nothing"),
        (f"{HEADER}a,r,1e308,,\n", "line 2: onDemand: 1e308 is not a price; write a number such as 0.56, or nothing"),
        (f"{HEADER}a,r,1_0,,\n", "line 2: onDemand: 1_0 is not a price; write a number such as 0.56, or nothing"),
        (f"{HEADER}a,r,,-1,\n", "line 2: spot: -1 is not a price; write a number such as 0.56, or nothing"),
        (f"{HEADER}a,r,,,nan\n", "line 2: flexStart: nan is not a price; write a number such as 0.56, or nothing"),
        (f"{HEADER}\n# twice\na,r s,1,,\na,s,2,,\n", "line 5: a in s is there twice; remove one of the lines"),
        (
            f"{HEADER}a,r,1,1,1,1\n",
            "line 2: is not of the form `of,regions,onDemand,spot,flexStart`; write as many columns",
        ),
        (
            f"{HEADER},r,1,1,1\n",
            "line 2: is not of the form `of,regions,onDemand,spot,flexStart`; write as many columns",
        ),
    ],
)
def test_problems_of_a_table_name_their_line(text: str, problem: str) -> None:
    assert list(parse_prices(text, "own")[1]) == [problem]
