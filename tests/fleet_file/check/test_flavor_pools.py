"""Flavors and the nodes behind them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, problems, standalone_data
from tests.fleet_file.pool_builders import ACCELERATOR, FLAVORS, SPOT_LABEL, ZONES, hand, limits, nap, pools_data


def p(index: int, field: str) -> str:
    """Path of a field of a pool."""
    return f"nodePools/{index}/{field}"


def test_autopilot_makes_nodes_with_a_custom_label_for_pods_that_tolerate_it() -> None:
    labelled = changed(fleet_data(), {"flavors/1/nodeLabels": {"team": "a"}})
    [result] = problems(labelled)
    assert result.startswith('warning: flavors[t4].nodeLabels[team]: "a" is a custom label')
    tolerated = {"flavors/1/tolerations": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    assert problems(changed(labelled, tolerated)) == []


REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown pool": (
        {"flavors/1/nodePool": "ondemand"},
        [
            (
                "warning: nodePools[on-demand]: no flavor leads to this pool, so no job of a queue runs there; add a "
                "flavor with nodePool: on-demand, or remove the pool"
            ),
            "flavors[on-demand].nodePool: there is no node pool ondemand; did you mean on-demand?",
        ],
    ),
    "pool not there": (
        {
            "clusters": [
                {"name": "manager", "role": "manager", "region": "us-central1"},
                {"name": "batch", "role": "worker", "region": "us-central1", "mode": "Standard", "zones": ZONES},
                {"name": "other", "role": "worker", "region": "us-central1", "mode": "Standard", "zones": ZONES},
            ],
            "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-01-01"}},
            **{p(i, "clusters"): ["batch"] for i in range(6)},
            "flavors/1/clusters": ["batch", "other"],
        },
        [
            (
                "flavors[on-demand].nodePool: on-demand is not on other, where the flavor is; add other to "
                "nodePools[on-demand].clusters, or leave other out of the flavor's"
            ),
            (
                "warning: clusterQueues[gpu].resourceGroups: no quota for ephemeral-storage, and a job that requests "
                "it is never admitted (Autopilot adds requests for it to every pod); cover ephemeral-storage too"
            ),
        ],
    ),
    "labels beside a pool": (
        {"flavors/1/nodeLabels": {"a": "b"}, "flavors/1/nodeTaints": [{"key": "a", "effect": "NoSchedule"}]},
        [
            "flavors[on-demand].nodeLabels: set, but nodePool gives it; remove it, or remove nodePool",
            "flavors[on-demand].nodeTaints: set, but nodePool gives it; remove it, or remove nodePool",
        ],
    ),
    "bad toleration": (
        {"flavors/1/tolerations": [{"operator": "Equal"}]},
        [
            ("flavors[on-demand].tolerations[0].operator: Equal, but there is no key; set a key, or Exists here"),
        ],
    ),
    "pool without flavor": (
        {"flavors/1": REMOVED, FLAVORS + "/1": REMOVED},
        [
            (
                "warning: nodePools[on-demand]: no flavor leads to this pool, so no job of a queue runs there; add a "
                "flavor with nodePool: on-demand, or remove the pool"
            ),
        ],
    ),
    "labels of no pool": (
        {"flavors/1": hand(nodeLabels={ACCELERATOR: "nvidia-l4", "team": "a"})},
        [
            (
                "warning: nodePools[on-demand]: no flavor leads to this pool, so no job of a queue runs there; add a "
                "flavor with nodePool: on-demand, or remove the pool"
            ),
            (
                'warning: flavors[on-demand].nodeLabels[team]: no node pool of batch has the label team="a" beside the '
                "others; on-demand does not have it; write nodePool: on-demand instead of nodeLabels, or add the "
                "label to a pool"
            ),
        ],
    ),
    "other accelerator": (
        {"flavors/1": hand(nodeLabels={ACCELERATOR: "nvidia-tesla-t4"})},
        [
            (
                "warning: nodePools[on-demand]: no flavor leads to this pool, so no job of a queue runs there; add a "
                "flavor with nodePool: on-demand, or remove the pool"
            ),
            (
                "warning: flavors[on-demand].nodeLabels[cloud.google.com/gke-accelerator]: no node pool of batch has "
                'the label cloud.google.com/gke-accelerator="nvidia-tesla-t4" beside the others; on-demand has '
                '"nvidia-l4"; write nodePool: on-demand instead of nodeLabels, or add the label to a pool'
            ),
        ],
    ),
    "taint not tolerated": (
        {
            "flavors/1": hand(nodeLabels={"cloud.google.com/gke-nodepool": "on-demand"}),
            p(1, "taints"): [
                {"key": "ondemand", "value": "true", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"},
            ],
        },
        [
            (
                "flavors[on-demand].tolerations: nodes of pool on-demand have the taint ondemand=true:NoSchedule, "
                "which admitted pods need not tolerate; write nodePool: on-demand instead of nodeLabels, or add a "
                "toleration, or the taint to nodeTaints so that only jobs that tolerate it come here"
            ),
        ],
    ),
    "taint value": (
        {
            "flavors/1": hand(
                nodeLabels={"cloud.google.com/gke-nodepool": "on-demand"},
                nodeTaints=[
                    {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
                    {"key": "x", "effect": "NoSchedule"},
                ],
            )
        },
        [
            (
                "warning: flavors[on-demand].nodeTaints[0]: nvidia.com/gpu=true:NoSchedule is a taint that no node "
                "of the flavor has; theirs is nvidia.com/gpu=present:NoSchedule; write what the nodes have, or "
                "remove it"
            ),
            (
                "warning: flavors[on-demand].nodeTaints[1]: x=:NoSchedule is a taint that no node of the flavor has; "
                "write what the nodes have, or remove it"
            ),
        ],
    ),
    "NAP without the accelerator": (
        nap(limits(nvidia_l4=None), nodeLabels={ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true"}),
        [
            (
                "warning: flavors[on-demand].nodeLabels[cloud.google.com/gke-accelerator]: there is no pool with these "
                "labels on batch, and GKE makes no nodes with nvidia-l4 there; add it to "
                "nodeAutoProvisioning.resourceLimits of batch, or add a node pool"
            ),
        ],
    ),
    "NAP unknown accelerator": (
        nap(nodeLabels={ACCELERATOR: "nvidia-l5", SPOT_LABEL: "true"}),
        [
            "warning: flavors[on-demand].nodeLabels[cloud.google.com/gke-accelerator]: nvidia-l5 is not a known "
            "accelerator of GKE; did you mean nvidia-l4?",
            "warning: flavors[on-demand].nodeLabels[cloud.google.com/gke-accelerator]: there is no pool with these "
            "labels on batch, and GKE makes no nodes with nvidia-l5 there; add it to "
            "nodeAutoProvisioning.resourceLimits of batch, or add a node pool",
        ],
    ),
    "NAP own label": (
        nap(nodeLabels={ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true", "team": "a"}),
        [
            (
                'flavors[on-demand].nodeLabels[team]: "a" is a custom label, with which GKE makes nodes only '
                "for pods that tolerate the taint of the same key and value; add the toleration {key: team, "
                "operator: Equal, value: a, effect: NoSchedule}"
            ),
        ],
    ),
    "NAP pool label": (
        nap(nodeLabels={ACCELERATOR: "nvidia-l4", "cloud.google.com/gke-nodepool": "x"}),
        [
            (
                "warning: flavors[on-demand].nodeLabels[cloud.google.com/gke-nodepool]: there is no node pool x on "
                "batch; name a node pool of this file with nodePool, or remove the label"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


HOST = "kubernetes.io/hostname"
FIXED = {p(1, "autoscaling"): REMOVED, p(1, "nodeCount"): 8}


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (["cloud.google.com/gce-topology-block", HOST], "; remove the level, or use machines that Google labels so"),
        (["topology.kubernetes.io/zones", HOST], "; did you mean topology.kubernetes.io/zone?"),
        (["example.com/rack", HOST], "; set it in nodePools[on-demand].labels, or remove the level"),
        (["topology.kubernetes.io/region", "topology.kubernetes.io/zone", HOST], None),
        (["cloud.google.com/gke-nodepool", HOST], None),
    ],
)
def test_levels_of_a_topology_are_labels_of_nodes(levels: list[str], said: str | None) -> None:
    topology = {"name": "racks", "levels": [{"nodeLabel": level} for level in levels]}
    result = problems(changed(pools_data(), {**FIXED, "topologies": [topology], "flavors/1/topologyName": "racks"}))
    begin = (
        f"warning: topologies[racks].levels[0].nodeLabel: {levels[0]} is a label that no node of pool on-demand has, "
        "by GKE or this file, and Kueue starts no job of flavor on-demand on such nodes"
    )
    assert result == ([begin + said] if said else [])


@pytest.mark.parametrize(("least", "warned"), [(0, True), (8, True), (24, False)])
def test_a_topology_has_the_nodes_that_are_there(least: int, warned: bool) -> None:
    topology = {"name": "hosts", "levels": [{"nodeLabel": HOST}]}
    limits = {p(1, "autoscaling"): {"totalMinNodeCount": least, "totalMaxNodeCount": 24}}
    result = problems(changed(pools_data(), {**limits, "topologies": [topology], "flavors/1/topologyName": "hosts"}))
    assert (
        result
        == [
            "warning: flavors[on-demand].topologyName: hosts: Kueue admits jobs of this flavor only onto nodes that "
            f"are there, so that pool on-demand stays at its minimum, {least} of 24 nodes; write nodeCount, or "
            "totalMinNodeCount as high as totalMaxNodeCount, or remove topologyName"
        ]
        * warned
    )


def test_a_check_asks_for_the_nodes_of_a_topology() -> None:
    topology = {"name": "hosts", "levels": [{"nodeLabel": HOST}]}
    assert problems(changed(pools_data(), {"topologies": [topology], "flavors/4/topologyName": "hosts"})) == []


def test_labels_of_the_system_pool_lead_to_it() -> None:
    changes = {"flavors/1": {"name": "on-demand", "nodeLabels": {"cloud.google.com/gke-nodepool": "system"}}}
    said = problems(changed(pools_data(), changes))
    assert any("nodeLabels: lead to the system pool of batch, which is for Kueue and the like" in text for text in said)


@pytest.mark.parametrize(
    "changes",
    [
        {p(1, "labels"): {"example.com/rack": "a"}},
        {p(1, "existing"): True, "clusters/0/existing": True},
        {p(1, "machineType"): "x9-new-8"},
    ],
)
def test_a_level_that_the_pool_or_another_sets_is_no_mistake(changes: dict[str, Any]) -> None:
    topology = {"name": "racks", "levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": HOST}]}
    data = changed(pools_data(), {"topologies": [topology], "flavors/1/topologyName": "racks", **changes})
    assert not [text for text in problems(data) if "topologies" in text]


def test_auto_provisioned_nodes() -> None:
    labels = {ACCELERATOR: "nvidia-l4", SPOT_LABEL: "true"}
    assert problems(changed(pools_data(), nap(nodeLabels=labels))) == []
    own = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    assert problems(changed(pools_data(), nap(nodeLabels={**labels, "team": "a"}, tolerations=[own]))) == []


def test_accelerators_of_autopilot_clusters() -> None:
    def said(accelerator: str, cluster: str) -> list[str]:
        changes = {
            "flavors/1/nodeLabels": {ACCELERATOR: accelerator},
            "flavors/1/clusters": [cluster],
            "clusters/2/region": "europe-west3",
        }
        return problems(changed(fleet_data(), changes))

    assert said("nvidia-l4", "worker-b") == []
    assert said("nvidia-l44", "worker-b") == [
        "warning: flavors[t4].nodeLabels[cloud.google.com/gke-accelerator]: nvidia-l44 is not a known accelerator "
        "of GKE; did you mean nvidia-l4?"
    ]
    assert said("nvidia-a100-80gb", "worker-b") == [
        "warning: flavors[t4].nodeLabels[cloud.google.com/gke-accelerator]: nvidia-a100-80gb is not known to be "
        "offered in europe-west3, the region of worker-b; use one of asia-southeast1, europe-west4, us-central1, "
        "us-east4, us-east5, or leave worker-b out of the flavor's clusters"
    ]


def test_a_pool_by_name_on_an_autopilot_cluster_leads_nowhere() -> None:
    labels = {ACCELERATOR: "nvidia-l4", "cloud.google.com/gke-nodepool": "l4"}
    [result] = problems(changed(fleet_data(), {"flavors/1/nodeLabels": labels, "flavors/1/clusters": ["worker-b"]}))
    assert result == (
        "flavors[t4].nodeLabels[cloud.google.com/gke-nodepool]: l4 is given, but on worker-b Autopilot makes and "
        "names the node pools itself, so pods of this flavor never start there; select nodes by "
        "another label, such as cloud.google.com/gke-accelerator, or leave worker-b out of the flavor's clusters"
    )


@pytest.mark.parametrize(
    ("label", "value", "said"),
    [
        (SPOT_LABEL, "true", None),
        ("cloud.google.com/compute-class", "Balanced", None),
        ("cloud.google.com/reservation-name", "mine", None),
        ("topology.kubernetes.io/zone", "europe-west4-ai1a", None),
        (
            "cloud.google.com/gke-accelarator",
            "nvidia-l4",
            "cloud.google.com/gke-accelarator is a label that GKE gives no node; did you mean "
            "cloud.google.com/gke-accelerator?",
        ),
        (SPOT_LABEL, "yes", '"yes" is a value that GKE gives no node; write "true"'),
        (
            "topology.kubernetes.io/zone",
            "us-east4-a",
            "us-east4-a is not in europe-west4, the region of worker-b; name a zone there, or leave worker-b out of "
            "the flavor's clusters",
        ),
    ],
)
def test_labels_that_autopilot_has_no_nodes_for(label: str, value: str, said: str | None) -> None:
    changes = {"flavors/1/nodeLabels": {label: value}}
    result = [text for text in problems(changed(fleet_data(), changes)) if "nodeLabels" in text]
    at = f"flavors[t4].nodeLabels[{label}]: "
    assert [text.removeprefix("warning: ").removeprefix(at) for text in result] == ([said] if said else [])


def test_a_new_standard_cluster_without_pools_has_no_nodes_for_jobs() -> None:
    changes = {"clusters/0/mode": "Standard"}
    assert problems(changed(standalone_data(), changes)) == [
        "warning: flavors[l4]: there are no node pools on only, and GKE makes none there; add a node pool, or "
        "nodeAutoProvisioning to the cluster"
    ]
    assert problems(changed(standalone_data(), changes | {"clusters/0/existing": True})) == []


def test_a_flavor_by_hand_does_not_wait_for_a_calendar_reservation() -> None:
    by_hand = {"name": "calendar", "nodeLabels": {"cloud.google.com/gke-nodepool": "calendar"}}
    assert problems(changed(pools_data(), {"flavors/5": by_hand})) == [
        "warning: flavors[calendar].nodeLabels: lead to calendar only, which waits for its calendar reservation, and "
        "the quota of a flavor by hand stays open meanwhile; write nodePool: calendar instead of nodeLabels, which "
        "closes it until then"
    ]
    active = {"flavors/5": by_hand, "nodePools/5/capacity/active": True}
    assert problems(changed(pools_data(), active)) == []


STRATEGY, CLIENTS = "cloud.google.com/gke-gpu-sharing-strategy", "cloud.google.com/gke-max-shared-clients-per-gpu"
PARTITION = "cloud.google.com/gke-gpu-partition-size"
T4 = {ACCELERATOR: "nvidia-tesla-t4"}


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({STRATEGY: "mps"}, f"flavors[t4].nodeLabels[{STRATEGY}]: is given alone, but Autopilot refuses pods"),
        ({CLIENTS: "4"}, f"flavors[t4].nodeLabels[{CLIENTS}]: is given alone, but Autopilot refuses pods"),
        (
            {STRATEGY: "TIME_SHARING", CLIENTS: "64"},
            f"flavors[t4].nodeLabels[{CLIENTS}]: is 64, but between 2 and 48 containers share a GPU",
        ),
        (
            {STRATEGY: "slices", CLIENTS: "4"},
            f"flavors[t4].nodeLabels[{STRATEGY}]: is slices, which is not a strategy of GKE; use time-sharing or mps",
        ),
        ({PARTITION: "1g.5gb"}, f"flavors[t4].nodeLabels[{PARTITION}]: is 1g.5gb, but GKE does not divide"),
    ],
)
def test_autopilot_makes_shares_that_gke_has(labels: dict[str, str], problem: str) -> None:
    result = problems(changed(fleet_data(), {"flavors/1/nodeLabels": T4 | labels}))
    assert any(item.startswith(problem) for item in result), result


def test_autopilot_makes_shares_for_pods_that_select_both_labels() -> None:
    shared = T4 | {STRATEGY: "time-sharing", CLIENTS: "4"}
    assert problems(changed(fleet_data(), {"flavors/1/nodeLabels": shared})) == []


@pytest.mark.parametrize(("shares", "gpus"), [(16, None), (17, 5)])
def test_limits_of_auto_provisioning_count_whole_gpus(shares: int, gpus: int | None) -> None:
    labels = {ACCELERATOR: "nvidia-tesla-t4", STRATEGY: "time-sharing", CLIENTS: "4"}
    changes = nap(limits(**{"nvidia-tesla-t4": 4}), gpus=shares, nodeLabels=labels)
    result = [item for item in problems(changed(pools_data(), changes)) if "resourceLimits" in item]
    assert result == [] if gpus is None else f"nvidia-tesla-t4 4, but queues may use {gpus};" in result[0]


def test_a_flavor_of_whole_and_shared_gpus_is_warned_of() -> None:
    shared = {"sharing": {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}
    changes = {p(2, "accelerator"): shared, "flavors/1": hand(nodeLabels={ACCELERATOR: "nvidia-l4"})}
    result = problems(changed(pools_data(), changes))
    assert any("have different numbers of shares (" in item and "spot 4" in item for item in result), result


def test_what_is_wrong_on_several_clusters_alike_is_said_once_of_all() -> None:
    labels = {ACCELERATOR: "nvidia-l4", "cloud.google.com/gke-nodepool": "l4"}
    data = changed(fleet_data(), {"flavors/1/nodeLabels": labels, "flavors/1/clusters": ["worker-a", "worker-b"]})
    assert [item for item in problems(data) if "l4 is given" in item] == [
        "flavors[t4].nodeLabels[cloud.google.com/gke-nodepool]: l4 is given, but on worker-a and worker-b Autopilot "
        "makes and names the node pools itself, so pods of this flavor never start there; select nodes by another "
        "label, such as cloud.google.com/gke-accelerator, or leave worker-a and worker-b out of the flavor's clusters"
    ]
