"""Kueue's Configuration and Helm values on each cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fleet_file.builders import fleet
from kueue_fleet.fleet_file import kueue_configuration, kueue_helm_values
from kueue_fleet.kueue_api.configuration import overlay


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
    }


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
    tls = {"minVersion": "VersionTLS13", "curvePreferences": [29, 4588], "ofTomorrow": {"deep": [{"a": 1}]}}
    written = {"tls": tls, "webhook": {"host": "::1"}, "clientConnection": {"qps": 12.5}}
    made = kueue_configuration(fleet({"kueue/configuration": written}), "worker-a")
    assert made["tls"] == tls
    assert made["webhook"] == {"port": 9443, "host": "::1"}
    assert made["clientConnection"] == {"qps": 12.5, "burst": 500}


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
    assert list(values) == ["managerConfig"]
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
