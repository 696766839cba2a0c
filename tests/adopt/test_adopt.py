"""Existing clusters become a fleet file that renders the same objects."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.adopt.existing_platform import existing_cluster, kueue_objects
from tests.fleet_file.builders import REMOVED, changed, flavor_quotas, fleet_data, manager_quotas, standalone_data

import small_fleets
from kueue_admission.kernel import SpecError
from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.live_objects import sort_objects
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.objects import render_fleet

ROOT = Path(__file__).parents[2]
IDENTITY = Identity("test-fleet", "my-project", date(2027, 2, 1), date(2026, 11, 21), default_kueue=True)
KEY = "controller_manager_config.yaml"
VERSION = "app.kubernetes.io/version"
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kueue-manager-config", "labels": {VERSION: "v0.19.2"}},
    "data": {KEY: "apiVersion: config.kueue.x-k8s.io/v1beta2"},
}
POOL_FLAVOR = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ResourceFlavor",
    "metadata": {"name": "l4"},
    "spec": {"nodeLabels": {"cloud.google.com/gke-nodepool": "l4"}},
}
OWN_CHECK = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "AdmissionCheck",
    "metadata": {"name": "residency"},
    "spec": {"controllerName": "kueue-fleet.dev/admission-check"},
}
Objects = dict[str, list[dict[str, Any]]]


def adopt(objects: Mapping[str, Sequence[Mapping[str, Any]]], fleet: FleetSpec) -> Adopted:
    clusters = [
        AdoptedCluster(
            name, fleet.cluster(name).region, [*items, *kueue_objects(fleet, name)], (), fleet.cluster(name).mode
        )
        for name, items in objects.items()
    ]
    return adopt_fleet(clusters, Identity(fleet.name, fleet.project, date(2027, 2, 1), date(2026, 11, 21)))


def by_name(objects: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], Any]:
    """Without the worker's access, whose token is made anew."""
    return {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in objects
        if item["kind"] in ("Namespace", "PriorityClass") or item["apiVersion"].startswith("kueue.x-k8s.io/")
    }


def assert_round_trip(fleet: FleetSpec) -> Adopted:
    rendered = render_fleet(fleet)
    adopted = adopt(rendered, fleet)
    again = render_fleet(parse_fleet(adopted.data))
    assert {name: by_name(items) for name, items in again.items()} == {
        name: by_name(items) for name, items in rendered.items()
    }
    return adopted


SHARE_NOTHING = {
    "clusterQueues/0/clusters": ["worker-b"],
    "clusterQueues/0/resourceGroups/0/flavors": [flavor_quotas("t4", 2)],
}
"""With this, the manager has a flavor for each queue."""


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"clusterQueues/0/preemption": {"reclaimWithinCohort": "Any"}},
        {"clusterQueues/0/manager": manager_quotas(gpu=9)},
        {"clusterQueues/1/clusters": ["worker-a"]},
        {"clusterQueues/0/resourceGroups/0/flavors/0/resources/0/perCluster": {"worker-b": {"nominalQuota": 7}}},
        {"clusterQueues/0/resourceGroups/0/flavors/0/resources/0/borrowingLimit": 3},
        {"cohorts": [{"name": "all"}, {"name": "research", "parentName": "all", "fairSharing": {"weight": "2"}}]},
        {"teams/0/namespaces": ["vision-a", "vision-b"]},
        {"teams/0/podSecurity": "restricted"},
        {"topologies": [{"name": "rack", "levels": [{"nodeLabel": "kubernetes.io/hostname"}]}]},
        {"multiKueue/workers": ["worker-b", "worker-a"]},
        {"multiKueue/managerFlavorName": "anywhere"},
        {"multiKueue/formerManagerFlavorNames": ["multikueue-t4"]},
        {"multiKueue/managerFlavorName": "anywhere", **SHARE_NOTHING},
        {**SHARE_NOTHING, "clusterQueues/0/manager": manager_quotas()},
        {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}},
        {"localQueues": REMOVED},
    ],
)
def test_a_fleet_survives_the_round_trip(change: dict[str, Any]) -> None:
    assert_round_trip(parse_fleet(changed(fleet_data(), change)))


