from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

import pulumi_mocks
from kueue_admission.api import KueueConfiguration
from kueue_admission.api.configuration import Integrations
from kueue_admission.kernel import SpecError
from kueue_fleet import GrafanaInstall, JobSetInstall, KueueInstall, NvidiaDraDriverInstall
from kueue_fleet.fleet_file import Grafana, JobSetInstallation, KueueInstallation, parse_fleet
from kueue_fleet.fleet_file.model.operators import KubeRay, LeaderWorkerSet, Operator, Trainer
from kueue_fleet.kueue_components.install import OperatorInstall

EXAMPLES = Path(__file__).parents[2] / "examples"
IMAGE = {"repository": "registry.k8s.io/kueue/kueue", "tag": "v0.19.2", "pullPolicy": "IfNotPresent"}
VALUES = {"managerConfig": {"controllerManagerConfigYaml": "kind: Configuration"}}


def test_kueue_is_a_named_release_of_the_official_chart_that_is_waited_for() -> None:
    recording = pulumi_mocks.run(lambda: KueueInstall("kueue", KueueInstallation(), values=VALUES))
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs == {
        "name": "kueue",
        "namespace": "kueue-system",
        "chart": "oci://registry.k8s.io/kueue/charts/kueue",
        "version": "0.19.2",
        "values": {**VALUES, "controllerManager": {"manager": {"image": IMAGE}}},
        "timeout": 900,
        "maxHistory": 5,
        "skipAwait": False,
        "compat": "true",
    }
    assert release.timeouts == {"create": "20m", "update": "20m", "delete": "20m"}
    namespace = recording.one("Namespace")
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    assert namespace.inputs["metadata"] == {"name": "kueue-system", "labels": labels}
    assert recording.is_before(namespace, release)


def test_the_priority_of_kueues_pods_is_there_before_them() -> None:
    recording = pulumi_mocks.run(lambda: KueueInstall("kueue") and None)
    result = recording.one("PriorityClass")
    assert result.inputs["metadata"] == {"name": "kueue-fleet-critical"}
    assert (result.inputs["value"], result.inputs["preemptionPolicy"]) == (1_000_000_000, "PreemptLowerPriority")
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["values"]["controllerManager"]["manager"]["priorityClassName"] == "kueue-fleet-critical"
    assert recording.is_before(result, release)

    spec = KueueInstallation(priority_class_name="platform")
    assert not pulumi_mocks.run(lambda: KueueInstall("kueue", spec) and None).of_type("PriorityClass")


@pytest.mark.parametrize(
    ("operator", "spec", "chart", "values"),
    [
        (
            "kubeRay",
            KubeRay(),
            {"chart": "kuberay-operator", "repositoryOpts": {"repo": "https://ray-project.github.io/kuberay-helm"}},
            {"image": {"repository": "quay.io/kuberay/operator", "tag": "v1.6.2"}},
        ),
        (
            "kubeRay",
            KubeRay(chart="oci://mirror/kuberay-operator", repository=None, version="1.6.3"),
            {"chart": "oci://mirror/kuberay-operator"},
            {"image": {"repository": "quay.io/kuberay/operator", "tag": "v1.6.3"}},
        ),
        (
            "leaderWorkerSet",
            LeaderWorkerSet(),
            {"chart": "oci://registry.k8s.io/lws/charts/lws"},
            {
                "image": {
                    "manager": {"repository": "registry.k8s.io/lws/lws", "tag": "v0.9.0", "pullPolicy": "IfNotPresent"}
                }
            },
        ),
        (
            "trainer",
            Trainer(),
            {"chart": "oci://ghcr.io/kubeflow/charts/kubeflow-trainer"},
            {
                "jobset": {"install": False},
                "image": {
                    "registry": "ghcr.io",
                    "repository": "kubeflow/trainer/trainer-controller-manager",
                    "tag": "v2.2.1",
                },
            },
        ),
    ],
)
def test_an_operator_is_a_release_of_its_own_chart(
    operator: str, spec: Operator, chart: dict[str, Any], values: dict[str, Any]
) -> None:
    recording = pulumi_mocks.run(lambda: OperatorInstall("it", operator, spec))
    release = recording.one("kubernetes:helm.sh/v3:Release").inputs
    assert {key: release[key] for key in ("chart", "repositoryOpts") if key in release} == chart
    assert (release["version"], release["namespace"], release["values"]) == (spec.version, spec.namespace, values)


