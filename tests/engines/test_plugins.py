"""The components from YAML, by the real Pulumi: the same resources as from Python, to the last input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from engines.plugin_lab import PLUGIN, PluginLab, plugin_lab
from kueue_fleet import Fleet, WorkloadPriorityClass
from kueue_fleet.plugin import package_schema
from kueue_fleet.rehearsal.engines import EngineCache, build_engines
from kueue_fleet.rehearsal.paths import engines_dir
from kueue_fleet.spec import WorkloadPriorityClassFields, parse_fleet

PROJECT = "company-batch"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[PluginLab]:
    engines = build_engines(EngineCache(engines_dir()), names=["pulumi", "pulumi-yaml"])
    with plugin_lab(tmp_path, [engines.binary(name) for name in ("pulumi", "pulumi-language-yaml")]) as made:
        yield made


def test_pulumi_reads_the_schema_of_the_plugin(lab: PluginLab) -> None:
    said = lab.run("pulumi", "package", "get-schema", f"./{PLUGIN}", folder=lab.folder)
    read = json.loads(said[said.index("{\n") :].rpartition("}")[0] + "}")
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
        made = Fleet("fleet", parse_fleet(spec))
        cluster = kubernetes.Provider(
            "cluster",
            kubeconfig=made.kubeconfig,
            cluster_identifier=f"projects/{PROJECT}/locations/us-central1/clusters/batch",
        )
        WorkloadPriorityClass(
            "nightly",
            WorkloadPriorityClassFields(value=10, description="Runs when nobody waits."),
            opts=pulumi.ResourceOptions(provider=cluster, depends_on=[made]),
        )

    return program


def test_the_yaml_example_makes_what_python_makes(lab: PluginLab) -> None:
    folder = lab.example("pulumi-yaml")
    lab.run("pulumi", "stack", "init", "dev", folder=folder)
    lab.run("pulumi", "config", "set", "project", PROJECT, folder=folder)
    planned = lab.run("pulumi", "preview", "--non-interactive", "--color=never", folder=folder)
    assert "kueue-fleet:index:Fleet" in planned
    assert lab.world.objects == {}
    lab.run("pulumi", "up", "--yes", "--skip-preview", folder=folder)
    outputs = json.loads(lab.run("pulumi", "stack", "output", "--json", "--show-secrets", folder=folder))
    assert "batch" in outputs["kubeconfig"]
    assert outputs["endpoint"] in outputs["kubeconfig"]
    assert "[secret]" in lab.run("pulumi", "stack", "output", "kubeconfig", folder=folder)
    lab.run("pulumi", "preview", "--expect-no-changes", folder=folder)
    made = lab.taken_objects()

    resources = yaml.safe_load((folder / "Pulumi.yaml").read_text())["resources"]
    spec = json.loads(json.dumps(resources["fleet"]["properties"]["spec"]).replace("${project}", PROJECT))
    assert made == lab.up_python(yaml_example_in_python(spec), "yaml-fleet")


def test_what_is_wrong_is_said_in_the_librarys_words_all_at_once(lab: PluginLab) -> None:
    folder = lab.example("pulumi-yaml")
    program = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    spec = program["resources"]["fleet"]["properties"]["spec"]
    spec["clusters"][0]["region"] = "moon-west1"
    spec["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["name"] = "l5"
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(program, sort_keys=False))
    lab.run("pulumi", "stack", "init", "dev", folder=folder)
    said = lab.run("pulumi", "preview", "--non-interactive", "--color=never", folder=folder, fails=True)
    assert "kueue-fleet:index:Fleet resource 'fleet' has a problem" in said
    assert "property spec.clusters[batch].region has a problem: moon-west1 is no region that is known here" in said
    assert "flavors[l5].name has a problem: there is no flavor l5; use one of the flavors: l4, l4-spot" in said
    assert "Traceback" not in said
    assert lab.world.objects == {}
