from __future__ import annotations

import pytest

from kueue_rehearsal.cloud.node_templates import Place


@pytest.mark.parametrize(
    ("location", "region", "zones"),
    [
        ("europe-west4", "europe-west4", ("europe-west4-a", "europe-west4-b", "europe-west4-c")),
        ("us-east4-b", "us-east4", ("us-east4-b",)),
    ],
)
def test_places(location: str, region: str, zones: tuple[str, ...]) -> None:
    place = Place.of("c", location)
    assert (place.region, place.zones) == (region, zones)