def test_checks_keep_their_order_where_the_manager_alone_has_the_first() -> None:
    # A fleet drawn by test_round_trip.py: the import wrote the workers' checks first.
    everywhere = ["manager", "worker-a", "worker-b"]
    checks = {"admissionChecks": [{"name": "residency"}, {"name": "budget"}]}
    data = changed(
        fleet_data(),
        {
            "admissionChecks": [
                {"name": "budget", "controllerName": "example.com/budget", "clusters": everywhere},
                {"name": "residency", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]},
            ],
            "clusterQueues/0/admissionChecksStrategy": checks,
            "controller": {"image": "example.com/controller:1", "checks": [{"name": "residency"}]},
        },
    )
    adopted = assert_round_trip(parse_fleet(data))
    assert adopted.data["clusterQueues"][0]["admissionChecksStrategy"] == checks


def test_what_an_earlier_release_deployed_is_written_in_the_words_of_this_one() -> None:
    checks = {"admissionChecks": [{"name": "hours"}]}
    window = {"name": "spring", "start": "2027-03-01T00:00:00Z", "duration": "336h"}
    change = {
        "admissionChecks": [
            {"name": "hours", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
        ],
        "clusterQueues/0/admissionChecksStrategy": checks,
        "controller": {"image": "example.com/controller:1", "checks": [{"name": "hours", "windows": [window]}]},
    }
    objects, fleet = rendered(change)
    settings = find(objects["manager"], "ConfigMap", "kueue-fleet-controller")
    former = {name: text.replace("windows:", "calendar:") for name, text in settings["data"].items()}
    assert former != settings["data"]
    settings["data"] = former
    [check] = adopt(objects, fleet).data["controller"]["checks"]
    assert (check["name"], [item["name"] for item in check["windows"]]) == ("hours", ["spring"])
    assert "calendar" not in check


def test_one_cluster_alone_survives_it_too() -> None:
    adopted = assert_round_trip(parse_fleet(standalone_data()))
    assert [cluster["role"] for cluster in adopted.data["clusters"]] == ["standalone"]


def test_how_long_jobs_wait_for_nodes_comes_back_with_the_controller() -> None:
    data = small_fleets.standalone_data(controller={"image": "example.com/controller:1"})
    data["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    data["clusterQueues"][0] |= {"fallback": [{"flavor": "l4", "patience": "30m"}], "quotaFollows": "capacity"}
    adopted = assert_round_trip(parse_fleet(data))
    assert adopted.data["clusterQueues"][0]["fallback"] == [{"flavor": "l4", "patience": "30m"}]
    assert adopted.data["clusterQueues"][0]["quotaFollows"] == "capacity"
    assert [check["name"] for check in adopted.data["admissionChecks"]] == ["dws"]


def test_quotas_of_windows_come_back_as_the_file_has_them() -> None:
    data = small_fleets.standalone_data(controller={"image": "example.com/controller:1"})
    data["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    window = {"name": "night", "start": "2026-11-30T20:00:00Z", "duration": "10h", "days": ["Monday"]}
    data["controller"]["quotaWindows"] = [window]
    quota = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota["during"] = {"night": {"nominalQuota": 2}}
    adopted = assert_round_trip(parse_fleet(data))
    [result, *_] = adopted.data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"]
    assert result["during"] == {"night": {"nominalQuota": "2"}}
    assert adopted.data["controller"]["quotaWindows"][0]["name"] == "night"


def test_the_example_stack_comes_back_in_its_own_words() -> None:
    text = (ROOT / "stacks" / "Pulumi.dws-multikueue.yaml").read_text()
    fleet = parse_fleet_text(text, "stack")
    adopted = assert_round_trip(fleet)
    assert "manager" not in adopted.data["clusterQueues"][0]
    assert "flavorFungibility" not in adopted.data["clusterQueues"][0]
    assert adopted.data["clusterQueues"][0]["namespaceSelector"] == {}
    assert [team["name"] for team in adopted.data["teams"]] == ["team-vision", "team-language"]


def rendered(change: dict[str, Any] | None = None) -> tuple[Objects, FleetSpec]:
    fleet = parse_fleet(changed(fleet_data(), change or {}))
    objects: Any = copy.deepcopy(render_fleet(fleet))
    return objects, fleet


def find(items: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    return next(item for item in items if item["kind"] == kind and item["metadata"]["name"] == name)


def refusals(objects: Objects, fleet: FleetSpec) -> list[str]:
    with pytest.raises(SpecError) as refused:
        adopt(objects, fleet)
    return [str(problem) for problem in refused.value.problems]


def test_what_the_server_added_and_older_versions_do_not_matter() -> None:
    objects, fleet = rendered({"clusterQueues/0/admissionChecksStrategy": REMOVED})
    queue = find(objects["worker-a"], "ClusterQueue", "vision")
    queue["apiVersion"] = "kueue.x-k8s.io/v1beta1"
    queue["spec"]["cohort"] = queue["spec"].pop("cohortName")
    queue["spec"]["flavorFungibility"] = {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}
    queue["metadata"] |= {"uid": "1", "resourceVersion": "7", "managedFields": []}
    queue["status"] = {"pendingWorkloads": 3}
    queue["spec"]["admissionScope"] = None
    adopted = adopt({"worker-a": [{"apiVersion": "v1", "kind": "List", "items": objects["worker-a"]}]}, fleet)
    [vision] = [item for item in adopted.data["clusterQueues"] if item["name"] == "vision"]
    assert vision["cohortName"] == "research"
    assert "flavorFungibility" not in vision


def test_what_has_no_place_in_a_fleet_file_is_named() -> None:
    objects, fleet = rendered()
    own = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "team-vision"}}
    for cluster in ("worker-a", "worker-b"):
        objects[cluster].append(own)
    objects["worker-b"].append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}})
    assert adopt(objects, fleet).notes[1:] == (
        "CronJob team-vision/nightly on worker-a and worker-b is left out: a fleet file has no place for it",
        "ConfigMap b/a on worker-b is left out: a fleet file has no place for it",
    )


