"""Kueue's Configuration and Helm values on each cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.fleet_file.builders import changed, fleet, fleet_data, problems

from kueue_admission.api.configuration import overlay
from kueue_fleet.fleet_file import kueue_configuration, kueue_helm_values
from kueue_fleet.fleet_file.check.releases import missing_fields

QUEUE = {"namespace": "default", "name": "other"}


def test_what_nobody_says_is_as_in_the_chart() -> None:
    assert kueue_configuration(fleet(), "worker-a") == {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Pod": 5,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": {"qps": 300, "burst": 500},
        "featureGates": {"UnadmittedWorkloadsObservability": True},
        "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]},
        **managed("In", "kubernetes.io/metadata.name", values=["default", "team-language", "team-vision"]),
    }


def managed(operator: str, key: str, **values: Any) -> dict[str, Any]:
    """What Kueue is told of the jobs that it manages."""
    return {
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": key, "operator": operator, **values}]},
    }


def of_managed_jobs(changes: dict[str, Any], cluster: str = "manager") -> dict[str, Any]:
    configuration = kueue_configuration(fleet(changes), cluster)
    return {name: value for name, value in configuration.items() if "manage" in name and "Jobs" in name}


@pytest.mark.parametrize("cluster", ["manager", "worker-a"])
def test_jobs_of_teams_wait_for_kueue_without_a_queue_too(cluster: str) -> None:
    """Namespaces by their label, so that a team more does not restart Kueue; by name where other queues need it."""
    assert of_managed_jobs({"localQueues": []}, cluster) == managed("Exists", "kueue-fleet.dev/team")
    assert of_managed_jobs({"localQueues/0/namespace": "team-vision"}, cluster) == managed(
        "Exists", "kueue-fleet.dev/team"
    )


def test_a_fleet_without_teams_manages_what_kueue_does_by_default() -> None:
    assert of_managed_jobs({"teams": [], "localQueues/+": {**QUEUE, "clusterQueue": "language"}}) == {}


def test_what_the_file_says_of_managed_jobs_holds() -> None:
    own = {"matchLabels": {"a": "b"}}
    given = {"manageJobsWithoutQueueName": False, "managedJobsNamespaceSelector": own}
    assert of_managed_jobs({"kueue/configuration": given}) == given


def test_fleet_then_cluster_are_laid_over_it() -> None:
    of = fleet(
        {
            "kueue/configuration": {
                "metrics": {"enableClusterQueueResources": True},
                "clientConnection": {"qps": 50},
                "waitForPodsReady": {"timeout": "1h", "requeuingStrategy": {"backoffLimitCount": 2}},
                "integrations": {"frameworks": ["jobset.x-k8s.io/jobset"]},
            },
            "clusters/1/kueue": {
                "configuration": {
                    "waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": 5}},
                    "clientConnection": {"burst": 60},
                }
            },
        }
    )
    configuration = kueue_configuration(of, "worker-a")
    assert configuration["metrics"] == {"bindAddress": ":8443", "enableClusterQueueResources": True}
    assert configuration["clientConnection"] == {"qps": 50, "burst": 60}
    assert configuration["integrations"] == {"frameworks": ["jobset.x-k8s.io/jobset"]}
    assert configuration["waitForPodsReady"] == {
        "timeout": "1h",
        "requeuingStrategy": {"backoffLimitCount": 2, "backoffBaseSeconds": 5},
    }
    assert kueue_configuration(of, "worker-b")["waitForPodsReady"]["requeuingStrategy"] == {"backoffLimitCount": 2}


def test_sections_that_change_no_admission_are_passed_on_as_they_are_written() -> None:
    tls = {"minVersion": "VersionTLS13", "curvePreferences": [29, 4588]}
    written = {"tls": tls, "webhook": {"host": "::1"}, "clientConnection": {"qps": 12.5}}
    result = kueue_configuration(fleet({"kueue/configuration": written}), "worker-a")
    assert result["tls"] == tls
    assert result["webhook"] == {"port": 9443, "host": "::1"}
    assert result["clientConnection"] == {"qps": 12.5, "burst": 500}


def test_without_jobset_only_jobs_are_managed() -> None:
    of = fleet({"jobSet": {"enabled": False}})
    assert kueue_configuration(of, "worker-a")["integrations"] == {"frameworks": ["batch/job"]}


DISPATCH: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {"dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"}),
    "incremental": (
        {"multiKueue/dispatcher": "Incremental"},
        {
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
            "incrementalDispatcherConfig": {"stepSize": 3},
        },
    ),
    "incremental by one": (
        {"multiKueue/dispatcher": "Incremental", "multiKueue/incremental": {"stepSize": 1}},
        {
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-incremental",
            "incrementalDispatcherConfig": {"stepSize": 1},
        },
    ),
    "external": (
        {"multiKueue/dispatcher": "External", "multiKueue/external": {"name": "example.com/dispatcher"}},
        {"dispatcherName": "example.com/dispatcher"},
    ),
    "everything else": (
        {"multiKueue/gcInterval": "0s", "multiKueue/origin": "fleet-1", "multiKueue/workerLostTimeout": "5m"},
        {
            "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
            "gcInterval": "0s",
            "origin": "fleet-1",
            "workerLostTimeout": "5m",
        },
    ),
}


@pytest.mark.parametrize(("changes", "expected"), DISPATCH.values(), ids=DISPATCH.keys())
def test_multikueue_section_is_on_the_manager_only(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert kueue_configuration(fleet(changes), "manager")["multiKueue"] == expected
    assert "multiKueue" not in kueue_configuration(fleet(changes), "worker-a")


def test_other_multikueue_settings_stay() -> None:
    of = fleet({"kueue/configuration": {"multiKueue": {"externalFrameworks": [{"name": "Foo.v1.example.com"}]}}})
    assert kueue_configuration(of, "manager")["multiKueue"] == {
        "externalFrameworks": [{"name": "Foo.v1.example.com"}],
        "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    }


def test_namespace_is_kueues() -> None:
    assert kueue_configuration(fleet({"kueue/namespace": "queues"}), "worker-a")["namespace"] == "queues"


def test_helm_values_hold_the_configuration_as_text() -> None:
    values = kueue_helm_values(fleet(), "manager")
    assert list(values) == ["managerConfig", "controllerManager"]
    text = values["managerConfig"]["controllerManagerConfigYaml"]
    assert yaml.safe_load(text) == kueue_configuration(fleet(), "manager")


def test_unknown_cluster() -> None:
    with pytest.raises(KeyError):
        kueue_configuration(fleet(), "worker-x")


def test_overlay_merges_maps_and_replaces_the_rest() -> None:
    assert overlay({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2]}, "e": 2}) == {
        "a": {"b": 1, "c": [2]},
        "d": 1,
        "e": 2,
    }
    assert overlay({"a": 1}, 5) == 5


def pods(**kueue: Any) -> dict[str, Any]:
    """Values of the chart for Kueue's pods, with these fields in the section `kueue`."""
    result: dict[str, Any] = kueue_helm_values(
        fleet({f"kueue/{name}": value for name, value in kueue.items()}), "manager"
    )
    values: dict[str, Any] = result["controllerManager"]
    return values


