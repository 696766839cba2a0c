"""`render --output-dir`: a folder for each cluster, as it is kept in git for Argo CD, Config Sync or kustomize."""

from __future__ import annotations

from pathlib import Path

import typer

from kueue_admission.cli import console
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.yaml_text import dump_yaml, load_yaml
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.charts import RELEASES
from kueue_fleet.objects.charts import ClusterChart, charts_on
from kueue_fleet.objects.folders import KUSTOMIZATION, render_folder


def write_folders(fleet: FleetSpec, clusters: list[str], folder: Path) -> None:
    """Write the objects of these clusters, and remove what an earlier run wrote and the fleet has no longer.

    Raises CommandError.
    """
    for cluster in clusters:
        documents, place = _files_of(fleet, cluster), folder / cluster
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name in _earlier(place) - documents.keys():
                (place / name).unlink(missing_ok=True)
            for name, text in documents.items():
                (place / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise console.CommandError(f"{place}: cannot be written: {error.strerror}; give another folder") from None
        console.line(f"{place}: {console.count(len(documents), 'file')}")


def show_difference(fleet: FleetSpec, clusters: list[str], folder: Path) -> None:
    """Print what `write_folders` would change, as a unified diff. Raises Exit with code 1 where there is anything."""
    import difflib

    differs = False
    for cluster in clusters:
        documents, place = _files_of(fleet, cluster), folder / cluster
        for name in sorted(documents.keys() | _earlier(place)):
            old, new = _text(place / name), documents.get(name, "")
            labels = (f"{place / name}", f"{place / name} of the fleet")
            for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), *labels):
                differs = True
                console.text(line if line.endswith("\n") else f"{line}\n")
    if differs:
        raise typer.Exit(1)
    console.line("no difference")


def _files_of(fleet: FleetSpec, cluster: str) -> dict[str, str]:
    values, before = {}, "the objects here"
    for chart in reversed(charts_on(fleet, cluster)):
        name = _values_file(chart.release)
        lines = [f"# {chart.release}, before {before}:", *_commands(chart, name), dump_yaml(dict(chart.values))]
        values[name], before = "\n".join(lines), chart.release
    return {**values, **render_folder(fleet, cluster)}


def _values_file(release: str) -> str:
    return f"{release}.values.yaml"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise console.CommandError(f"{file}: cannot be read: {error}; give the folder of an earlier run") from None


def _earlier(place: Path) -> set[str]:
    """The files that an earlier run wrote, by its kustomization, and values of charts; others are never touched."""
    file = place / KUSTOMIZATION
    if not (text := _text(file)):
        return set()
    try:
        documents = load_yaml(text, str(file))
    except SpecError as error:
        raise console.CommandError(f"{error}, or give another folder") from None
    resource_files = documents.get("resources") if isinstance(documents, dict) else None
    names = [name for name in resource_files if isinstance(name, str)] if isinstance(resource_files, list) else []
    charts = {name for name in map(_values_file, RELEASES.values()) if (place / name).exists()}
    return charts | {name for name in names if "/" not in name and name.endswith(".yaml")}


def charts_comment(fleet: FleetSpec, cluster: str) -> str:
    """How to install the charts of a cluster, with their values, as lines of a comment."""
    lines = ["# Charts, in this order, before the objects below. Each reads the values beneath it:"]
    for chart in charts_on(fleet, cluster):
        lines += _commands(chart, "-")
        lines += [f"#     {line}" for line in dump_yaml(dict(chart.values)).splitlines()]
    return "\n".join(lines)


def _commands(chart: ClusterChart, values: str) -> list[str]:
    """How to install a chart, as lines of a comment; `values` is the file with its values."""
    lines = []
    if priority_class := chart.priority_class:
        lines.append(
            f"kubectl create priorityclass {priority_class['metadata']['name']} --value={priority_class['value']}"
        )
    if labels := chart.namespace_labels:
        lines.append(f"kubectl create namespace {chart.namespace}")
        lines.append(" ".join([f"kubectl label namespace {chart.namespace}", *(f"{k}={v}" for k, v in labels.items())]))
    source = f"{chart.chart} --repo {chart.repository}" if chart.repository else chart.chart
    lines.append(
        f"helm upgrade --install {chart.release} {source} --version {chart.version} --namespace {chart.namespace} "
        f"--create-namespace --values {values}"
    )
    return [f"#   {line}" for line in lines]
