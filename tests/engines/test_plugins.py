"""The components from YAML and TypeScript, by the real Pulumi: Python goes on with their stacks and changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from kueue_admission.api import (
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    ResourceFlavorSpec,
    WorkloadPriorityClassFields,
)
from kueue_fleet import ClusterQueue, Cohort, Fleet, LocalQueue, Namespaces, ResourceFlavor, WorkloadPriorityClass
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.plugin import package_schema
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir
from tests.engines.node import node_folder
from tests.engines.plugin_lab import PLUGIN, STACK, PluginLab, plugin_lab

PROGRAMS = ("pulumi", "pulumi-language-yaml", "pulumi-language-nodejs")
TSC = ("npx", "tsc", "--incremental", "--tsBuildInfoFile", "checked")
BATCH = "projects/my-gcp-project/locations/us-central1/clusters/batch"
"""The cluster of the examples."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[PluginLab]:
    cache = EngineCache(engines_dir())
    engines = build_engines(cache, names=["pulumi", "pulumi-yaml", "pulumi-nodejs"])
    node = node_folder(cache, os.environ) / "node"
    with plugin_lab(tmp_path, [*(engines.binary(name) for name in PROGRAMS), node]) as result:
        yield result


def test_pulumi_reads_the_schema_of_the_plugin(lab: PluginLab) -> None:
    output = lab.run("pulumi", "package", "get-schema", f"./{PLUGIN}", folder=lab.folder)
    read = json.loads(output[output.index("{\n") :].rpartition("}")[0] + "}")
    ours = package_schema()
    assert set(read["resources"]) == set(ours["resources"])
    assert set(read["types"]) == set(ours["types"])
    for token, resource in ours["resources"].items():
        inputs = read["resources"][token].get("inputProperties", {})
        assert {key: value["description"] for key, value in inputs.items()} == {
            key: value["description"] for key, value in resource["inputProperties"].items()
        }
        assert read["resources"][token]["isComponent"] is True


def yaml_example_in_python(spec: dict[str, Any]) -> Callable[[], None]:
    def program() -> None:
        result = Fleet("platform", parse_fleet(spec))
        cluster = kubernetes.Provider(
            "cluster",
            kubeconfig=result.kubeconfig,
            cluster_identifier=BATCH,
        )
        WorkloadPriorityClass(
            "nightly",
            WorkloadPriorityClassFields(value=10, description="Runs when no other job waits."),
            opts=pulumi.ResourceOptions(provider=cluster, depends_on=[result]),
        )

    return program


def test_the_yaml_example_makes_what_python_makes(lab: PluginLab) -> None:
    folder = lab.example("pulumi-yaml")
    lab.run("pulumi", "stack", "init", STACK, folder=folder)
    planned = lab.run("pulumi", "preview", "--non-interactive", "--color=never", folder=folder)
    assert "kueue-fleet:index:Fleet" in planned
    assert lab.world.objects == {}
    lab.run("pulumi", "up", "--yes", "--skip-preview", folder=folder)
    outputs = json.loads(lab.run("pulumi", "stack", "output", "--json", "--show-secrets", folder=folder))
    assert outputs["endpoint"] in outputs["kubeconfig"]
    assert "[secret]" in lab.run("pulumi", "stack", "output", "kubeconfig", folder=folder)
    lab.run("pulumi", "preview", "--expect-no-changes", folder=folder)

    spec = fleet_of(folder)
    assert lab.up_python(yaml_example_in_python(spec), "kueue-fleet") == []
    spec["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = 5
    assert lab.up_python(yaml_example_in_python(spec), "kueue-fleet") == ["update ClusterQueue batch/gpu"]


def fleet_of(folder: Path) -> dict[str, Any]:
    stack = yaml.safe_load((folder / f"Pulumi.{STACK}.yaml").read_text())
    spec: dict[str, Any] = stack["config"]["kueue-fleet:fleet"]
    return spec


def test_what_is_wrong_is_said_in_the_librarys_words_all_at_once(lab: PluginLab) -> None:
    folder = lab.example("pulumi-yaml")
    lab.run("pulumi", "stack", "init", STACK, folder=folder)
    spec = fleet_of(folder)
    spec["clusters"][0]["region"] = "moon-west1"
    spec["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["name"] = "l5"
    (folder / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump({"config": {"kueue-fleet:fleet": spec}}))
    output = lab.run("pulumi", "preview", "--non-interactive", "--color=never", folder=folder, fails=True)
    assert "kueue-fleet:index:Fleet resource 'platform' has a problem" in output
    assert "property spec.clusters[batch].region has a problem: moon-west1 is not a known region" in output
    assert "flavors[l5].name has a problem: there is no flavor l5; use one of the flavors: l4, l4-spot" in output
    assert "Traceback" not in output
    assert lab.world.objects == {}


def typescript_example_in_python() -> None:
    cluster = kubernetes.Provider("cluster", kubeconfig=pulumi.Output.secret("{}"), cluster_identifier=BATCH)

    def after(*needed: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(provider=cluster, depends_on=list(needed))

    labels = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    l4 = ResourceFlavor("l4", ResourceFlavorSpec(node_labels=labels), opts=after())
    spot = ResourceFlavor(
        "l4-spot", ResourceFlavorSpec(node_labels={**labels, "cloud.google.com/gke-spot": "true"}), opts=after()
    )
    research = Cohort("research", CohortSpec(), opts=after())
    for team, gpus in {"team-vision": 8, "team-language": 4}.items():
        namespace = Namespaces(team, [team], opts=after())
        quotas = [
            {"name": flavor, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": quota}]}
            for flavor, quota in (("l4", gpus), ("l4-spot", 2 * gpus))
        ]
        spec = ClusterQueueSpec.model_validate(
            {
                "cohortName": "research",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team}},
                "queueingStrategy": "BestEffortFIFO",
                "preemption": {"reclaimWithinCohort": "Any"},
                "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": quotas}],
            }
        )
        queue = ClusterQueue(team, spec, opts=after(l4, spot, research))
        LocalQueue(
            f"{team}-gpu",
            LocalQueueSpec(cluster_queue=team),
            namespace=team,
            object_name="gpu",
            opts=after(namespace, queue),
        )


def test_the_typescript_example_makes_what_python_makes(lab: PluginLab) -> None:
    folder = lab.example("typescript")
    locked = (folder / "package-lock.json").read_text()
    lab.run("pulumi", "install", folder=folder)
    assert (folder / "package-lock.json").read_text() == locked, "the lock file is not that of package.json and the SDK"
    lab.run(*TSC, folder=folder)
    lab.run("pulumi", "stack", "init", STACK, folder=folder)
    lab.run("pulumi", "config", "set", "--secret", "kubeconfig", "{}", folder=folder)
    planned = lab.run("pulumi", "preview", "--non-interactive", "--color=never", folder=folder)
    assert "kueue-fleet:index:ClusterQueue" in planned
    assert lab.world.objects == {}
    lab.run("pulumi", "up", "--yes", "--skip-preview", folder=folder)
    result = [operation.short for operation in lab.world.operations]
    assert result.index("create ResourceFlavor l4-spot") < result.index("create ClusterQueue team-vision")
    assert result.index("create ClusterQueue team-vision") < result.index("create LocalQueue team-vision-gpu")
    assert lab.up_python(typescript_example_in_python, "typescript-queues") == []

    program = folder / "index.ts"
    program.write_text(program.read_text().replace("nominalQuota: gpus", "nominalQouta: gpus"))
    assert "'nominalQuota'" in lab.run(*TSC, folder=folder, fails=True)
