"""What is rendered: golden files of whole fleets, and what has to hold of every fleet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests.fleet_file.builders import (
    FIRST_QUOTA,
    REMOVED,
    Data,
    changed,
    fleet_data,
    group,
    manager_quotas,
    quota,
    standalone_data,
)

from drawn import examples
from kueue_admission.api import check_objects
from kueue_admission.kernel import Quantity
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec, dispatch_groups, kueue_helm_values, parse_fleet, parse_fleet_text
from kueue_fleet.objects import objects_on, render_cluster, render_fleet

REPOSITORY = Path(__file__).parents[2]

ORDER = [
    "Namespace",
    "Isolation",
    "PriorityClass",
    "WorkloadPriorityClass",
    "Topology",
    "ResourceFlavor",
    "ProvisioningRequestConfig",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "AdmissionCheck",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    "ServiceAccount",
    "Grant",
    "Secret",
]
GRANTS = ("ClusterRole", "ClusterRoleBinding", "RoleBinding")
"""Roles and bindings, of which those for single namespaces come before those for the whole cluster."""


class YamlFiles(SingleFileSnapshotExtension):
    """One YAML file for each snapshot."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Snapshots that are YAML files; `make golden` writes them anew."""
    return snapshot.use_extension(YamlFiles)


def rich_data() -> Data:
    """A fleet that uses everything there is."""
    return changed(
        fleet_data(),
        {
            "topologies": [
                {
                    "name": "datacenter",
                    "levels": [
                        {"nodeLabel": "cloud.google.com/gce-topology-block"},
                        {"nodeLabel": "kubernetes.io/hostname"},
                    ],
                }
            ],
            "flavors/0/topologyName": "datacenter",
            "flavors/1/nodeTaints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
            "flavors/1/tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "cohorts": [
                {"name": "research", "parentName": "company", "fairSharing": {"weight": "2"}},
                {
                    "name": "company",
                    "resourceGroups": [
                        {
                            "coveredResources": ["nvidia.com/gpu"],
                            "flavors": [
                                {
                                    "name": "l4",
                                    "resources": [
                                        quota("nvidia.com/gpu", 2, perCluster={"worker-b": {"nominalQuota": 3}})
                                    ],
                                },
                                {"name": "t4", "resources": [quota("nvidia.com/gpu", 1)]},
                            ],
                        }
                    ],
                },
            ],
            f"{FIRST_QUOTA}/borrowingLimit": 4,
            f"{FIRST_QUOTA}/lendingLimit": 2,
            f"{FIRST_QUOTA}/perCluster": {"worker-b": {"nominalQuota": 6, "lendingLimit": 1}},
            "clusterQueues/0/queueingStrategy": "StrictFIFO",
            "clusterQueues/0/flavorFungibility": {
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "TryNextFlavor",
                "preference": "PreemptionOverBorrowing",
            },
            "clusterQueues/0/preemption": {
                "reclaimWithinCohort": "Any",
                "withinClusterQueue": "LowerOrNewerEqualPriority",
            },
            "clusterQueues/0/fairSharing": {"weight": "1500m"},
            "clusterQueues/0/admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
            "clusterQueues/1/stopPolicy": "Hold",
            "clusterQueues/1/namespaceSelector": {"matchLabels": {"kueue-fleet.dev/team": "team-language"}},
            "clusterQueues/1/admissionChecksStrategy": {
                "admissionChecks": [{"name": "residency", "onFlavors": ["l4"]}]
            },
            "clusterQueues/1/manager": manager_quotas(gpu=20),
            "clusterQueues/+": {
                "name": "europe",
                "clusters": ["worker-b"],
                "namespaceSelector": {},
                "resourceGroups": [group(["cpu", "memory"], ["t4"])],
            },
            "admissionChecks/0/provisioningRequest/parameters": {"maxRunDurationSeconds": "3600"},
            "admissionChecks/0/provisioningRequest/managedResources": ["nvidia.com/gpu"],
            "admissionChecks/0/provisioningRequest/retryStrategy": {"backoffLimitCount": 0},
            "admissionChecks/0/provisioningRequest/podSetMergePolicy": "IdenticalPodTemplates",
            "admissionChecks/0/provisioningRequest/podSetUpdates": {
                "nodeSelector": [
                    {
                        "key": "autoscaling.gke.io/provisioning-request",
                        "valueFromProvisioningClassDetail": "ResizeRequestName",
                    }
                ]
            },
            "admissionChecks/+": {
                "name": "residency",
                "clusters": ["manager", "worker-a", "worker-b"],
                "controllerName": "kueue-fleet.dev/residency",
                "parameters": {"apiGroup": "example.com", "kind": "Residency", "name": "europe"},
            },
            "priorityClasses/0/description": "Pods of batch jobs.",
            "priorityClasses/0/preemptionPolicy": "Never",
            "teams/1/namespaces": ["language-dev", "language-prod"],
            "teams/1/localQueues/0/fairSharing": {"weight": 3},
            "localQueues/+": {"namespace": "tools", "name": "europe", "clusterQueue": "europe", "stopPolicy": "Hold"},
            "multiKueue/workers": ["worker-b", "worker-a"],
            "multiKueue/headroomPercent": 10,
            "multiKueue/dispatcher": "Incremental",
            "kueue/configuration": {
                "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
                "admissionFairSharing": {"usageHalfLifeTime": "168h"},
            },
        },
    )


