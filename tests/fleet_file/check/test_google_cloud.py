"""Names and labels that fit in Google Cloud."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems
from tests.fleet_file.pool_builders import pools_data

from kueue_fleet.fleet_file.check.google_cloud import GKE_LABELS, MOST_LABELS, OWN_LABELS
from kueue_fleet.fleet_file.model.gcp_names import with_digest

LONG = "a" * 51
ROOM = MOST_LABELS - len(OWN_LABELS)


def labels(number: int) -> dict[str, str]:
    return {f"label-{index}": "a" for index in range(number)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"name": "1st-fleet"},
            [
                'name: "1st-fleet" has characters or a form that are not allowed; use lower-case letters, digits and '
                "hyphens, "
                "with a letter at the start"
            ],
        ),
        (
            {"name": LONG},
            [
                f"name: the subnet, router and NAT gateway of europe-west4 would be called {LONG}-europe-west4, of 64 "
                "characters, but names have at most 63; write a shorter name, by 1 character, or set network.name"
            ],
        ),
        ({"name": LONG, "network": {"name": "short"}}, []),
        ({"labels": labels(ROOM - len(GKE_LABELS))}, []),
        (
            {"labels": labels(ROOM - len(GKE_LABELS) + 1)},
            ["warning: labels: 53, but GKE adds up to 7 to nodes, which have at most 64; keep at most 52"],
        ),
        (
            {"labels": labels(ROOM + 2)},
            [
                "labels: 61, but with 5 of the fleet's and Pulumi's own, clusters have room for 59; remove 2",
            ],
        ),
        ({"labels": {**labels(51), "managed-by": "somebody"}}, []),
    ],
)
def test_names_and_labels_fit(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(fleet_data(), changes)) == expected


NO_VALUE = "empty, which the Google provider never sets, or sets again with every `pulumi up`"
WRITE = "write a value, or remove the label"


def test_a_label_has_a_value() -> None:
    data = changed(
        pools_data(),
        {"labels": {"env": "", "team": "a"}, "nodePools/1/labels": {"company.test/a": "", "company.test/b": "c"}},
    )
    name = data["nodePools"][1]["name"]
    assert problems(data) == [
        f"labels[env]: {NO_VALUE}; {WRITE}",
        f"nodePools[{name}].labels[company.test/a]: {NO_VALUE}; {WRITE}",
    ]


def test_a_label_on_one_cluster_has_a_value_too() -> None:
    data = pools_data()
    cluster = next(item["name"] for item in data["clusters"] if item.get("mode") == "Standard")
    there = changed(data, {"nodePools/1/perCluster": {cluster: {"labels": {"a": ""}}}})
    path = f"nodePools[{data['nodePools'][1]['name']}].perCluster[{cluster}].labels[a]"
    assert f"{path}: {NO_VALUE}; {WRITE}" in problems(there)


def test_names_that_begin_alike_stay_apart() -> None:
    names = {with_digest(f"{'a' * 80}-{end}", f"{'a' * 80}-{end}", 63) for end in "bc"}
    assert len(names) == 2
    assert {len(name) for name in names} == {63}
    assert with_digest("f-a", "f-a", 30).startswith("f-a-")


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("1.31", True),
        ("1.32", False),
        ("1.32.1", True),
        ("1.32.2-gke.1000000", True),
        ("1.32.2", False),
        ("1.33", False),
    ],
)
def test_pools_have_the_version_that_they_need(version: str, old: bool) -> None:
    result = problems(changed(pools_data(), {"clusters/0/minMasterVersion": version}))
    expected = (
        f"warning: clusters[batch].minMasterVersion: {version}, with which a new cluster begins, but flex is of "
        "flex-start, which needs 1.32.2-gke.1652000; write that or a newer one"
    )
    assert result == ([expected] if old else [])