def test_kueue_stays_up_by_default() -> None:
    values = pods()
    assert values["replicas"] == 2
    assert values["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    assert values["manager"]["priorityClassName"] == "kueue-fleet-critical"
    assert values["manager"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "2Gi"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }
    assert [rule["topologyKey"] for rule in values["topologySpreadConstraints"]] == [
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    ]
    for rule in values["topologySpreadConstraints"]:
        assert (rule["maxSkew"], rule["whenUnsatisfiable"]) == (1, "ScheduleAnyway")
        assert rule["labelSelector"] == {
            "matchLabels": {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
        }


def test_the_image_is_that_of_the_version_whatever_the_chart_says() -> None:
    image = {"repository": "registry.k8s.io/kueue/kueue", "tag": "v0.19.2", "pullPolicy": "IfNotPresent"}
    assert pods(chart="/charts/kueue")["manager"]["image"] == image
    mirrored = pods(image="eu-docker.pkg.dev/mirror/kueue/kueue", version="0.19.3")["manager"]["image"]
    assert mirrored == {**image, "repository": "eu-docker.pkg.dev/mirror/kueue/kueue", "tag": "v0.19.3"}


def test_a_single_replica_has_no_budget_that_would_keep_its_node_from_being_drained() -> None:
    assert pods(replicas=1)["podDisruptionBudget"] == {"enabled": False}
    assert pods(replicas=3)["podDisruptionBudget"] == {"enabled": True, "minAvailable": 2}
    assert pods(replicas=3, minAvailable=1)["podDisruptionBudget"] == {"enabled": True, "minAvailable": 1}
    assert pods(minAvailable=0)["podDisruptionBudget"] == {"enabled": False}


def test_pods_ask_for_and_spread_as_the_file_says() -> None:
    values = pods(
        resources={"requests": {"memory": "8Gi"}, "limits": {"cpu": 4}},
        topologySpread=[{"topologyKey": "example.com/rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}],
        priorityClassName="platform",
    )
    assert values["manager"]["resources"] == {
        "requests": {"cpu": "500m", "memory": "8Gi"},
        "limits": {"cpu": "4", "memory": "8Gi"},
    }
    (rule,) = values["topologySpreadConstraints"]
    assert (rule["topologyKey"], rule["maxSkew"], rule["whenUnsatisfiable"]) == ("example.com/rack", 2, "DoNotSchedule")
    assert values["manager"]["priorityClassName"] == "platform"


PODS: dict[str, tuple[dict[str, Any], str]] = {
    "replicas, none": (
        {"kueue/replicas": 0},
        "kueue.replicas: 0 is too small; use at least 1",
    ),
    "budget of all": (
        {"kueue/minAvailable": 2},
        "warning: kueue.minAvailable: 2 of 2 replicas, so no node with one of them could be drained; write 1 or less",
    ),
    "two leaders": (
        {"kueue/configuration": {"leaderElection": {"leaderElect": False}}},
        "kueue.configuration.leaderElection.leaderElect: false, but there are 2 replicas, which would all admit jobs; "
        "remove it, or set replicas to 1",
    ),
    "two leaders on one cluster": (
        {"clusters/0/kueue": {"configuration": {"leaderElection": {"leaderElect": False}}}},
        "clusters[manager].kueue.configuration.leaderElection.leaderElect: false, but there are 2 replicas, which "
        "would all admit jobs; remove it, or set kueue.replicas to 1",
    ),
    "limit below the request": (
        {"kueue/resources": {"limits": {"memory": "1Gi"}}},
        "kueue.resources.limits.memory: 1Gi is less than the request, 2Gi; raise the limit or request less",
    ),
    "no memory": (
        {"kueue/resources": {"requests": {"memory": 0}}},
        "kueue.resources.requests.memory: 0 is nothing; request some memory, or leave the field out",
    ),
    "image with a tag": (
        {"kueue/image": "registry.k8s.io/kueue/kueue:main"},
        'kueue.image: "registry.k8s.io/kueue/kueue:main" has a tag or a digest; write the repository alone',
    ),
    "JobSet's image with a digest": (
        {"jobSet/image": "registry.k8s.io/jobset/jobset@sha256:0"},
        'jobSet.image: "registry.k8s.io/jobset/jobset@sha256:0" has a tag or a digest; write the repository alone',
    ),
    "the system's priority": (
        {"kueue/priorityClassName": "system-cluster-critical"},
        "warning: kueue.priorityClassName: GKE refuses pods of system-cluster-critical outside kube-system, unless "
        "their namespace has a ResourceQuota with this PriorityClass as its scope; leave the field out, or make that "
        "ResourceQuota first",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), PODS.values(), ids=PODS.keys())
def test_pods_that_cannot_be(changes: dict[str, Any], expected: str) -> None:
    assert problems(changed(fleet_data(), changes)) == [expected]


RELEASES = ["0.17.0", "0.17.1", "0.18.2", "0.18.3", "0.19.0", "0.19.1", "0.19.2", "0.20.0"]
WITH_ALL = {
    "multiKueue/dispatcher": "Incremental",
    "multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"},
    "observability": {"managedPrometheus": True},
}


@pytest.mark.parametrize("version", RELEASES)
def test_kueue_gets_no_field_gate_or_value_that_its_release_does_not_have(version: str) -> None:
    spec = fleet({**WITH_ALL, "kueue/version": version})
    release = spec.kueue.release
    for cluster in ("manager", "worker-a"):
        configuration = kueue_configuration(spec, cluster)
        plain = {name: value for name, value in configuration.items() if name not in ("apiVersion", "kind")}
        assert list(missing_fields(release, "Configuration", plain)) == []
        assert configuration["featureGates"].keys() <= release.gates.keys()
        for value in paths(kueue_helm_values(spec, cluster)):
            assert any(f"{value}.".startswith(f"{known}.") for known in release.chart_values), value


def paths(values: dict[str, Any], above: str = "") -> list[str]:
    """The values of the chart, but for the Configuration."""
    return [
        path
        for name, value in values.items()
        if name != "managerConfig"
        for path in (paths(value, f"{above}{name}.") if isinstance(value, dict) and value else [f"{above}{name}"])
    ]


def test_a_cluster_has_the_image_of_the_release_that_it_names() -> None:
    spec = fleet({"clusters/1/kueue": {"version": "0.18.3"}})
    tags = [
        kueue_helm_values(spec, cluster)["controllerManager"]["manager"]["image"]["tag"]
        for cluster in ("manager", "worker-a")
    ]
    assert tags == ["v0.19.2", "v0.18.3"]


@pytest.mark.parametrize(("version", "policy"), [("0.18.3", False), ("0.19.1", False), ("0.19.2", True)])
def test_nominations_are_cleared_by_what_the_release_has_for_it(version: str, policy: bool) -> None:
    own = {
        "multiKueue/dispatcher": "External",
        "multiKueue/external": {"name": "kueue-fleet.dev/dispatcher"},
        "controller": {"image": "example.com/controller:1"},
    }
    values = kueue_helm_values(fleet({**own, "kueue/version": version}), "manager")
    assert ("enableMutatingAdmissionPolicy" in values) is policy
    assert ("WorkloadRequestUseMergePatch" in values["managerConfig"]["controllerManagerConfigYaml"]) is not policy


def test_what_workers_are_reached_by_has_the_name_of_the_release() -> None:
    spec = fleet({**WITH_ALL, "kueue/version": "0.18.3"})
    section = kueue_configuration(spec, "manager")["multiKueue"]
    assert list(section["clusterProfile"]) == ["credentialsProviders"]
    assert "incrementalDispatcherConfig" not in section