FLEETS = {"rich": rich_data, "two_workers": fleet_data, "standalone": standalone_data}


def text_of(objects: list[Manifest]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False, width=1000)


@pytest.mark.parametrize("cluster", ["manager", "worker-a", "worker-b"])
def test_rich_fleet(golden: SnapshotAssertion, cluster: str) -> None:
    assert text_of(render_cluster(parse_fleet(rich_data()), cluster)) == golden


def test_standalone_cluster(golden: SnapshotAssertion) -> None:
    assert text_of(render_cluster(parse_fleet(standalone_data()), "only")) == golden


@pytest.mark.parametrize("cluster", ["manager-europe-west4", "worker-us-east4"])
def test_dws_stack(golden: SnapshotAssertion, cluster: str) -> None:
    text = (REPOSITORY / "stacks/Pulumi.dws-multikueue.yaml").read_text(encoding="utf-8")
    assert text_of(render_cluster(parse_fleet_text(text, "stack"), cluster)) == golden


ISOLATION = frozenset(
    {"ResourceQuota", "NetworkPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
)
"""Of one team after the other, and of jobs that are too long."""


def _step(kind: str) -> str:
    return "Grant" if kind in GRANTS else "Isolation" if kind in ISOLATION else kind


@pytest.mark.parametrize("data", FLEETS.values(), ids=FLEETS.keys())
def test_objects_come_in_apply_order_and_once(data: Any) -> None:
    for objects in render_fleet(parse_fleet(data())).values():
        kinds = [ORDER.index(_step(item["kind"])) for item in objects]
        assert kinds == sorted(kinds)
        ids = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("data", FLEETS.values(), ids=FLEETS.keys())
def test_objects_keep_kueues_own_rules(data: Any) -> None:
    for objects in render_fleet(parse_fleet(data())).values():
        assert check_objects(objects) == []


def test_parents_of_cohorts_come_first() -> None:
    objects = render_cluster(parse_fleet(rich_data()), "worker-a")
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "Cohort"] == ["company", "research"]


def rendered() -> str:
    """All that is rendered of one fleet."""
    fleet = parse_fleet(rich_data())
    return json.dumps([render_fleet(fleet), [kueue_helm_values(fleet, name) for name in fleet.cluster_names]])


