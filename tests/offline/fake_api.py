"""A Kubernetes API in memory for tests of the kubernetes stand-in: no server, no time passes."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from typing import Any

from kueue_fleet_offline.kube_api import ApiError, KubeApi, Manifest, NoMatchError, ResourceType

CLUSTER_SCOPED = frozenset({"Namespace", "ClusterRole", "ClusterQueue", "CustomResourceDefinition"})


class FakeApi(KubeApi):
    """Objects by kind, namespace and name. `states` are what a watch of any object sees next."""

    def __init__(self, *unknown_kinds: str) -> None:
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        self.unknown_kinds = set(unknown_kinds)
        self.states: list[Manifest | None] = []
        self.calls: list[str] = []
        self.failures: list[ApiError] = []

    def resource_type(self, api_version: str, kind: str) -> ResourceType:
        if kind in self.unknown_kinds:
            raise NoMatchError(api_version, kind)
        return ResourceType(api_version, kind, f"{kind.lower()}s", kind not in CLUSTER_SCOPED)

    def forget_types(self) -> None:
        self.calls.append("forget_types")

    def _key(self, manifest: Manifest) -> tuple[str, str, str]:
        self.type_of(manifest)
        metadata = manifest["metadata"]
        return manifest["kind"], metadata.get("namespace", ""), metadata["name"]

    def get(self, manifest: Manifest) -> Manifest:
        found = self.objects.get(self._key(manifest))
        if found is None:
            raise ApiError(404, "NotFound", f"{manifest['metadata']['name']} not found")
        return copy.deepcopy(found)

    def _stored(self, manifest: Manifest, entry: dict[str, Any], *, dry_run: bool) -> Manifest:
        if self.failures:
            raise self.failures.pop(0)
        stored = copy.deepcopy(manifest)
        managed = [entry]
        stored["metadata"].update(uid="u", resourceVersion="1", generation=1, managedFields=managed)
        if not dry_run:
            self.objects[self._key(manifest)] = copy.deepcopy(stored)
        return stored

    def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool) -> Manifest:
        self.calls.append(f"create {'dry' if dry_run else field_manager[:17]}")
        if self._key(manifest) in self.objects:
            raise ApiError(409, "AlreadyExists", "already exists")
        return self._stored(manifest, {"manager": field_manager, "operation": "Update"}, dry_run=dry_run)

    def apply(self, manifest: Manifest, *, field_manager: str, force: bool, dry_run: bool) -> Manifest:
        self.calls.append(f"apply{' force' if force else ''}{' dry' if dry_run else ''}")
        return self._stored(manifest, {"manager": field_manager, "operation": "Apply"}, dry_run=dry_run)

    def patch_json(self, manifest: Manifest, operations: list[Manifest]) -> Manifest:
        self.calls.append(f"patch {operations[-1]['path']}")
        return self.get(manifest)

    def delete(self, manifest: Manifest, *, propagation: str) -> Manifest:
        self.calls.append(f"delete {propagation}")
        return self.objects.pop(self._key(manifest))

    def watch(self, manifest: Manifest, deadline: float, stop: threading.Event) -> Iterator[Manifest | None]:
        yield from self.states