def test_what_every_cluster_has_is_not_named() -> None:
    objects, fleet = rendered()
    objects["worker-b"] += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "team-vision"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": "team-vision"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gke-managed-system"}},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "kueue-fleet-critical"},
            "value": 1000000000,
        },
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": "kueue-controller-manager",
                "namespace": "kueue-system",
                "labels": {"app.kubernetes.io/name": "kueue"},
            },
        },
    ]
    adopted = adopt(objects, fleet)
    assert adopted.notes[1:] == ()
    assert [entry["name"] for entry in adopted.data["priorityClasses"]] == ["batch"]


def test_what_the_file_would_change_is_named() -> None:
    objects, fleet = rendered()
    find(objects["worker-a"], "ClusterRole", "multikueue-manager")["rules"][0]["verbs"] = ["get"]
    notes = adopt(objects, fleet).notes
    assert [note.partition(" -> ")[0] for note in notes[1:]] == [
        "ClusterRole multikueue-manager on worker-a would be changed: rules[0].verbs get"
    ]


def test_of_a_list_of_maps_the_items_that_would_be_changed_are_named() -> None:
    objects, fleet = rendered()
    rule = {"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["get"]}
    find(objects["worker-a"], "ClusterRole", "multikueue-manager")["rules"].append(rule)
    [note] = adopt(objects, fleet).notes[1:]
    assert note.endswith("would be changed: rules apiGroups batch, resources cronjobs, verbs get -> nothing")


def test_of_a_long_line_the_part_that_would_be_changed_is_named() -> None:
    objects, fleet = rendered()
    [policy, *_] = [item for item in objects["manager"] if item["kind"] == "ValidatingAdmissionPolicy"]
    long = max(policy["spec"]["variables"], key=lambda each: len(each["expression"]))
    long["expression"] += " || mine"
    [note] = adopt(objects, fleet).notes[1:]
    assert len(long["expression"]) > 500
    assert " || mine -> ..." in note


def test_of_long_texts_the_line_that_would_be_changed_is_named() -> None:
    objects, fleet = rendered({"controller": {"image": "example.com/controller:1.2"}})
    settings = find(objects["manager"], "ConfigMap", "kueue-fleet-controller")
    settings["data"] = {name: text + "x: 1\n" for name, text in settings["data"].items()}
    [note] = [note for note in adopt(objects, fleet).notes if note.startswith("ConfigMap")]
    assert "data.config.yaml x: 1 -> " in note


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (
            {"mode": None},
            "clusters[only].mode: is not known: no Kubernetes object says who manages the nodes; give the mode "
            "(--mode), or the output of `gcloud container node-pools list --cluster only --format yaml` (--node-pools)",
        ),
        (
            {"mode": "Autopilot", "node_pools": [{"name": "default-pool", "config": {}}]},
            "clusters[only].mode: is Autopilot, but node pools are given; leave out one of the two",
        ),
        (
            {"objects": [POOL_FLAVOR, CONFIGURATION]},
            "clusters[only].mode: is Standard, as the node labels of l4 name a node pool, but no node pools are given; "
            "give the output of `gcloud container node-pools list --cluster only --format yaml` (--node-pools)",
        ),
        (
            {"objects": []},
            "only.kueue.configuration: is not known: Kueue's Configuration is not among the objects, and only it says "
            "which jobs Kueue manages; add the ConfigMap kueue-manager-config of Kueue's namespace to them, or take "
            "the defaults of a fleet file (--default-kueue)",
        ),
        (
            {"objects": [{**CONFIGURATION, "metadata": {"name": "kueue-manager-config"}}]},
            "kueue.version: is not known: the ConfigMap with Kueue's Configuration has no label "
            "app.kubernetes.io/version or helm.sh/chart, and Kueue's Deployment is not among the objects; add the "
            "Deployment kueue-controller-manager to them, or take the defaults of a fleet file (--default-kueue)",
        ),
        (
            {"objects": [{**CONFIGURATION, "data": {KEY: "apiVersion: config.kueue.x-k8s.io/v1alpha1"}}]},
            "only.kueue.configuration: is config.kueue.x-k8s.io/v1alpha1, not config.kueue.x-k8s.io/v1beta2; write it "
            "as config.kueue.x-k8s.io/v1beta2",
        ),
        (
            {"objects": [CONFIGURATION, {**CONFIGURATION, "metadata": {**CONFIGURATION["metadata"], "name": "b"}}]},
            "only.kueue.configuration: there are 2 Configurations of Kueue; give that of the Kueue that runs there",
        ),
        (
            {"objects": [CONFIGURATION, OWN_CHECK]},
            "controller: is not known: the fleet's own controller runs here, and its settings are not "
            "among the objects; add the ConfigMap kueue-fleet-controller of the manager to them",
        ),
        (
            {"objects": [CONFIGURATION, {**CONFIGURATION, "metadata": {"name": "kueue-fleet-controller"}, "data": {}}]},
            "only.ConfigMap kueue-fleet-controller: has no settings in config.yaml; give it as `kubectl get -o yaml` "
            "prints it",
        ),
    ],
)
def test_what_is_not_known_is_asked_for(cluster: dict[str, Any], expected: str) -> None:
    given = AdoptedCluster(
        **{"name": "only", "region": "us-east4", "objects": [CONFIGURATION], "mode": "Autopilot", **cluster}
    )
    with pytest.raises(SpecError) as refused:
        adopt_fleet([given], replace(IDENTITY, default_kueue=False))
    assert [str(problem) for problem in refused.value.problems] == [expected]


