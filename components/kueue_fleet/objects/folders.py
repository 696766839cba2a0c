"""The objects of a cluster as a folder for kustomize, with their order for Argo CD and for Config Sync.

Sources: https://argo-cd.readthedocs.io/en/stable/user-guide/sync-waves/,
https://cloud.google.com/kubernetes-engine/config-sync/docs/how-to/declare-resource-dependency.
"""

from __future__ import annotations

from typing import Any, Final

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.yaml_text import dump_yaml
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.objects.render import ClusterObject, objects_on

WAVE: Final = "argocd.argoproj.io/sync-wave"
"""Annotation: objects of a lower wave are applied first, and have to be healthy."""
DEPENDS_ON: Final = "config.kubernetes.io/depends-on"
"""Annotation: what has to be there before this object."""
KUSTOMIZATION: Final = "kustomization.yaml"
"""Name of the file that lists the others."""


def render_folder(fleet: FleetSpec, cluster: str) -> dict[str, str]:
    """Text by file name: an object each, and the kustomization. Raises KeyError for an unknown cluster."""
    objects = objects_on(fleet, cluster)
    by_key = {manifest.key: manifest for manifest in objects}
    waves: dict[str, int] = {}
    files = {}
    for manifest in objects:
        needs = [by_key[key] for key in _needs(manifest) if key in by_key and key != manifest.key]
        # What it needs is before it in apply order; a parent of a cohort may come later.
        waves[manifest.key] = 1 + max((waves.get(need.key, 0) for need in needs), default=_first(manifest))
        files[_file(manifest)] = dump_yaml(_annotated(manifest.manifest, waves[manifest.key], needs))
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(files)}
    return {KUSTOMIZATION: dump_yaml(kustomization), **files}


def _needs(cluster_object: ClusterObject) -> list[str]:
    namespace = cluster_object.manifest["metadata"].get("namespace")
    return [*cluster_object.needs, *([f"Namespace/{namespace}"] if namespace else [])]


def _first(cluster_object: ClusterObject) -> int:
    """Namespaces and definitions come before what has no other need, and what runs in the cluster last."""
    if cluster_object.part == "controller":
        return 10
    return -1 if cluster_object.manifest["kind"] in ("Namespace", "CustomResourceDefinition") else 0


def _file(cluster_object: ClusterObject) -> str:
    return f"{cluster_object.key.replace('/', '.').replace(':', '_').lower()}.yaml"


def _annotated(manifest: Manifest, wave: int, needs: list[ClusterObject]) -> dict[str, Any]:
    metadata = dict(manifest["metadata"])
    added = {WAVE: str(wave), **({DEPENDS_ON: ",".join(map(_reference, needs))} if needs else {})}
    metadata["annotations"] = {**metadata.get("annotations", {}), **added}
    return {**manifest, "metadata": metadata}


def _reference(need: ClusterObject) -> str:
    """GROUP/KIND/NAME, or GROUP/namespaces/NAMESPACE/KIND/NAME; the core group is empty."""
    group, _, version = str(need.manifest["apiVersion"]).rpartition("/")
    metadata = need.manifest["metadata"]
    place = f"namespaces/{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{group if version else ''}/{place}{need.manifest['kind']}/{metadata['name']}"
