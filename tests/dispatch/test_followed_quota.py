"""Quotas that follow capacity: lost nodes are taken off what slack lends, then off the queues, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import examples
from kueue_admission.read.lost_capacity import LostCapacity
from kueue_admission.read.printed import PrintedNode
from kueue_fleet.dispatch.followed_quota import follow_capacity
from kueue_fleet.dispatch.node_states import NodeState, SteadyNodes, read_node
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.fleet_file.fleet_quotas import fleet_quotas
from kueue_fleet.settings.fleet_quotas import FleetQuotas

GPU, POOL = "nvidia.com/gpu", "cloud.google.com/gke-nodepool"
NOW = 1_800_000_000.0
ON_NODE = 8
"""GPUs."""


def queue(name: str, gpus: int, **more: Any) -> dict[str, Any]:
    quotas = [{"name": GPU, "nominalQuota": gpus, **({"lendingLimit": more.pop("lends")} if "lends" in more else {})}]
    group = {"coveredResources": [GPU], "flavors": [{"name": "h100", "resources": quotas}]}
    result = {"name": name, "cohortName": "all", "namespaceSelector": {}, "quotaFollows": "capacity"}
    return {**result, "resourceGroups": [group], **more}


def fleet(*queues: dict[str, Any], nodes: int = 4, **pool: Any) -> FleetSpec:
    """One cluster with a pool of `nodes` machines with eight GPUs each, or as `pool` says."""
    reserved = {"type": "reserved", "reservation": "own"}
    result = {"name": "h100", "machineType": "a3-highgpu-8g", "zones": ["us-central1-a"], "capacity": reserved}
    size = {} if "autoscaling" in pool else {"nodeCount": nodes}
    return parse_fleet(
        {
            "name": "lab",
            "project": "lab-project",
            "clusters": [{"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard"}],
            "nodePools": [{**result, **size, **pool}],
            "flavors": [{"name": "h100", "nodePool": "h100"}],
            "cohorts": [{"name": "all"}],
            "clusterQueues": list(queues),
            "controller": {"image": "example.com/controller:1"},
        }
    )


def node(name: str, out: str = "", gpus: int = ON_NODE, pool: str = "h100") -> NodeState:
    return NodeState(name, {POOL: pool}, {GPU: gpus}, out)


def nodes(well: int, out: int = 0) -> list[NodeState]:
    result = [node(f"n{index}") for index in range(well)]
    return [*result, *(node(f"x{index}", "NotReady") for index in range(out))]


def follow(spec: FleetSpec, *found: NodeState) -> tuple[dict[str, tuple[str, str | None]], tuple[LostCapacity, ...]]:
    """Nominal quota and lending limit of each queue."""
    followed = follow_capacity(fleet_quotas(spec), {"batch": found}, NOW)
    return amounts(followed.fleet), followed.lost


def amounts(quotas: FleetQuotas) -> dict[str, tuple[str, str | None]]:
    result = {}
    for entry in quotas.cluster_queues:
        [group] = quotas.quotas_on(entry, "batch")
        [quota] = group.flavors[0].resources
        lends = quota.lending_limit
        result[entry.name] = (quota.nominal_quota.plain, None if lends is None else lends.plain)
    return result


TEAMS = (queue("red", 16), queue("blue", 8), queue("slack", 8, slack=True))


def test_a_fleet_whose_nodes_are_there_is_itself() -> None:
    quotas = fleet_quotas(fleet(*TEAMS[:2]))
    followed = follow_capacity(quotas, {"batch": nodes(4)}, NOW)
    assert followed.fleet is quotas
    assert not followed.lost


def test_what_slack_lends_is_always_said_so_that_it_can_be_summed_up() -> None:
    result, lost = follow(fleet(*TEAMS), *nodes(4))
    assert (result["slack"], lost) == (("8", "8"), ())


def test_what_is_lost_is_taken_off_what_slack_lends_first() -> None:
    result, [lost] = follow(fleet(*TEAMS), *nodes(3, 1))
    assert result == {"red": ("16", None), "blue": ("8", None), "slack": ("8", "0")}
    assert (lost.amounts, lost.nodes) == (((GPU, "8"),), ("x0 (NotReady)",))


def test_a_gpu_that_a_node_offers_no_more_is_lost() -> None:
    result, _ = follow(fleet(*TEAMS), *nodes(3), node("half", gpus=7))
    assert result["slack"] == ("8", "7")


def test_more_than_slack_has_is_taken_off_the_queues_by_their_share() -> None:
    result, _ = follow(fleet(*TEAMS), *nodes(2, 2))
    assert result == {"red": ("11", None), "blue": ("5", None), "slack": ("8", "0")}


def test_what_else_the_file_says_of_a_cluster_stays() -> None:
    red, reserve = queue("red", 99), queue("reserve", 99, slack=True)
    for result, own in ((red, {"nominalQuota": 24, "borrowingLimit": 5}), (reserve, {"nominalQuota": 8})):
        result["resourceGroups"][0]["flavors"][0]["resources"][0]["perCluster"] = {"batch": own}
    followed = follow_capacity(fleet_quotas(fleet(red, reserve)), {"batch": nodes(2, 2)}, NOW).fleet
    assert amounts(followed) == {"red": ("16", None), "reserve": ("8", "0")}
    [group] = followed.quotas_on(followed.cluster_queues[0], "batch")
    assert str(group.flavors[0].resources[0].borrowing_limit) == "5"


def test_queues_that_do_not_follow_keep_their_quota() -> None:
    spec = fleet(queue("red", 16), queue("blue", 16, quotaFollows="file"))
    assert follow(spec, *nodes(3, 1))[0] == {"red": ("8", None), "blue": ("16", None)}


def test_a_queue_lends_no_more_than_it_has() -> None:
    spec = fleet(queue("red", 16, lends=12), queue("blue", 16))
    assert follow(spec, *nodes(1, 3))[0] == {"red": ("4", "4"), "blue": ("4", None)}


def test_spare_nodes_are_lost_first() -> None:
    assert follow(fleet(queue("red", 16)), *nodes(2, 2)) == ({"red": ("16", None)}, ())


def test_missing_nodes_of_a_fixed_pool_are_lost_and_said() -> None:
    result, [lost] = follow(fleet(queue("red", 32)), *nodes(3))
    assert result == {"red": ("24", None)}
    assert lost.nodes == ("1 of 4 nodes of h100 are missing",)


def test_nodes_of_an_autoscaled_pool_may_still_come() -> None:
    spec = fleet(queue("red", 32), autoscaling={"totalMaxNodeCount": 4}, capacity={"type": "spot"})
    assert follow(spec, *nodes(1))[0] == {"red": ("32", None)}
    # A broken one is counted by the pool's limit as long as it is there.
    assert follow(spec, *nodes(1, 1))[0] == {"red": ("24", None)}


def test_a_reservation_is_shared_by_pools() -> None:
    spec = fleet(queue("red", 32))
    data = spec.wire()
    data["reservations"] = [{"name": "own", "zone": "us-central1-a", "machineType": "a3-highgpu-8g", "count": 5}]
    other = {**data["nodePools"][0], "name": "other", "nodeCount": None, "autoscaling": {"totalMaxNodeCount": 4}}
    mine = {**data["nodePools"][0], "nodeCount": None, "autoscaling": {"totalMaxNodeCount": 4}}
    spec = FleetSpec.model_validate({**data, "nodePools": [mine, other]})
    result, [lost] = follow(spec, node("a", pool="other"), node("b", pool="other"))
    assert result == {"red": ("24", None)}
    assert lost.nodes == ("own has machines for 3 nodes of h100",)


def test_without_a_pool_in_the_file_what_broken_nodes_have_is_lost() -> None:
    data = fleet(queue("red", 32)).wire()
    data |= {"nodePools": [], "flavors": [{"name": "h100", "nodeLabels": {POOL: "made-by-hand"}}]}
    spec = FleetSpec.model_validate(data)
    broken = node("x", "Unschedulable", pool="made-by-hand")
    assert follow(spec, node("y", pool="made-by-hand"), broken)[0] == {"red": ("24", None)}


def test_a_calendar_pool_opens_and_closes_by_its_dates_alone() -> None:
    start = datetime.fromtimestamp(NOW, UTC)
    calendar = {"type": "calendar", "reservation": "june", "start": start.isoformat(), "duration": "336h"}
    spec = fleet(queue("red", 32), capacity=calendar)
    # As `pulumi up` decided it on another day.
    quotas = fleet_quotas(fleet_at(spec, start))
    for hours, quota in ((-1, "0"), (1, "32"), (335, "32"), (337, "0")):
        followed = follow_capacity(quotas.at(start + timedelta(hours=hours)), {"batch": nodes(4)}, NOW)
        assert amounts(followed.fleet) == {"red": (quota, None)}


def usable(found: Mapping[str, tuple[str, str | None]], slack: Sequence[str]) -> int:
    """What queues may use in all: their own, and what slack lends."""
    return sum(int((lends or nominal) if name in slack else nominal) for name, (nominal, lends) in found.items())


@settings(max_examples=examples(100), deadline=None)
@given(
    teams=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    slack=st.lists(st.integers(0, 20), max_size=1),
    well=st.integers(0, 12),
    out=st.integers(0, 3),
)
def test_never_above_the_file_nor_above_capacity_and_nothing_is_given_away(
    teams: list[int], slack: list[int], well: int, out: int
) -> None:
    queues = [queue(f"t{index}", gpus) for index, gpus in enumerate(teams)]
    queues += [queue("slack", gpus, slack=True) for gpus in slack]
    total = sum(teams) + sum(slack)
    spec = fleet(*queues, nodes=max(-(-total // ON_NODE), 1))
    before, (result, _) = amounts(fleet_quotas(spec)), follow(spec, *nodes(well, out))
    assert usable(result, ["slack"]) == min(total, well * ON_NODE)
    assert all(int(result[name][0]) <= int(before[name][0]) for name in result)
    teams_now = sum(int(result[f"t{index}"][0]) for index in range(len(teams)))
    assert teams_now == min(sum(teams), well * ON_NODE)


@settings(max_examples=examples(100), deadline=None)
@given(teams=st.lists(st.integers(0, 40), min_size=1, max_size=5), well=st.integers(0, 12))
def test_one_node_less_is_more_for_nobody(teams: list[int], well: int) -> None:
    spec = fleet(*(queue(f"t{index}", gpus) for index, gpus in enumerate(teams)), nodes=max(-(-sum(teams) // 8), 1))
    more, less = follow(spec, *nodes(well + 1))[0], follow(spec, *nodes(well))[0]
    assert all(int(less[name][0]) <= int(more[name][0]) for name in more)


def printed(**changes: Any) -> PrintedNode:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": when(-600)}
    result: dict[str, Any] = {
        "metadata": {"name": "n", "labels": {POOL: "h100"}},
        "spec": {},
        "status": {"allocatable": {GPU: "8", "cpu": "7910m"}, "conditions": [condition]},
    }
    for path, value in changes.items():
        part, _, field = path.partition("_")
        result[part][field] = value
    return PrintedNode.of(result)


def when(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unready(seconds: float) -> PrintedNode:
    return printed(status_conditions=[{"type": "Ready", "status": "Unknown", "lastTransitionTime": when(-seconds)}])


@pytest.mark.parametrize(
    ("given_node", "out"),
    [
        (printed(), ""),
        (unready(5), ""),
        (unready(25), "NotReady"),
        (printed(spec_unschedulable=True), "Unschedulable"),
        (printed(status_conditions=[{"type": "KernelDeadlock", "status": "True"}]), "KernelDeadlock"),
    ],
)
def test_which_nodes_are_out(given_node: PrintedNode, out: str) -> None:
    state = read_node(given_node, NOW)
    assert state is not None
    assert state.out == out


@pytest.mark.parametrize(
    "gone",
    [
        printed(metadata_deletionTimestamp=when(-1)),
        printed(spec_taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]),
    ],
)
def test_a_node_on_its_way_out_is_gone(gone: PrintedNode) -> None:
    assert read_node(gone, NOW) is None


def test_a_node_that_comes_and_goes_stays_out() -> None:
    steady = SteadyNodes()
    seen = [
        steady.steady("batch", [node("n", out)], NOW + seconds)[0].out
        for seconds, out in ((0, "NotReady"), (10, ""), (25, "NotReady"), (40, ""), (54, ""), (56, ""))
    ]
    assert seen == ["NotReady"] * 5 + [""]


def test_a_new_node_may_still_install_its_driver() -> None:
    new = NodeState("n", {}, {}, ready_since=NOW - 60)
    assert (new.offers(GPU, 8, NOW), new.offers(GPU, 8, NOW + 600)) == (8, 0)