def test_all_that_is_not_known_is_asked_for_at_once() -> None:
    with pytest.raises(SpecError) as refused:
        adopt_fleet([AdoptedCluster("only", "", [])], replace(IDENTITY, default_kueue=False))
    assert [problem.path for problem in refused.value.problems] == [
        "clusters[only].region",
        "clusters[only].mode",
        "only.kueue.configuration",
    ]


OLD_CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta1
kind: Configuration
queueVisibility: { updateIntervalSeconds: 5 }
fairSharing: { enable: false }
waitForPodsReady: { enable: true, timeout: 10m }
integrations: { frameworks: [batch/job, pod], podOptions: { namespaceSelector: {} } }
"""


def adopted_with(text: str, *objects: Mapping[str, Any]) -> Adopted:
    item = {**CONFIGURATION, "data": {KEY: text}}
    return adopt_fleet([AdoptedCluster("only", "us-east4", [item, *objects], (), "Autopilot")], IDENTITY)


def test_a_configuration_in_v1beta1_is_read_as_kueue_reads_it() -> None:
    result = adopted_with(OLD_CONFIGURATION).data["kueue"]["configuration"]
    assert result == {
        "integrations": {"frameworks": ["batch/job", "pod"]},
        "waitForPodsReady": {"timeout": "10m", "blockAdmission": True},
    }


def test_what_kueue_passes_over_in_v1beta1_is_named() -> None:
    [note] = (note for note in adopted_with(OLD_CONFIGURATION).notes if "v1beta1" in note)
    assert note.startswith("only.kueue.configuration: queueVisibility and integrations.podOptions left out: ")


def version_of(labels: Mapping[str, str], *images: str) -> str | None:
    """Kueue's version, by the labels of its Configuration and the images of its Deployment."""
    item = {**CONFIGURATION, "metadata": {**CONFIGURATION["metadata"], "labels": dict(labels)}}
    pod = {"containers": [{"name": "manager", "image": image} for image in images]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": pod}},
    }
    cluster = AdoptedCluster("only", "us-east4", [item, *([deployment] if images else [])], (), "Autopilot")
    version: str | None = adopt_fleet([cluster], IDENTITY).data.get("kueue", {}).get("version")
    return version


