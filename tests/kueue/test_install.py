from __future__ import annotations

import pytest

import pulumi_mocks
from kueue_fleet import GrafanaInstall, JobSetInstall, KueueInstall
from kueue_fleet.spec import Grafana, JobSetInstallation, KueueInstallation
from kueue_fleet.spec.manifests import manifest

VALUES = {"managerConfig": {"controllerManagerConfigYaml": "kind: Configuration"}}


def test_kueue_is_a_named_release_of_the_official_chart_that_is_waited_for() -> None:
    recording = pulumi_mocks.run(lambda: KueueInstall("kueue", KueueInstallation(), values=VALUES))
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs == {
        "name": "kueue",
        "namespace": "kueue-system",
        "chart": "oci://registry.k8s.io/kueue/charts/kueue",
        "version": "0.19.2",
        "values": VALUES,
        "timeout": 900,
        "maxHistory": 5,
        "skipAwait": False,
        "compat": "true",
    }
    assert release.timeouts == {"create": "20m", "update": "20m", "delete": "20m"}
    namespace = recording.one("Namespace")
    assert namespace.inputs["metadata"] == {"name": "kueue-system"}
    assert recording.is_before(namespace, release)


def test_jobset_runs_the_image_of_its_version() -> None:
    recording = pulumi_mocks.run(lambda: JobSetInstall("jobset", JobSetInstallation(version="0.11.0")))
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["chart"] == "oci://registry.k8s.io/jobset/charts/jobset"
    assert release.inputs["values"] == {"image": {"repository": "registry.k8s.io/jobset/jobset", "tag": "v0.11.0"}}


@pytest.mark.parametrize("protection", [True, False])
def test_protection_keeps_the_release_with_all_its_queues(protection: bool) -> None:
    """Uninstalling the chart deletes the CRDs, and with them every queue and Workload."""
    recording = pulumi_mocks.run(
        lambda: KueueInstall("kueue", KueueInstallation(), values=VALUES, deletion_protection=protection)
    )
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.protect is release.retain_on_delete is protection
    assert not recording.one("Namespace").protect


def test_another_chart_takes_the_place_of_the_specs() -> None:
    recording = pulumi_mocks.run(
        lambda: KueueInstall("kueue", KueueInstallation(), values=VALUES, chart="/charts/kueue")
    )
    assert recording.one("kubernetes:helm.sh/v3:Release").inputs["chart"] == "/charts/kueue"


def test_prometheus_and_grafana_come_before_what_they_are_told() -> None:
    monitor = manifest("monitoring.coreos.com/v1", "ServiceMonitor", "kueue", "metrics", spec={})
    spec = Grafana(enabled=True, version="76.4.0", namespace="metrics")
    recording = pulumi_mocks.run(lambda: GrafanaInstall("grafana", spec, objects=[monitor]))
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["chart"] == "oci://ghcr.io/prometheus-community/charts/kube-prometheus-stack"
    assert (release.inputs["version"], release.inputs["namespace"]) == ("76.4.0", "metrics")
    assert release.inputs["values"]["grafana"]["adminPassword"] == ""
    assert not release.protect
    assert recording.is_before(release, recording.one("ServiceMonitor"))


def test_without_a_version_the_chart_is_the_newest() -> None:
    recording = pulumi_mocks.run(lambda: GrafanaInstall("grafana", Grafana(enabled=True), chart="/charts/stack"))
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert "version" not in release.inputs
    assert release.inputs["chart"] == "/charts/stack"
