from __future__ import annotations

import pytest

from kueue_fleet.dispatch.residency import parse_regions, read_residency

GROUPS = {"eu": ("europe-west1", "europe-west4")}


@pytest.mark.parametrize(
    ("value", "regions"),
    [
        ("europe-west4", {"europe-west4"}),
        ("europe-west4_us-east4", {"europe-west4", "us-east4"}),
        ("eu", {"europe-west1", "europe-west4"}),
        ("eu_us-east4", {"europe-west1", "europe-west4", "us-east4"}),
        ("EU", {"EU"}),
        ("mars", {"mars"}),
        ("", set()),
        ("__", set()),
    ],
)
def test_regions_of_a_label(value: str, regions: set[str]) -> None:
    assert parse_regions(value, GROUPS) == regions


def test_without_rules_every_region_is_allowed() -> None:
    assert read_residency(None, None, None, GROUPS).forbids("us-east4") is None


def test_every_rule_must_agree() -> None:
    residency = read_residency("eu_us-east4", "eu", ("europe-west4", "us-east4"), GROUPS)
    assert residency.allowed(("europe-west1", "europe-west4", "us-east4")) == ("europe-west4",)


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (("eu", None, None), "label kueue-fleet.dev/regions of the workload allows only europe-west1, europe-west4"),
        ((None, "eu", None), "label kueue-fleet.dev/regions of its namespace allows only europe-west1, europe-west4"),
        ((None, None, ("europe-west4",)), "the team's allowedRegions allows only europe-west4"),
    ],
)
def test_who_forbids_it_is_said(arguments: tuple[str | None, str | None, tuple[str] | None], source: str) -> None:
    bound = read_residency(*arguments, GROUPS).forbids("us-east4")
    assert bound is not None
    assert bound.text == source


@pytest.mark.parametrize("garbage", ["", "_", "nowhere", "eu-", "europe-west4.us-east4"])
def test_what_is_not_understood_allows_nothing(garbage: str) -> None:
    residency = read_residency(garbage, None, None, GROUPS)
    assert residency.allowed(("europe-west1", "europe-west4", "us-east4")) == ()