@pytest.mark.parametrize(
    ("labels", "images", "version"),
    [
        ({VERSION: "v0.17.1"}, (), "0.17.1"),
        ({"helm.sh/chart": "kueue-0.17.1"}, (), "0.17.1"),
        ({}, ("registry.k8s.io/kueue/kueue:v0.17.1",), "0.17.1"),
        ({}, ("example.com/mirror/kueue:v0.17.1-gke.2", "example.com/proxy:v1"), "0.17.1-gke.2"),
        ({VERSION: "v0.17.0"}, ("registry.k8s.io/kueue/kueue:v0.17.1",), "0.17.1"),
        ({}, ("registry.k8s.io/kueue/kueue@sha256:00",), None),
    ],
)
def test_kueues_version_is_found(labels: Mapping[str, str], images: Sequence[str], version: str | None) -> None:
    assert version_of(labels, *images) == version


def test_a_version_that_is_none_is_kept_for_the_check_to_name() -> None:
    assert version_of({VERSION: "main"}) == "main"


def test_the_defaults_of_a_fleet_file_may_be_taken_for_kueue() -> None:
    adopted = adopt_fleet([AdoptedCluster("only", "us-east4", [], (), "Autopilot")], IDENTITY)
    assert "kueue" not in adopted.data


def test_what_clusters_have_in_common_is_written_once() -> None:
    """Each cluster's own part of Kueue's Configuration is under the cluster."""
    objects, fleet = rendered(
        {
            "kueue": {"configuration": {"featureGates": {"ConcurrentAdmission": True}}},
            "clusters/2/kueue": {"configuration": {"featureGates": {"ConcurrentAdmission": False}}},
        }
    )
    data = adopt(objects, fleet).data
    assert "kueue" not in data
    assert [item.get("kueue", {}).get("configuration", {}).get("featureGates") for item in data["clusters"]] == [
        {"ConcurrentAdmission": True},
        {"ConcurrentAdmission": True},
        {"ConcurrentAdmission": False},
    ]


def test_labels_of_namespaces_come_back() -> None:
    labels = {"team-vision": {"workload-type": "ml"}, "default": {"environment": "production"}}
    assert (
        assert_round_trip(parse_fleet(changed(fleet_data(), {"namespaceLabels": labels}))).data["namespaceLabels"]
        == labels
    )


def test_labels_of_namespaces_that_differ_are_named() -> None:
    objects, fleet = rendered({"namespaceLabels": {"team-vision": {"workload-type": "ml"}}})
    find(objects["worker-b"], "Namespace", "team-vision")["metadata"]["labels"]["workload-type"] = "web"
    assert refusals(objects, fleet) == [
        "worker-b.Namespace team-vision.metadata.labels[workload-type]: web, but ml elsewhere; make them the same on "
        "every cluster"
    ]


def test_namespaces_that_are_not_given_are_asked_for_where_a_queue_chooses_by_labels() -> None:
    objects, fleet = rendered(
        {
            "clusterQueues/1/namespaceSelector": {"matchLabels": {"type": "ml"}},
            "namespaceLabels": {"team-language": {"type": "ml"}},
        }
    )
    left = {name: [item for item in items if item["kind"] != "Namespace"] for name, items in objects.items()}
    assert "the labels of team-vision, team-language and default are not known" in str(adopt(left, fleet).notes)


def test_a_cluster_with_another_version_of_kueue_keeps_it() -> None:
    maps = [{**CONFIGURATION, "metadata": {"name": "k", "labels": {VERSION: f"v0.19.{number}"}}} for number in (1, 2)]
    objects, fleet = rendered()
    clusters = [
        AdoptedCluster(name, "us-east4", [*items, maps[name == "worker-b"]], (), "Autopilot")
        for name, items in objects.items()
    ]
    result = adopt_fleet(clusters, replace(IDENTITY, name=fleet.name)).data
    assert result["kueue"]["version"] == "0.19.1"
    assert [item.get("kueue", {}).get("version") for item in result["clusters"]] == [None, None, "0.19.2"]


