"""What applying a change does to what runs: said first, in words, and of everything that goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.fleet_file.builders import REMOVED, changed, fleet_data, standalone_data
from tests.gcp import test_second_plan

import google_cloud
from company_fleet import company_data
from kueue_fleet.diff import compare_fleets
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.google.resource_kinds import RESERVATIONS
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from pulumi_mocks import Recorded

LIMITS = [{"resourceType": name, "maximum": 100_000} for name in ("cpu", "memory", "nvidia-l4", "nvidia-h100-80gb")]
NEW_NAME = "Kueue does not let it change, and `pulumi up` fails: give it a new name"
ZONES = ["asia-southeast1-b", "asia-southeast1-c"]
EVERYWHERE = "manager, worker-a and worker-b"
QUEUE_GOES = (
    "running jobs continue and keep their quota until they end; `pulumi up` waits ten minutes for that, and then fails"
)


def consequences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """They come first."""
    result = compare_fleets(parse_fleet(old), parse_fleet(new))
    told = [str(item) for item in result if item.area == "consequences"]
    assert [str(entry) for entry in result[: len(told)]] == told
    return told


def of(change: dict[str, Any], data: dict[str, Any] | None = None) -> list[str]:
    before = data or fleet_data()
    return consequences(before, changed(before, change))


def renamed_queue(data: dict[str, Any]) -> dict[str, Any]:
    return changed(
        data,
        {
            "clusterQueues/0/name": "sight",
            "teams/0/localQueues/0/clusterQueue": "sight",
            "localQueues/0/clusterQueue": "sight",
        },
    )


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing that runs is touched": ({"clusters/1/releaseChannel": "RAPID", "labels": {"a": "b"}}, []),
    "a team goes": (
        {"teams/0": REMOVED},
        [f"teams[team-vision]: namespace team-vision is deleted on {EVERYWHERE}, with all jobs in it"],
    ),
    "a namespace of a team goes": (
        {"teams/0/namespaces": ["vision-a", "vision-b"]},
        [f"teams[team-vision]: namespace team-vision is deleted on {EVERYWHERE}, with all jobs in it"],
    ),
    "a team gets another name, and keeps its namespace": (
        {"teams/0/name": "sight", "teams/0/namespaces": ["team-vision"]},
        [
            "teams[team-vision]: namespace team-vision is to be made for teams[sight] now, and `pulumi up` fails, "
            "since it would be there already; keep the owner, or remove it first, with all jobs"
        ],
    ),
    "the last LocalQueue of a namespace goes": (
        {"localQueues": [{"namespace": "shared", "name": "trial", "clusterQueue": "vision"}]},
        [
            "localQueues[default/trial]: waiting jobs are not admitted until a LocalQueue of that name exists "
            "again"
        ],
    ),
    "a LocalQueue leads elsewhere": (
        {"teams/0/localQueues/0/clusterQueue": "language"},
        [
            "teams[team-vision].localQueues[main]: waiting jobs move to language; running jobs stay in vision"
        ],
    ),
    "a queue goes from one worker": (
        {"clusterQueues/1/clusters": ["worker-a"]},
        [
            f"clusterQueues[language]: the queue is deleted on worker-b: {QUEUE_GOES}; waiting jobs are no longer "
            "admitted there",
            "clusters[worker-b]: gets no more jobs of language; drain it first: docs/tasks/drain-a-worker.md",
        ],
    ),
    "a queue is drained": (
        {"clusterQueues/0/stopPolicy": "HoldAndDrain"},
        ["clusterQueues[vision].stopPolicy: every running job of the queue is evicted"],
    ),
    "a LocalQueue is drained": (
        {"localQueues/0/stopPolicy": "HoldAndDrain"},
        ["LocalQueue default/trial: every running job that came by it is evicted"],
    ),
    "Kueue moves": (
        {"kueue": {"namespace": "batch-system"}},
        [
            f"kueue.namespace: Kueue is uninstalled on {EVERYWHERE} and installed again, and with it go all queues and "
            f"Workloads; running jobs are stopped, and queue again; it is protected on {EVERYWHERE}: set "
            "deletionProtection to false and apply that first"
        ],
    ),
    "another Kueue": (
        {"kueue": {"version": "0.19.1"}},
        [
            f"kueue.version: Kueue 0.19.2 becomes 0.19.1 and restarts on {EVERYWHERE}: no job is admitted until it "
            "has; running jobs continue"
        ],
    ),
    "another Configuration": (
        {"kueue": {"configuration": {"featureGates": {"FlavorFungibility": False}}}},
        [
            f"kueue.configuration: Kueue restarts on {EVERYWHERE}: no job is admitted until it has; running jobs "
            "continue"
        ],
    ),
    "another Configuration on one cluster": (
        {"clusters/1/kueue": {"configuration": {"featureGates": {"FlavorFungibility": False}}}},
        ["kueue.configuration: Kueue restarts on worker-a: no job is admitted until it has; running jobs continue"],
    ),
    "JobSet goes": (
        {"jobSet": {"enabled": False}},
        [f"jobSet.enabled: JobSet is uninstalled on {EVERYWHERE}: jobs of JobSets no longer start or end"],
    ),
    "credentials without tokens": (
        {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}},
        [
            "multiKueue.credentials.type: Kueue on the manager restarts, and until it has, it does not reach the "
            "workers: for these minutes no job starts; running jobs continue, unless it takes longer than 15m"
        ],
    ),
    "a queue leaves its cohort": (
        {"clusterQueues/0/cohortName": REMOVED},
        [
            "clusterQueues[vision].cohortName: it borrows nothing from the other queues of research any more, and "
            "lends them nothing"
        ],
    ),
    "another dispatcher": (
        {"multiKueue/dispatcher": "Incremental"},
        ["multiKueue.dispatcher: Kueue on the manager restarts with another Configuration"],
    ),
    "another fleet": (
        {"name": "other"},
        ["name: these are two fleets; applied over the first, the second makes everything again, in other"],
    ),
    "a check of another controller": (
        {"admissionChecks/0": {"name": "dws", "controllerName": "example.com/own"}},
        [f"admissionChecks[dws].controllerName: {NEW_NAME}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES)
def test_consequences(change: dict[str, Any], expected: list[str]) -> None:
    assert of(change) == expected


def test_nodes_go_with_the_zones_of_their_cluster() -> None:
    one, two = (changed(company_data(), {"clusters/3/zones": zones}) for zones in (ZONES[:1], ZONES))
    gone = f"its nodes in {ZONES[1]} are removed, with"
    end = f"on worker-asia-southeast1 {gone} the jobs on them"
    of_all = [text for text in consequences(two, one) if text.endswith(end)]
    assert [text.partition(":")[0] for text in of_all] == [
        f"nodePools[{name}]" for name in ("l4-flex", "l4-spot", "l4-on-demand", "h100-shared")
    ]
    system = f"clusters[worker-asia-southeast1].systemPool: on worker-asia-southeast1 {gone} Kueue on them"
    assert system in consequences(two, one)
    assert consequences(one, two) == []


def test_a_new_highest_class_gives_teams_the_former_one() -> None:
    classes = [{"name": name, "value": value} for name, value in (("low", 1), ("urgent", 10), ("critical", 100))]
    team = {
        "name": "own",
        "localQueues": [{"name": "main", "clusterQueue": "vision"}],
        "allowedPriorityClasses": ["low"],
    }
    data = changed(fleet_data(), {"workloadPriorityClasses": classes[:2], "teams/+": team})
    more = changed(data, {"workloadPriorityClasses": classes})
    default = "by default, all classes but the highest of each kind"
    assert consequences(data, more) == [f"teams: jobs of team-vision and team-language may name urgent now: {default}"]
    assert consequences(more, data) == [
        f"teams: jobs of team-vision and team-language may no longer name urgent: {default}"
    ]


def test_without_the_fleets_dispatcher_nothing_keeps_regions_and_gives_quota_back() -> None:
    external = {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
    data = fleet_data()
    data |= {"multiKueue": data["multiKueue"] | external, "controller": {"image": "example.com/c:1"}}
    assert of({"multiKueue/dispatcher": "AllAtOnce", "multiKueue/external": REMOVED}, data) == [
        "multiKueue.dispatcher: Kueue on the manager restarts with another Configuration; jobs run in any region, "
        "whatever allowedRegions or their own label says; one that no worker can hold keeps its quota on the manager"
    ]


def test_a_renamed_queue_says_what_becomes_of_its_jobs() -> None:
    assert consequences(fleet_data(), renamed_queue(fleet_data())) == [
        f"clusterQueues[vision]: the queue is deleted on {EVERYWHERE}: {QUEUE_GOES}; waiting jobs move to sight"
    ]


def test_what_has_a_topology_cannot_be_changed_under_its_name() -> None:
    data = changed(
        fleet_data(),
        {
            "topologies": [{"name": "racks", "levels": [{"nodeLabel": "rack"}]}],
            "flavors/0/topologyName": "racks",
        },
    )
    change = {"topologies/0/levels/0/nodeLabel": "block", "flavors/0/nodeLabels": {"a": "b"}}
    assert of(change, data) == [
        f"topologies[racks].levels: {NEW_NAME}",
        f"flavors[l4]: with a topologyName, {NEW_NAME}",
    ]
    assert of({"flavors/0/nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}, data) == []


def test_a_namespace_without_a_team_goes_with_its_last_local_queue() -> None:
    data = changed(standalone_data(), {"localQueues/0/namespace": "shared"})
    assert of({"localQueues/0/namespace": "other"}, data) == [
        "localQueues: namespace shared is deleted on only, with all jobs in it"
    ]


KEY = "projects/keys-1/locations/us-east4/keyRings/r/cryptoKeys/k"
PROTECTED = "; it is protected: set its deletionProtection to false and apply that first"
LOSES_JOBS = "with its nodes and the jobs on them"
L4_FLEX, L4_SPOT, A100 = "nodePools/1", "nodePools/2", "nodePools/5"
AGAIN = "deleted and made again, with Kueue and every job"
WORKERS = "worker-europe-west4, worker-us-east4 and worker-asia-southeast1"

EXISTING = {"name": "vpc", "subnets": {"europe-west4": {"name": "a"}, "us-east4": {"name": "b"}}}

CLOUD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a cluster goes": (
        {"clusters/2": REMOVED, "flavors/1/clusters": ["worker-a"]},
        [
            "clusters[worker-b]: worker in europe-west4 is deleted, with Kueue and every job on it; drain it first: "
            f"docs/tasks/drain-a-worker.md{PROTECTED}"
        ],
    ),
    "a cluster moves": (
        {"clusters/1/region": "us-west1"},
        [f"clusters[worker-a].region: us-east4 -> us-west1: worker-a is {AGAIN}{PROTECTED}"],
    ),
    "a cluster gets nodes of its own": (
        {"clusters/1/mode": "Standard", "clusters/1/deletionProtection": False},
        [f"clusters[worker-a].mode: Autopilot -> Standard: worker-a is {AGAIN}{PROTECTED}"],
    ),
    "a cluster is somebody else's from now on": (
        {"clusters/1/existing": True},
        [
            "clusters[worker-a].existing: false -> true: Pulumi deletes the cluster that it made, with everything on "
            f"it; take it out of the stack's state first, with `pulumi state delete`{PROTECTED}"
        ],
    ),
    "another network": (
        {"network": {"name": "batch"}},
        [f"network.name: test-fleet -> batch: {EVERYWHERE} are {AGAIN}{PROTECTED}"],
    ),
    "a network that exists": (
        {"network": {"existing": EXISTING}},
        [f"network.existing.name: test-fleet -> vpc: {EVERYWHERE} are {AGAIN}{PROTECTED}"],
    ),
    "a range for Services": (
        {"network": {"serviceRanges": {"us-east4": "192.168.0.0/24"}}},
        [f"network.serviceRanges[us-east4]: GKE's own -> 192.168.0.0/24: worker-a is {AGAIN}{PROTECTED}"],
    ),
}
POOLS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing that Google cannot change": (
        {f"{L4_SPOT}/labels": {"a": "b"}, f"{L4_SPOT}/autoscaling/totalMaxNodeCount": 14},
        [],
    ),
    "a pool goes": (
        {A100: REMOVED, "flavors/5": REMOVED, "clusterQueues/0/resourceGroups/0/flavors/5": REMOVED},
        [f"nodePools[a100-compact]: on worker-europe-west4 it is deleted, {LOSES_JOBS}{PROTECTED}"],
    ),
    "another class of capacity": (
        {f"{L4_SPOT}/capacity": {"type": "onDemand"}},
        [
            f"nodePools[l4-spot]: on {WORKERS} it is deleted and made again, {LOSES_JOBS}: capacity spot -> onDemand"
            f"{PROTECTED}"
        ],
    ),
    "another life of flex-start nodes": (
        {f"{L4_FLEX}/capacity/maxRunDuration": "24h"},
        [
            f"nodePools[l4-flex]: on {WORKERS} it is deleted and made again, {LOSES_JOBS}: capacity flexStart for 72h, "
            f"queued -> flexStart for 24h, queued{PROTECTED}"
        ],
    ),
    "a pool that is not protected": (
        {f"{L4_SPOT}/capacity": {"type": "onDemand"}, f"{L4_SPOT}/deletionProtection": False},
        [
            f"nodePools[l4-spot]: on {WORKERS} it is deleted and made again, {LOSES_JOBS}: capacity spot -> onDemand"
            f"{PROTECTED}"
        ],
    ),
    "other disks' key": (
        {"clusters/2/diskEncryptionKey": REMOVED},
        [
            "clusters[worker-us-east4].diskEncryptionKey: on worker-us-east4 every node pool is deleted and made "
            f"again, the system pool too, with the jobs on their nodes{PROTECTED}"
        ],
    ),
    "nodes as another account": (
        {"clusters/2/nodeServiceAccount": "gpu-nodes@lab-project.iam.gserviceaccount.com"},
        [
            "clusters[worker-us-east4].nodeServiceAccount: on worker-us-east4 every node pool is deleted and made "
            f"again, the system pool too, with the jobs on their nodes{PROTECTED}"
        ],
    ),
    "other nodes for Kueue": (
        {"clusters/2/systemPool": {"machineType": "n2-standard-4", "spot": True}},
        [
            "clusters[worker-us-east4].systemPool: on worker-us-east4 it is deleted and made again, with its nodes and "
            f"Kueue on them: capacity onDemand -> spot{PROTECTED}"
        ],
    ),
    "a smaller subnet": (
        {"network": {"ranges": {"us-east4": "10.150.0.0/22"}}},
        [
            "network.ranges[us-east4]: 10.150.0.0/20 -> 10.150.0.0/22: `pulumi up` fails, since a range that is in use "
            "can only grow"
        ],
    ),
    "other ranges of pods": (
        {"network": {"podRanges": {"us-east4": "172.24.0.0/16"}}},
        [
            "network.podRanges[us-east4]: 10.22.0.0/15 -> 172.24.0.0/16: `pulumi up` fails, since a range that is in "
            "use stays"
        ],
    ),
    "a larger subnet": ({"network": {"ranges": {"us-east4": "10.150.0.0/19"}}}, []),
    "what stays in Google Cloud": (
        {"clusters/2/fleetMembership": False, "clusters/2/rbacSecurityGroup": REMOVED},
        [
            "clusters[worker-us-east4].fleetMembership: it stays a member of the project's GKE fleet: end that with "
            "`gcloud container fleet memberships unregister`",
            "clusters[worker-us-east4].rbacSecurityGroup: gke-security-groups@company.test keeps its rights: revoke "
            'them with `gcloud container clusters update worker-us-east4 --location us-east4 --security-group=""`',
        ],
    ),
    "drivers": (
        {f"{L4_SPOT}/accelerator": {"driverVersion": "LATEST"}},
        [
            f"nodePools[l4-spot]: on {WORKERS} it is deleted and made again, {LOSES_JOBS}: driverVersion DEFAULT -> "
            f"LATEST{PROTECTED}"
        ],
    ),
    "pods on a node": (
        {f"{L4_SPOT}/perCluster": {"worker-us-east4": {"maxPodsPerNode": 32}}},
        [
            f"nodePools[l4-spot]: on worker-us-east4 it is deleted and made again, {LOSES_JOBS}: maxPodsPerNode none "
            f"-> 32{PROTECTED}"
        ],
    ),
    "machines with other GPUs": (
        {f"{L4_SPOT}/machineType": "g2-standard-48"},
        [
            f"nodePools[l4-spot]: on {WORKERS} it is deleted and made again, {LOSES_JOBS}: GPUs on a node 2 -> 4"
            f"{PROTECTED}"
        ],
    ),
    "larger disks": (
        {f"{L4_SPOT}/diskSizeGb": 200},
        [
            f"nodePools[l4-spot]: on {WORKERS} its nodes are exchanged one after another, and the jobs on them start "
            "again: diskSizeGb 100 -> 200"
        ],
    ),
    "another kubelet": (
        {f"{L4_SPOT}/kubeletConfig": {"topologyManager": {"policy": "restricted"}}},
        [
            f"nodePools[l4-spot]: on {WORKERS} its nodes are exchanged one after another, and the jobs on them start "
            "again: kubeletConfig.topologyManager.policy none -> restricted, kubeletConfig.topologyManager.scope none "
            "-> container"
        ],
    ),
    "fewer machines": (
        {"reservations/0/count": 3, "nodePools/0/nodeCount": 3},
        [
            "nodePools[l4-reserved]: on worker-us-east4 1 of its 4 nodes goes, with the jobs on them",
            "reservations[l4-us-east4]: 1 of its 4 machines are released",
        ],
    ),
    "a reservation for others": (
        {"reservations/0/sharedWith": ["other-project"]},
        [
            "reservations[l4-us-east4]: it is deleted and made again, and Google may have no machines for it then"
            f"{PROTECTED}"
        ],
    ),
    "a reservation goes": (
        {"reservations/1": REMOVED},
        [
            "reservations[l4-backup]: 1 g2-standard-24 in us-east4-a: `pulumi up` fails, since it is protected; set "
            "deletionProtection to false and apply that"
        ],
    ),
    "a contract goes": (
        {"commitments": REMOVED},
        [
            "commitments[l4-year]: it cannot be cancelled: it is only removed from this file, and paid to its end"
            f"{PROTECTED}"
        ],
    ),
    "a larger contract": (
        {"commitments/0/resources/0/amount": 192},
        [
            "commitments[l4-year]: it cannot be changed: `pulumi up` fails; add another one under another name, and "
            "keep this as it is"
        ],
    ),
    "a team's account goes": (
        {"teams/0/googleServiceAccount": REMOVED},
        [
            "teams[vision].googleServiceAccount: the account is deleted, and what only it may reach is closed to the "
            "team's jobs"
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CLOUD.values(), ids=CLOUD)
def test_clusters_that_go_or_are_made_again(change: dict[str, Any], expected: list[str]) -> None:
    assert of(change)[: len(expected)] == expected


@pytest.mark.parametrize(("change", "expected"), POOLS.values(), ids=POOLS)
def test_pools_and_capacity_that_go_or_are_made_again(change: dict[str, Any], expected: list[str]) -> None:
    assert of(change, company_data()) == expected


def test_a_cluster_of_somebody_else_is_never_made_or_deleted_unseen() -> None:
    before = changed(fleet_data(), {"clusters/2/existing": True})
    assert of({"clusters/2/existing": False}, before)[0] == (
        "clusters[worker-b].existing: true -> false: `pulumi up` fails, since a cluster of that name is there; import "
        "it first: docs/tasks/import-a-platform.md"
    )
    gone = of({"clusters/2": REMOVED, "flavors/1/clusters": ["worker-a"]}, before)[0]
    assert gone.startswith("clusters[worker-b]: worker in europe-west4 stays, but Kueue is deleted from it")
    assert not [text for text in of({"clusters/2/mode": "Standard"}, before) if AGAIN in text]
    assert of({"clusters/2/region": "us-central1"}, before)[0] == (
        "clusters[worker-b].region: europe-west4 -> us-central1: it is another cluster; what the fleet has in the "
        f"first is deleted{PROTECTED}"
    )


@pytest.mark.parametrize(
    ("field", "change"),
    [("name", "b -> c"), ("podRangeName", "none -> c"), ("serviceRangeName", "none -> c")],
)
def test_clusters_do_not_change_their_subnet(field: str, change: str) -> None:
    before = changed(fleet_data(), {"network": {"existing": EXISTING}})
    output = of({f"network/existing/subnets/us-east4/{field}": "c"}, before)
    assert any(text.startswith(f"network.existing.subnets[us-east4].{field}: {change}: ") for text in output), output


@pytest.mark.parametrize("field", ["podRangeName", "serviceRangeName"])
def test_clusters_keep_the_range_whose_name_is_taken_away(field: str) -> None:
    before = changed(
        fleet_data(), {"network": {"existing": EXISTING}, f"network/existing/subnets/us-east4/{field}": "c"}
    )
    assert of({f"network/existing/subnets/us-east4/{field}": REMOVED}, before) == [
        f"network.existing.subnets[us-east4].{field}: worker-a keeps c: only a new cluster gets another range"
    ]


N1 = {"machineType": "n1-standard-8", "localSsdCount": 0, "accelerator": {"type": "nvidia-tesla-t4", "count": 1}}


@pytest.mark.parametrize(
    ("before", "change", "text"),
    [
        (N1, {"accelerator": {"type": "nvidia-tesla-t4", "count": 2}}, "it keeps 1 nvidia-tesla-t4 on a machine: "),
        (N1, {"accelerator": REMOVED}, "it keeps 1 nvidia-tesla-t4 on a machine: "),
        ({"machineType": "n1-standard-8"}, {"accelerator": N1["accelerator"]}, "it keeps no GPUs on a machine: "),
        ({}, {"sharedWith": ["123456789012", "other-project"]}, "it stays shared as it is: write the numbers "),
        ({}, {"sharedWith": ["123456789012", "123456789013"]}, None),
    ],
)
def test_what_a_reservation_is_not_asked_for_again(
    before: dict[str, Any], change: dict[str, Any], text: str | None
) -> None:
    """Said by diff, and neither changed nor made again by Pulumi."""
    reservation = company_data()["reservations"][1] | before
    data = standalone_data() | {"reservations": [reservation]}
    new = changed(data, {f"reservations/0/{field}": value for field, value in change.items()})
    output = [item for item in consequences(data, new) if item.startswith("reservations[l4-backup]: ")]
    assert [each.startswith(f"reservations[l4-backup]: {text}") for each in output] == ([True] if text else [])
    place = "gcp:compute/reservation:Reservation", "l4-backup"
    old, result = (declared(json.dumps(side))[place] for side in (data, new))
    plan = google_cloud.planned(result, google_cloud.created(place[0], old.inputs))
    assert bool(plan) is not bool(text)
    assert not any(entry.endswith("REPLACE") for entry in plan.values())


def test_a_pool_is_protected_as_it_says_or_as_its_cluster_is() -> None:
    def after(protection: dict[str, Any]) -> list[str]:
        return of({f"{L4_SPOT}/capacity": {"type": "onDemand"}}, changed(company_data(), protection))

    again = f"it is deleted and made again, {LOSES_JOBS}: capacity spot -> onDemand"
    assert after({f"{L4_SPOT}/deletionProtection": False}) == [f"nodePools[l4-spot]: on {WORKERS} {again}"]
    others = "worker-europe-west4 and worker-asia-southeast1"
    assert after({"clusters/2/deletionProtection": False}) == [
        f"nodePools[l4-spot]: on {others} {again}{PROTECTED}",
        f"nodePools[l4-spot]: on worker-us-east4 {again}",
    ]
    assert after({"deletionProtection": False, f"{L4_SPOT}/deletionProtection": True}) == [
        f"nodePools[l4-spot]: on {WORKERS} {again}{PROTECTED}"
    ]


@pytest.mark.parametrize(
    ("data", "change"),
    [
        (fleet_data, {"clusters/1/region": "us-west1", "clusters/2/mode": "Standard"}),
        (fleet_data, {"network": {"name": "batch"}}),
        (fleet_data, {"network": {"existing": EXISTING}}),
        (fleet_data, {"network": {"serviceRanges": {"us-east4": "192.168.0.0/24"}}}),
        (fleet_data, {"clusters/1/diskEncryptionKey": KEY}),
        (
            lambda: changed(fleet_data(), {"clusters/1/mode": "Standard", "clusters/1/diskEncryptionKey": KEY}),
            {"clusters/1/nodeAutoProvisioning": {"resourceLimits": LIMITS}},
        ),
        (
            lambda: company_data(teams=[], observability={}),
            {
                "nodePools/0/diskSizeGb": 200,
                f"{L4_FLEX}/capacity/maxRunDuration": "24h",
                f"{L4_SPOT}/capacity": {"type": "onDemand"},
                "nodePools/3/perCluster": {"worker-us-east4": {"accelerator": {"driverVersion": "LATEST"}}},
                f"{A100}/maxPodsPerNode": 32,
                "nodePools/7/acceleratorNetworkProfile": "auto",
                f"{A100}/autoscaling/totalMaxNodeCount": 5,
                "reservations/0/count": 5,
                "reservations/1/zone": "us-east4-c",
            },
        ),
    ],
    ids=[
        "clusters",
        "network",
        "existing network",
        "range",
        "disks on Autopilot",
        "disks of nodes that GKE makes",
        "pools and reservations",
    ],
)
def test_what_google_makes_again_is_what_is_said(data: Callable[[], dict[str, Any]], change: dict[str, Any]) -> None:
    """By what the components declare, and what the stand-in for Google replaces."""
    before, after = data(), changed(data(), change)
    output = [text for text in consequences(before, after) if "made again" in text]
    declared = {result for result, _ in compared(before, after)}
    told = {objects for objects in declared if any(all(part in text for part in objects.split("/")) for text in output)}
    assert {created_objects for created_objects, replaced in compared(before, after) if replaced} == told != set()


def compared(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, bool]]:
    """Each cluster, pool and reservation that stays, and whether it differs in what Google cannot change."""
    sides = [declared(json.dumps(data)) for data in (before, after)]
    result = []
    for key, old in sides[0].items():
        if (new := sides[1].get(key)) is not None:
            plan = google_cloud.planned(new, google_cloud.created(old.type, old.inputs))
            name = f"{old.place}/Kueue" if old.type == CLUSTER else old.place
            replaced = any(change.endswith("_REPLACE") for change in plan.values())
            assert old.protect or not replaced, f"Pulumi would make {name} again without a word"
            result.append((name, replaced))
    return result


@cache
def declared(data: str) -> dict[tuple[str, str], Recorded]:
    spec = parse_fleet(json.loads(data))
    kinds = (CLUSTER, NODE_POOL, *RESERVATIONS)
    # A pool of a cluster that is made again goes with it.
    return {
        (result.type, result.place): result
        for result in test_second_plan.declared(spec)
        if result.type in kinds and "/system" not in result.name
    }


def test_an_operator_goes() -> None:
    before = changed(fleet_data(), {"operators": {"trainer": {}}})
    says = f"the operator is uninstalled on {EVERYWHERE}: jobs of kind TrainJob no longer start or end"
    assert of({"operators": {}}, before) == [f"operators.trainer: {says}"]