def test_same_text_whatever_the_hash_seed() -> None:
    program = (
        "import sys; sys.path[:0] = ['.', 'tests/support']\n"
        "from tests.objects.test_render import rendered; print(rendered())\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(REPOSITORY / "components")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert other == f"{rendered()}\n", "this process has a random seed"


def test_unknown_cluster() -> None:
    with pytest.raises(KeyError):
        render_cluster(parse_fleet(fleet_data()), "worker-c")


CLUSTERS = ("worker-a", "worker-b", "worker-c")


@st.composite
def fleets(draw: st.DrawFn) -> FleetSpec:
    """Fleets of a manager and three workers with queues on some of them, and flavors on some of those."""
    flavors = [
        {"name": f"f{number}", "clusters": sorted(draw(st.sets(st.sampled_from(CLUSTERS), min_size=1)))}
        for number in range(draw(st.integers(1, 3)))
    ]
    queues = []
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(flavors), min_size=1, unique_by=lambda flavor: str(flavor["name"])))
        possible = sorted({cluster for flavor in chosen for cluster in flavor["clusters"]})
        where = sorted(draw(st.sets(st.sampled_from(possible), min_size=1)))
        cohort = draw(st.sampled_from([None, "left", "right"]))
        limit = st.one_of(st.none(), st.integers(0, 9))
        amounts = []
        for flavor in chosen:
            limits = (
                {"borrowingLimit": draw(limit), "lendingLimit": draw(st.one_of(st.none(), st.just(0)))}
                if cohort
                else {}
            )
            here = [cluster for cluster in where if cluster in flavor["clusters"]]
            per_cluster = {
                cluster: {"nominalQuota": draw(st.integers(0, 50))} for cluster in here if draw(st.booleans())
            }
            amounts.append(
                {
                    "name": flavor["name"],
                    "resources": [
                        quota("cpu", draw(st.sampled_from([0, 3, "1500m", "2k"])), **limits, perCluster=per_cluster),
                        quota("memory", draw(st.sampled_from([0, "1Gi", "1536Mi", "5M"]))),
                    ],
                }
            )
        queues.append(
            {
                "name": f"q{number}",
                "clusters": draw(st.permutations(where)),
                "namespaceSelector": {},
                **({"cohortName": cohort} if cohort else {}),
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": amounts}],
            }
        )
    data = changed(
        fleet_data(),
        {
            "clusters/+": {"name": "worker-c", "role": "worker", "region": "us-west1"},
            "flavors": flavors,
            "cohorts": REMOVED,
            "admissionChecks": REMOVED,
            "clusterQueues": queues,
            "teams": [
                {"name": f"team-{item['name']}", "localQueues": [{"name": "main", "clusterQueue": item["name"]}]}
                for item in queues
            ],
            "localQueues": REMOVED,
            "multiKueue/workers": draw(st.permutations(CLUSTERS)),
            "multiKueue/headroomPercent": draw(st.sampled_from([0, 0, 25])),
        },
    )
    return parse_fleet(data)


def named(objects: list[Manifest], kind: str) -> dict[str, Manifest]:
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


@settings(max_examples=examples(100), deadline=None)
@given(fleets())
def test_a_job_finds_everything_wherever_it_is_dispatched(fleet: FleetSpec) -> None:
    """Kueue looks for the namespace and LocalQueue of the same name on every cluster of the queue's config."""
    rendered = render_fleet(fleet)
    manager = rendered["manager"]
    checks, configs = named(manager, "AdmissionCheck"), named(manager, "MultiKueueConfig")
    queues = named(manager, "ClusterQueue")
    assert set(queues) == set(fleet.dispatched)
    for local in (item for item in manager if item["kind"] == "LocalQueue"):
        strategy = queues[local["spec"]["clusterQueue"]]["spec"]["admissionChecksStrategy"]
        (check,) = strategy["admissionChecks"]
        workers = configs[checks[check["name"]]["spec"]["parameters"]["name"]]["spec"]["clusters"]
        assert workers
        for worker in workers:
            assert local in rendered[worker]
            assert local["metadata"]["namespace"] in named(rendered[worker], "Namespace")
            assert local["spec"]["clusterQueue"] in named(rendered[worker], "ClusterQueue")