def test_disagreements_are_all_named() -> None:
    objects, fleet = rendered()
    find(objects["worker-b"], "ClusterQueue", "vision")["spec"]["queueingStrategy"] = "StrictFIFO"
    find(objects["worker-b"], "ResourceFlavor", "l4")["spec"]["nodeLabels"] = {"a": "b"}
    find(objects["worker-b"], "LocalQueue", "main")["spec"]["stopPolicy"] = "Hold"
    result = refusals(objects, fleet)
    assert [text.split(": ")[0] for text in result] == [
        "worker-b.ResourceFlavor l4.nodeLabels",
        "worker-b.ClusterQueue vision.queueingStrategy",
        "worker-b.LocalQueue team-vision/main",
    ]


@pytest.mark.parametrize(
    ("drop", "expected"),
    [
        (["manager"], "clusters: no cluster has a MultiKueueCluster, so none is the manager"),
        (["worker-a", "worker-b"], "clusters: manager is a manager without workers"),
        (["worker-b"], "manager.MultiKueueCluster worker-b: no cluster of that name is given; there are worker-a"),
    ],
)
def test_clusters_that_are_missing_are_named(drop: list[str], expected: str) -> None:
    objects, fleet = rendered()
    assert refusals({name: items for name, items in objects.items() if name not in drop}, fleet)[0].startswith(expected)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "LocalQueue", "metadata": {"name": "x"}},
            "worker-a.LocalQueue x.apiVersion: kueue.x-k8s.io/v1alpha1 is not known",
        ),
        (
            {**POOL_FLAVOR, "spec": {"nodeLabels": "l4"}},
            'worker-a.ResourceFlavor l4.spec.nodeLabels: "l4" is given where a map is needed',
        ),
        (
            {**CONFIGURATION, "data": {KEY: "apiVersion: config.kueue.x-k8s.io/v1beta2\nmultiKueue: [a]"}},
            "worker-a.kueue.configuration.multiKueue: ",
        ),
        (
            {**CONFIGURATION, "data": {KEY: "a: ["}},
            "worker-a.kueue.configuration:1: a bracket is opened and not closed",
        ),
        (
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "AdmissionCheck",
                "metadata": {"name": "dws"},
                "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"},
            },
            "AdmissionCheck dws.spec.parameters.name: there is no ProvisioningRequestConfig (none named)",
        ),
    ],
)
def test_malformed_objects_are_named(item: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpecError) as refused:
        adopt_fleet([AdoptedCluster("worker-a", "us-east4", [item], (), "Autopilot")], IDENTITY)
    assert str(refused.value.problems[0]).startswith(expected)


@pytest.mark.parametrize(
    ("item", "note"),
    [
        (
            {"kind": "ClusterQueue"},
            "ClusterQueue at place 0 left out: is not a Kubernetes object with a kind and a name",
        ),
        ({"kind": "Namespace", "metadata": {"name": 7}}, "Namespace at place 0 left out: is not a Kubernetes object"),
        ({"kind": "Namespace", "metadata": {"name": ""}}, "Namespace at place 0 left out: is not a Kubernetes object"),
        (
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "x"}, "spec": [1]},
            "Cohort x left out: has spec of another form than Kubernetes gives it; give what `kubectl get -o yaml`",
        ),
        (
            {"kind": "Namespace", "metadata": {"name": "x", "labels": {"kueue-fleet.dev/team": ["a"]}}},
            "Namespace x left out: has metadata.labels of another form than Kubernetes gives it",
        ),
        (
            {"kind": "RoleBinding", "metadata": {"name": "x"}, "subjects": ["a"], "data": "a"},
            "RoleBinding x left out: has data and subjects of another form than Kubernetes gives it",
        ),
    ],
)
def test_what_no_cluster_has_ends_no_answer_about_the_rest(item: dict[str, Any], note: str) -> None:
    objects, problems = sort_objects([item, _object("Cohort", "all", spec={})], "one")
    assert (problems, list(objects.of("Cohort"))) == ([], ["all"])
    assert objects.notes[0].startswith(note)


def test_the_same_object_twice_is_refused() -> None:
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "l4"}, "spec": {}}
    with pytest.raises(SpecError, match="ResourceFlavor l4: is given twice"):
        adopt_fleet([AdoptedCluster("one", "us-east4", [flavor, flavor])], IDENTITY)


def _object(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}


