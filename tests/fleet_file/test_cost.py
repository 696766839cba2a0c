"""What a fleet costs: used or not, in use, and what is not in the sums."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import fleet_data, standalone_data

from company_fleet import company_data
from kueue_fleet.diff.quotas import compare_costs
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.cost import CostLine
from kueue_fleet.gke.prices import list_prices, parse_prices
from kueue_fleet.google.cost import cost_of

PRICES, _ = parse_prices(
    "of,regions,onDemand,spot,flexStart\n"
    "cluster,,0.1,,\n"
    "e2-standard-,us-central1,0.05,,\n"
    "g2-standard-,us-central1,0.1,0.01,0.02\n"
    "nvidia-l4,us-central1,1,0.5,0.25\n"
    "pd-balanced,us-central1,7.3,,\n"
    "local-ssd,us-central1,0.73,0.073,0.73\n",
    "test prices",
)
DISK = 100 * 7.3 / 730


def fleet(*pools: dict[str, Any], **sections: Any) -> FleetSpec:
    data = standalone_data()
    data["clusters"][0] |= {"mode": "Standard", "zones": ["us-central1-a"], **sections.pop("cluster", {})}
    data["nodePools"] = [{"machineType": "g2-standard-24", **pool} for pool in pools]
    data["clusterQueues"] = data["flavors"] = data["teams"] = data["localQueues"] = []
    return parse_fleet(data | sections)


def line(spec: FleetSpec, name: str) -> CostLine:
    return next(line for line in cost_of(spec, PRICES).lines if line.name == name)


AUTOSCALING = {"autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 3}}


def test_a_cluster_costs_its_fee_and_its_system_pool() -> None:
    cost = cost_of(fleet(), PRICES)
    assert [(line.name, line.kind, line.least, line.most) for line in cost.lines] == [
        ("", "cluster", 1, 1),
        ("system", "onDemand", 1, 3),
    ]
    assert cost.always == pytest.approx(0.1 + 4 * 0.05 + DISK)
    assert cost.in_use == pytest.approx(2 * (4 * 0.05 + DISK))


@pytest.mark.parametrize(
    ("capacity", "each"),
    [
        ({"type": "onDemand"}, 24 * 0.1 + 2 * 1),
        ({"type": "spot"}, 24 * 0.01 + 2 * 0.5),
        ({"type": "flexStart", "queuedProvisioning": False}, 24 * 0.02 + 2 * 0.25),
    ],
)
def test_nodes_cost_by_where_they_come_from(capacity: dict[str, Any], each: float) -> None:
    limits = {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 3}}
    result = line(fleet({"name": "l4", "capacity": capacity, **limits}), "l4")
    assert (result.each, result.always, result.in_use) == pytest.approx((each + DISK, 0, 3 * (each + DISK)))
    assert result.kind == capacity["type"]


def test_the_fewest_nodes_are_paid_whether_they_are_used_or_not() -> None:
    result = line(fleet({"name": "l4", **AUTOSCALING}), "l4")
    assert (result.least, result.most) == (1, 3)
    fixed = line(fleet({"name": "l4", "nodeCount": 2}), "l4")
    assert (fixed.always, fixed.in_use) == pytest.approx((2 * fixed.each, 0))


def test_local_ssds_are_paid_as_the_machine_is() -> None:
    spot = {"name": "l4", "capacity": {"type": "spot"}, "localSsdCount": 2, **AUTOSCALING}
    result = line(fleet(spot), "l4")
    assert result.each == pytest.approx(24 * 0.01 + 2 * 0.5 + 2 * 375 * 0.073 / 730 + DISK)


def test_machines_of_a_reservation_are_paid_once() -> None:
    reservation = {"name": "kept", "zone": "us-central1-a", "machineType": "g2-standard-24", "count": 5}
    pool = {"name": "l4", "nodeCount": 3, "capacity": {"type": "reserved", "reservation": "kept"}}
    spec = fleet(pool, reservations=[reservation])
    machines, nodes = line(spec, "kept"), line(spec, "l4")
    assert (machines.cluster, machines.in_use) == ("", 0)
    assert machines.always == pytest.approx(5 * 4.4)
    assert nodes.each == pytest.approx(DISK), "of the machine only the disk is left"
    assert not cost_of(spec, PRICES).unknown


def test_a_reservation_of_n1_machines_has_its_gpus() -> None:
    gpu = {"type": "nvidia-tesla-t4", "count": 2}
    entry = {"name": "t4", "zone": "us-central1-a", "machineType": "n1-standard-4", "count": 1, "accelerator": gpu}
    result = cost_of(fleet(reservations=[entry]), list_prices()).lines[-1]
    assert result.each == pytest.approx(4 * 0.0475 + 2 * 0.35)


def test_what_has_no_price_is_named_and_not_in_the_sums() -> None:
    limits = {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 3}}
    spec = fleet({"name": "a100", "machineType": "a2-highgpu-1g", **limits})
    cost, known = cost_of(spec, PRICES), cost_of(fleet(), PRICES)
    assert cost.unknown == (
        "the price of a2-highgpu-1g in us-central1, onDemand",
        "the price of nvidia-tesla-a100 in us-central1, onDemand",
    )
    assert cost.in_use == pytest.approx(known.in_use + 3 * DISK)


def test_what_does_not_follow_from_the_file_is_named() -> None:
    data = company_data()
    unknown = cost_of(parse_fleet(data), list_prices()).unknown
    assert any(text.startswith(f"commitment {data['commitments'][0]['name']}: ") for text in unknown)
    pods = "pods on worker-a (Autopilot), which are billed by their requests"
    assert pods in cost_of(parse_fleet(fleet_data()), PRICES).unknown
    limits = [{"resourceType": name, "maximum": 8} for name in ("cpu", "memory")]
    spec = fleet(cluster={"nodeAutoProvisioning": {"resourceLimits": limits}})
    (auto,) = cost_of(spec, PRICES).unknown
    assert (
        auto
        == f"nodes of {spec.cluster_names[0]} by auto-provisioning, up to 8 cpu and 8 memory with the pools of the file"
    )
    elsewhere = {"name": "l4", "nodeCount": 1, "capacity": {"type": "reserved", "reservation": "theirs"}}
    assert cost_of(fleet(elsewhere), PRICES).unknown == ("reservation theirs, which is not in this file",)


def test_sums_by_cluster_and_class_are_the_whole() -> None:
    cost = cost_of(parse_fleet(company_data()), list_prices())
    for key in (lambda line: line.cluster, lambda line: line.kind):
        sums = cost.by(key)
        assert len(sums) > 2
        assert tuple(map(sum, zip(*sums.values(), strict=True))) == pytest.approx((cost.always, cost.in_use))


def test_a_change_says_what_it_costs() -> None:
    before = fleet({"name": "l4", "nodeCount": 1})
    after = fleet({"name": "l4", "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 2}})
    changes = [(item.area, item.path, item.text) for item in compare_costs(before, after, PRICES)]
    assert changes == [
        (
            "cost",
            f"clusters[{before.cluster_names[0]}]",
            "6.70 -> 1.30 USD an hour used or not, 2.40 -> 13.20 USD an hour more while all nodes are in use",
        ),
        (
            "cost",
            "",
            "in all 4,891.00 -> 949.00 USD a month used or not, 1,752.00 -> 9,636.00 USD a month more while all nodes "
            "are in use; prices of test prices",
        ),
    ]
    assert list(compare_costs(after, after, PRICES)) == []
    (unknown,) = [
        entry.text
        for entry in compare_costs(before, fleet({"name": "l4", "nodeCount": 1, "machineType": "g2-x"}), PRICES)
        if entry.text.startswith("not in")
    ]
    assert unknown == "not in these sums: the price of g2-x in us-central1, onDemand"


def test_a_change_of_what_has_no_price_says_so() -> None:
    before, after = (fleet({"name": "l4", "nodeCount": count, "machineType": "g2-x"}) for count in (1, 2))
    assert "not in these sums: the price of g2-x in us-central1, onDemand" in [
        item.text for item in compare_costs(before, after, PRICES)
    ]