@settings(max_examples=examples(100), deadline=None)
@given(fleets())
def test_every_reference_is_met_on_its_own_cluster(fleet: FleetSpec) -> None:
    for objects in render_fleet(fleet).values():
        assert check_objects(objects) == []
        flavors = named(objects, "ResourceFlavor")
        for queue in named(objects, "ClusterQueue").values():
            for resource_group in queue["spec"]["resourceGroups"]:
                assert {flavor["name"] for flavor in resource_group["flavors"]} <= set(flavors)


@settings(max_examples=examples(100), deadline=None)
@given(fleets())
def test_derived_quotas_are_the_workers_together(fleet: FleetSpec) -> None:
    assert fleet.multi_kueue is not None
    rendered = render_fleet(fleet)
    percent = fleet.multi_kueue.headroom_percent
    for name, queue in named(rendered["manager"], "ClusterQueue").items():
        (resource_group,) = queue["spec"]["resourceGroups"]
        flavor, *former = resource_group["flavors"]
        assert flavor["name"].startswith("multikueue")
        assert not any(Quantity(each["nominalQuota"]).decimal for other in former for each in other["resources"])
        for amount in flavor["resources"]:
            parts = [
                entry
                for worker in fleet.dispatch_workers(name)
                for item in named(rendered[worker], "ClusterQueue")[name]["spec"]["resourceGroups"][0]["flavors"]
                for entry in item["resources"]
                if entry["name"] == amount["name"]
            ]
            total = sum(Quantity(part["nominalQuota"]).decimal for part in parts)
            assert Quantity(amount["nominalQuota"]).decimal >= total * (100 + percent) / 100
            assert Quantity(amount["nominalQuota"]).decimal < total * (100 + percent) / 100 + 2**20
            unlimited = any("borrowingLimit" not in part for part in parts)
            if not unlimited:
                limits = sum(Quantity(part["borrowingLimit"]).decimal for part in parts)
                assert Quantity(amount["borrowingLimit"]).decimal <= limits


@settings(max_examples=examples(50), deadline=None)
@given(fleets())
def test_rendering_twice_gives_the_same(fleet: FleetSpec) -> None:
    again = FleetSpec.model_validate(fleet.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert render_fleet(again) == render_fleet(fleet)


@settings(max_examples=examples(50), deadline=None)
@given(fleets())
def test_each_dispatched_queue_is_in_one_group(fleet: FleetSpec) -> None:
    groups = dispatch_groups(fleet)
    assert sorted(name for each in groups for name in each.queues) == sorted(fleet.dispatched)
    assert len({item.check_name for item in groups}) == len({entry.config_name for entry in groups}) == len(groups)
    assert groups[0].workers == fleet.worker_names


def test_what_an_object_needs_comes_before_it() -> None:
    fleet = parse_fleet(fleet_data())
    needed = set()
    for cluster in fleet.cluster_names:
        results = objects_on(fleet, cluster)
        assert [item.manifest for item in results] == render_cluster(fleet, cluster)
        places = {each.key: index for index, each in enumerate(results)}
        assert len(places) == len(results)
        for index, entry in enumerate(results):
            result = [need for need in entry.needs if need in places]
            assert all(places[need] < index for need in result), entry.key
            needed |= {need.partition("/")[0] for need in result}
    assert needed == {"AdmissionCheck", "ClusterQueue", "Cohort", "Namespace", "ResourceFlavor"}


def test_a_local_queue_of_its_own_may_be_in_the_namespace_of_a_team() -> None:
    data = fleet_data()
    namespace = parse_fleet(data).teams[0].namespace_names[0]
    data.setdefault("localQueues", []).append({"namespace": namespace, "name": "more", "clusterQueue": "vision"})
    fleet = parse_fleet(data)
    parts = {item.key: item.part for item in objects_on(fleet, fleet.cluster_names[0])}
    assert parts[f"LocalQueue/{namespace}/more"] == ""
    assert parts[f"Namespace/{namespace}"] == f"team/{fleet.teams[0].name}"