@pytest.mark.parametrize(
    ("given", "other", "expected"),
    [
        (
            _object("LocalQueue", "lq", spec={"clusterQueue": "a"}),
            {"spec": {"clusterQueue": "b"}},
            "one.LocalQueue default/lq: is given twice",
        ),
        (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"a": "b"}}},
            {"metadata": {"name": "ml"}},
            "one.Namespace ml: is given twice",
        ),
        (
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ml"}},
            {"data": {"a": "b"}},
            "one.Secret ml/s: is given twice",
        ),
    ],
)
def test_an_object_that_is_given_twice_is_not_lost(given: Any, other: Any, expected: str) -> None:
    with pytest.raises(SpecError) as refused:
        adopt_fleet([AdoptedCluster("one", "us-east4", [given, {**given, **other}])], IDENTITY)
    assert str(refused.value.problems[0]).startswith(expected)


def test_where_no_namespace_is_given_an_object_is_where_kubectl_puts_it() -> None:
    queue = _object("ClusterQueue", "q", spec={"namespaceSelector": {}})
    queue["metadata"]["namespace"] = "ml"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ml"}}
    given = [queue, _object("LocalQueue", "lq", spec={"clusterQueue": "q"}), secret, secret]
    adopted = adopt_fleet([AdoptedCluster("one", "us-east4", given, (), "Autopilot")], IDENTITY)
    assert adopted.notes[1:] == ("Secret ml/s on one is left out: a fleet file has no place for it",)
    assert adopted.data["localQueues"] == [{"namespace": "default", "name": "lq", "clusterQueue": "q"}]


@pytest.mark.parametrize("name", ["gke-tenant", "kube-tenant", "system-tenant"])
def test_what_a_tenant_calls_like_a_part_of_the_system_is_named(name: str) -> None:
    objects, fleet = rendered()
    own = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": "team-vision"}}
    objects["worker-a"] += [own, {**own, "metadata": {"name": "q", "namespace": "gke-managed-system"}}]
    left_out = f"ResourceQuota team-vision/{name} on worker-a is left out: a fleet file has no place for it"
    assert adopt(objects, fleet).notes[1:] == (left_out,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("teamRegions: [a]", "teamRegions: "),
        ("budgets: 5", "budgets: "),
        ("following: {clusterQueues: {a: 1}}", "following.clusterQueues"),
        ("fallback: x", "fallback: "),
        ("controller: [x]", "controller: "),
    ],
)
def test_settings_of_the_controller_that_are_malformed_are_named(text: str, expected: str) -> None:
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-fleet-controller", "namespace": "kueue-fleet"},
        "data": {"config.yaml": text},
    }
    with pytest.raises(SpecError) as refused:
        adopt_fleet([AdoptedCluster("one", "us-east4", [settings], (), "Autopilot")], IDENTITY)
    assert str(refused.value.problems[0]).startswith(f"one.ConfigMap kueue-fleet-controller.{expected}")


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("ValidatingAdmissionPolicy", "variables", ["a"]),
        ("ValidatingAdmissionPolicy", "variables", "a"),
        ("LimitRange", "limits", "a"),
        ("LimitRange", "limits", [None]),
        ("ResourceClaimTemplate", "spec", {"devices": {"requests": {"a": "b"}}}),
        ("Deployment", "template", "a"),
        ("Deployment", "template", {"spec": {"initContainers": ["a"], "containers": "a"}}),
    ],
)
def test_parts_of_objects_that_are_malformed_are_passed_over(kind: str, field: str, value: Any) -> None:
    names = {
        "ValidatingAdmissionPolicy": "kueue-fleet-team-team-vision",
        "Deployment": "kueue-fleet-controller",
    }
    objects, fleet = rendered()
    name = names.get(kind, "kueue-fleet")
    for items in objects.values():
        items[:] = [item for item in items if (item["kind"], item["metadata"]["name"]) != (kind, name)]
        metadata = {"name": name, "namespace": "team-vision"}
        items.append({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {field: value}})
    assert any(f"{kind} " in note and "left out" in note for note in adopt(objects, fleet).notes)


def test_a_quota_that_is_missing_where_its_flavor_is_cannot_be_said() -> None:
    objects, fleet = rendered()
    groups = find(objects["worker-b"], "ClusterQueue", "vision")["spec"]["resourceGroups"]
    del groups[0]["flavors"][0]
    assert refusals(objects, fleet)[0].startswith(
        "worker-b.ClusterQueue vision.resourceGroups: has no quota on flavor l4, which is on worker-b"
    )


