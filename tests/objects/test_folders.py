"""The folder of a cluster, read by the real kustomize: the same objects, in an order that holds."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.objects.test_render import rich_data

from command_line import call
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.charts import charts_on
from kueue_fleet.objects.folders import DEPENDS_ON, KUSTOMIZATION, WAVE, render_folder
from needed_programs import KUBECTL, needed

STACKS = Path(__file__).parents[2] / "stacks"
DWS = STACKS / "Pulumi.dws-multikueue.yaml"
FLEETS = {name: STACKS / f"Pulumi.{name}.yaml" for name in ("dws-multikueue", "prod", "batch-platform")}


def fleet(name: str) -> FleetSpec:
    return parse_fleet_text(FLEETS[name].read_text(), source=name)


def identity(each: Mapping[str, Any]) -> tuple[str, str, str]:
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


@pytest.mark.parametrize(
    ("name", "cluster"),
    [("dws-multikueue", "manager-europe-west4"), ("prod", "worker-us-central1"), ("batch-platform", "batch-dev")],
)
def test_kustomize_builds_the_same_objects(name: str, cluster: str, tmp_path: Path) -> None:
    program = needed(KUBECTL)
    assert call("render", FLEETS[name], "--output-dir", tmp_path).returncode == 0
    built = subprocess.run(
        [program, "kustomize", str(tmp_path / cluster)], text=True, capture_output=True, check=True, timeout=120
    )
    objects = {identity(entry): entry for entry in yaml.safe_load_all(built.stdout)}
    expected = {identity(each): each for each in render_cluster(fleet(name), cluster)}
    assert objects.keys() == expected.keys()
    for key, item in objects.items():
        annotations = item["metadata"].pop("annotations")
        assert annotations.pop(WAVE)
        annotations.pop(DEPENDS_ON, None)
        before = expected[key]["metadata"]
        assert annotations == before.get("annotations", {})
        assert {name: value for name, value in item.items() if name != "metadata"} == {
            name: value for name, value in expected[key].items() if name != "metadata"
        }


@pytest.mark.parametrize("name", FLEETS)
def test_what_an_object_needs_is_in_an_earlier_wave_and_in_the_folder(name: str) -> None:
    spec = fleet(name)
    for cluster in spec.cluster_names:
        files = render_folder(spec, cluster)
        objects = [yaml.safe_load(text) for key, text in files.items() if key != KUSTOMIZATION]
        waves = {}
        for item in objects:
            group, _, version = item["apiVersion"].rpartition("/")
            kind, namespace, own = identity(item)
            place = f"namespaces/{namespace}/" if namespace else ""
            waves[f"{group if version else ''}/{place}{kind}/{own}"] = int(item["metadata"]["annotations"][WAVE])
        assert waves
        for item in objects:
            annotations = item["metadata"]["annotations"]
            for need in filter(None, annotations.get(DEPENDS_ON, "").split(",")):
                assert waves[need] < int(annotations[WAVE]), (need, identity(item))


def test_queues_come_after_flavors_and_jobs_entrances_after_queues() -> None:
    waves = {
        item["kind"]: int(item["metadata"]["annotations"][WAVE])
        for key, text in render_folder(fleet("prod"), "worker-us-central1").items()
        if (item := yaml.safe_load(text)) and key != KUSTOMIZATION
    }
    assert waves["Namespace"] < waves["ResourceFlavor"] < waves["ClusterQueue"] < waves["LocalQueue"]


def test_file_names_are_unique_whatever_the_case() -> None:
    spec = parse_fleet(rich_data())
    for cluster in spec.cluster_names:
        files = render_folder(spec, cluster)
        assert len({name.lower() for name in files}) == 1 + len(render_cluster(spec, cluster))


@pytest.mark.parametrize("name", FLEETS)
def test_every_namespace_comes_with_the_objects_or_with_a_chart(name: str) -> None:
    spec = fleet(name)
    for cluster in spec.cluster_names:
        objects = render_cluster(spec, cluster)
        result = {entry["metadata"]["name"] for entry in objects if entry["kind"] == "Namespace"}
        result |= {chart.namespace for chart in charts_on(spec, cluster)}
        assert {item["metadata"].get("namespace", "kube-system") for item in objects} <= result | {"kube-system"}


def test_each_values_file_says_what_it_comes_before(tmp_path: Path) -> None:
    assert call("render", FLEETS["batch-platform"], "--output-dir", tmp_path).returncode == 0
    files = {file.name: file.read_text().splitlines() for file in (tmp_path / "batch-dev").glob("*.values.yaml")}
    assert {name: lines[0] for name, lines in files.items()} == {
        "jobset.values.yaml": "# jobset, before kueue:",
        "kueue.values.yaml": "# kueue, before grafana:",
        "grafana.values.yaml": "# grafana, before the objects here:",
    }


def test_values_of_a_chart_that_is_gone_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(DWS.read_text())
    call("render", file, "--output-dir", tmp_path)
    grafana = tmp_path / "manager-europe-west4" / "grafana.values.yaml"
    assert grafana.exists()
    data = yaml.safe_load(DWS.read_text())
    spec = next(value for value in data["config"].values() if isinstance(value, dict))
    spec["observability"] = {"grafana": {"enabled": False}}
    file.write_text(yaml.safe_dump(data))
    call("render", file, "--output-dir", tmp_path)
    assert not grafana.exists()


def test_the_difference_to_what_is_in_git_is_shown(tmp_path: Path) -> None:
    assert call("render", DWS, "--output-dir", tmp_path).returncode == 0
    same = call("render", DWS, "--output-dir", tmp_path, "--diff")
    assert (same.returncode, same.stdout) == (0, "no difference\n")
    file = tmp_path / "worker-us-east4" / "clusterqueue.dws.yaml"
    file.write_text(file.read_text().replace("BestEffortFIFO", "StrictFIFO"))
    changed = call("render", DWS, "--output-dir", tmp_path, "--diff")
    assert changed.returncode == 1
    assert "\n-  queueingStrategy: StrictFIFO\n+  queueingStrategy: BestEffortFIFO\n" in changed.stdout
    assert "StrictFIFO" in file.read_text()


def test_files_of_what_is_gone_are_removed_and_others_stay(tmp_path: Path) -> None:
    call("render", DWS, "--output-dir", tmp_path)
    place = tmp_path / "worker-us-east4"
    listed = yaml.safe_load((place / KUSTOMIZATION).read_text())
    listed["resources"] += ["clusterqueue.old.yaml", "../outside.yaml"]
    (place / KUSTOMIZATION).write_text(yaml.safe_dump(listed))
    for name in ("clusterqueue.old.yaml", "../outside.yaml", "mine.yaml"):
        (place / name).write_text("kind: Old\n")
    output = call("render", DWS, "--output-dir", tmp_path, "--diff").stdout
    assert "-kind: Old" in output
    call("render", DWS, "--output-dir", tmp_path)
    assert [(place / name).exists() for name in ("clusterqueue.old.yaml", "../outside.yaml", "mine.yaml")] == [
        False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("options", [["--diff"], ["--cloud", "--output-dir", "x"]])
def test_options_that_do_not_go_together(options: list[str]) -> None:
    assert call("render", DWS, *options).returncode == 2


def test_a_kustomization_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "worker-us-east4").mkdir()
    (tmp_path / "worker-us-east4" / KUSTOMIZATION).write_text("a: [")
    result = call("render", DWS, "-c", "worker-us-east4", "--output-dir", tmp_path)
    assert result.returncode == 1
    assert str(tmp_path / "worker-us-east4" / KUSTOMIZATION) in result.stderr
