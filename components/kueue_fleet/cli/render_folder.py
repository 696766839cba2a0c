"""`render --output-dir`: a folder for each cluster, as it is kept in git for Argo CD, Config Sync or kustomize."""

from __future__ import annotations

from pathlib import Path

import typer

from kueue_admission.cli import console
from kueue_admission.forms.problem import SpecError
from kueue_admission.forms.yaml_text import dump_yaml, load_yaml
from kueue_fleet.fleet_file import FleetSpec, kueue_helm_values
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS, kueue_priority_class
from kueue_fleet.objects.folders import KUSTOMIZATION, render_folder

_VALUES = "kueue.values.yaml"


def write_folders(fleet: FleetSpec, clusters: list[str], folder: Path) -> None:
    """Write the objects of these clusters, and remove what an earlier run wrote and the fleet has no longer.

    Raises CommandError.
    """
    for cluster in clusters:
        wanted, place = _wanted(fleet, cluster), folder / cluster
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name in _earlier(place) - wanted.keys():
                (place / name).unlink(missing_ok=True)
            for name, text in wanted.items():
                (place / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise console.CommandError(f"{place}: cannot be written: {error.strerror}; give another folder") from None
        console.line(f"{place}: {console.count(len(wanted), 'file')}")


def show_difference(fleet: FleetSpec, clusters: list[str], folder: Path) -> None:
    """Print what `write_folders` would change, as a unified diff. Raises Exit with code 1 where there is anything."""
    import difflib

    differs = False
    for cluster in clusters:
        wanted, place = _wanted(fleet, cluster), folder / cluster
        for name in sorted(wanted.keys() | _earlier(place)):
            old, new = _text(place / name), wanted.get(name, "")
            labels = (f"{place / name}", f"{place / name} of the fleet")
            lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), *labels)
            for line in lines:
                differs = True
                console.text(line if line.endswith("\n") else f"{line}\n")
    if differs:
        raise typer.Exit(1)
    console.line("no difference")


def _wanted(fleet: FleetSpec, cluster: str) -> dict[str, str]:
    values = "\n".join([*helm_comment(fleet, cluster), dump_yaml(kueue_helm_values(fleet, cluster))])
    return {_VALUES: values, **render_folder(fleet, cluster)}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise console.CommandError(f"{file}: cannot be read: {error}; give the folder of an earlier run") from None


def _earlier(place: Path) -> set[str]:
    """The files that an earlier run wrote, by its kustomization; others are never touched."""
    file = place / KUSTOMIZATION
    if not (text := _text(file)):
        return set()
    try:
        found = load_yaml(text, str(file))
    except SpecError as error:
        raise console.CommandError(f"{error}, or give another folder") from None
    listed = found.get("resources") if isinstance(found, dict) else None
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return {name for name in names if "/" not in name and name.endswith(".yaml")}


def helm_comment(fleet: FleetSpec, cluster: str) -> list[str]:
    """How to install Kueue's chart, as lines of a comment."""
    kueue = fleet.kueue_on(cluster)
    command = (
        f"helm upgrade --install kueue {kueue.chart} --version {kueue.version} --namespace {kueue.namespace} --values -"
    )
    before = []
    if kueue.priority_class_name == KUEUE_PRIORITY_CLASS:
        value = kueue_priority_class()["value"]
        before = [f"#   kubectl create priorityclass {KUEUE_PRIORITY_CLASS} --value={value}"]
    return ["# Kueue, before the objects below:", *before, f"#   {command}"]