def live(kind: str, name: str, spec: dict[str, Any], version: str = "v1beta2") -> dict[str, Any]:
    """An object as a cluster prints it."""
    metadata = {"name": name, "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_field_that_is_not_known_ends_no_import() -> None:
    objects, fleet = rendered()
    objects["worker-a"].append(live("Cohort", "x", {"shape": "round", "fairSharing": {"weight": "2"}}))
    adopted = adopt(objects, fleet)
    assert next(item for item in adopted.data["cohorts"] if item["name"] == "x")["fairSharing"] == {"weight": "2"}
    assert any(note.startswith("worker-a: Cohort x.spec.shape left out: ") for note in adopted.notes)


def test_a_live_object_that_cannot_be_read_is_left_out() -> None:
    objects, fleet = rendered()
    objects["worker-a"].append(live("Cohort", "x", {"resourceGroups": "none"}))
    adopted = adopt(objects, fleet)
    assert "x" not in [item["name"] for item in adopted.data.get("cohorts", ())]
    assert any(note.startswith("worker-a: Cohort x.spec.resourceGroups left out: ") for note in adopted.notes)


def test_what_began_with_v1alpha1_is_read() -> None:
    objects, fleet = rendered()
    objects["worker-a"].append(live("Cohort", "x", {"parent": "y"}, "v1alpha1"))
    levels = [{"nodeLabel": "cloud.google.com/gce-topology-block"}, {"nodeLabel": "kubernetes.io/hostname"}]
    objects["worker-a"].append(live("Topology", "blocks", {"levels": levels}, "v1alpha1"))
    data = adopt(objects, fleet).data
    assert [item["parentName"] for item in data["cohorts"] if item["name"] == "x"] == ["y"]
    assert [entry["levels"] for entry in data["topologies"] if entry["name"] == "blocks"] == [levels]


def test_a_platform_with_an_error_gets_its_list_of_losses() -> None:
    objects, fleet = rendered()
    pods = {"name": "p", "namespace": "team-vision", "creationTimestamp": "2026-01-01T00:00:00Z"}
    objects["worker-a"].append({"apiVersion": "v1", "kind": "Service", "metadata": pods, "spec": {}})
    flavors = [flavor_quotas("gone", 1)]
    groups = [{"coveredResources": ["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"], "flavors": flavors}]
    objects["worker-a"].append(live("ClusterQueue", "broken", {"resourceGroups": groups, "namespaceSelector": {}}))
    adopted = adopt(objects, fleet)
    with pytest.raises(SpecError):
        parse_fleet(adopted.data)
    assert any("Service team-vision/p on worker-a is left out" in note for note in adopted.notes)


def adopt_one(more: Objects) -> Adopted:
    """A Standard cluster with one pool, and more objects in it."""
    fleet = parse_fleet(small_fleets.one_pool_data())
    cluster = existing_cluster(fleet, "batch")
    names = {(item["kind"], item["metadata"]["name"]) for item in more["batch"]}
    objects = [entry for entry in cluster.objects if (entry["kind"], entry["metadata"]["name"]) not in names]
    return adopt_fleet([replace(cluster, objects=[*objects, *more["batch"]])], IDENTITY)


def kueue_deployment(limits: dict[str, str]) -> dict[str, Any]:
    container = {"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.19.2", "resources": {"limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


@pytest.mark.parametrize(
    ("limits", "resources"),
    [
        ({"memory": "4Gi"}, {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}),
        ({"cpu": "4"}, {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}),
        ({"memory": "512Mi"}, None),
    ],
)
def test_kueue_keeps_what_its_pods_have_more_than_a_fleets(
    limits: dict[str, str], resources: dict[str, Any] | None
) -> None:
    result = adopt_one({"batch": [kueue_deployment(limits)]})
    assert result.data["kueue"].get("resources") == resources


def test_marks_of_an_owner_that_the_file_does_not_have_are_named() -> None:
    annotations = {"note": "ask bob", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    flavor = {**copy.deepcopy(POOL_FLAVOR), "metadata": {"name": "l4", "annotations": annotations}}
    [note] = [note for note in adopt_one({"batch": [flavor]}).notes if "keeps" in note]
    assert note == "ResourceFlavor l4 on batch keeps annotations.note, which the file does not have"