@pytest.mark.parametrize("later", [False, True], ids=["plain", "output"])
def test_values_of_ones_own_may_name_an_image_and_need_not(later: bool) -> None:
    """A chart by path asks for a moving tag."""

    def image(values: dict[str, Any]) -> dict[str, Any]:
        recording = pulumi_mocks.run(
            lambda: KueueInstall("kueue", values=pulumi.Output.from_input(values) if later else values) and None
        )
        result: dict[str, Any] = recording.one("Release").inputs["values"]["controllerManager"]["manager"]["image"]
        return result

    assert image({"enableKueueViz": False}) == IMAGE
    own = {"controllerManager": {"manager": {"image": {"repository": "mirror/kueue", "tag": "v0.19.2-patched"}}}}
    assert image(own) == {**IMAGE, "repository": "mirror/kueue", "tag": "v0.19.2-patched"}


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


def test_without_values_the_release_has_the_specs_own_configuration() -> None:
    recording = pulumi_mocks.run(lambda: KueueInstall("kueue") and None)
    release = recording.one("kubernetes:helm.sh/v3:Release")
    assert (release.inputs["version"], release.inputs["namespace"]) == ("0.19.2", "kueue-system")
    written = yaml.safe_load(release.inputs["values"]["managerConfig"]["controllerManagerConfigYaml"])
    assert written["kind"] == "Configuration"
    assert written["integrations"]["frameworks"] == ["batch/job", "jobset.x-k8s.io/jobset"]

    spec = KueueInstallation(
        namespace="batch", configuration=KueueConfiguration(integrations=Integrations(frameworks=("pod",)))
    )
    recording = pulumi_mocks.run(lambda: KueueInstall("kueue", spec) and None)
    values = recording.one("kubernetes:helm.sh/v3:Release").inputs["values"]
    own = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    assert own == {**written, "namespace": "batch", "integrations": {"frameworks": ["pod"]}}


def test_charts_of_the_stacks_config_take_the_place_of_the_specs() -> None:
    def program() -> None:
        KueueInstall("kueue")
        JobSetInstall("jobset")
        GrafanaInstall("grafana", project="lab-project", account="reader@lab")

    charts = {"kueue": "/charts/kueue", "grafana": "/charts/stack"}
    recording = pulumi_mocks.run(program, config={"kueue-fleet:charts": charts})
    assert {r.name: r.inputs["chart"] for r in recording.of_type("Release")} == {
        "kueue": "/charts/kueue",
        "jobset": "oci://registry.k8s.io/jobset/charts/jobset",
        "grafana": "/charts/stack",
    }


def test_an_unknown_chart_is_refused() -> None:
    config = {"kueue-fleet:charts": {"kueu": "/charts/kueue"}}
    with pytest.raises(SpecError, match=r"kueue-fleet:charts.kueu: there is no such chart; did you mean kueue\?"):
        pulumi_mocks.run(lambda: KueueInstall("kueue") and None, config=config)


def test_the_dra_driver_runs_on_the_nodes_of_its_pools() -> None:
    spec = parse_fleet(yaml.safe_load((EXAMPLES / "gpu-networks" / "fleet.yaml").read_text()))
    driver = spec.nvidia_dra_driver
    assert driver is not None
    values = driver.helm_values(spec.dra_pools_on("gpus"))
    recording = pulumi_mocks.run(lambda: NvidiaDraDriverInstall("dra", driver, values=values) and None)
    release = recording.one("kubernetes:helm.sh/v3:Release").inputs
    chart = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"
    assert (release["chart"], release["version"]) == (chart, "0.4.1")
    assert release["values"]["resources"] == {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}}
    labels = recording.one("Namespace").inputs["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    required = release["values"]["kubeletPlugin"]["affinity"]["nodeAffinity"]
    [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["gb200"]


def test_grafana_is_installed_in_a_pinned_version_for_a_project_that_only_pulumi_knows() -> None:
    def program() -> None:
        project = pulumi.Output.from_input("made-project")
        spec = Grafana(namespace="graphs")
        GrafanaInstall("grafana", spec, project=project, account=pulumi.Output.concat("reader@", project))

    release = pulumi_mocks.run(program).one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["chart"] == "oci://ghcr.io/grafana-community/helm-charts/grafana"
    assert (release.inputs["version"], release.inputs["namespace"]) == (Grafana().version, "graphs")
    account = {"iam.gke.io/gcp-service-account": "reader@made-project"}
    assert release.inputs["values"]["serviceAccount"]["annotations"] == account
    assert "--query.project-id=made-project" in release.inputs["values"]["extraContainers"]
    assert not release.protect
