"""Data of teams, from the claims in their namespaces and the volumes that a fleet bound to them.

A fleet names a volume by what it says, and a claim is bound to it for good. So a claim on another volume stays as it
is: a fleet that took it over would make it again. What is behind a volume exists, and becomes `existing` by region.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kueue_admission.api.manifests import TEAM_LABEL
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.adopt.platform import Platform, Specs
from kueue_fleet.fleet_file.check.storage import DRIVERS
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.storage import NOT_COUNTED
from kueue_fleet.gke.google_syntax import ip_address
from kueue_fleet.objects.storage import volume_name

_GIB: Final = 2**30
_KINDS: Final = {
    "gcsfuse.csi.storage.gke.io": "gcsFuse",
    "pd.csi.storage.gke.io": "hyperdiskMl",
    "filestore.csi.storage.gke.io": "filestore",
    "lustre.csi.storage.gke.io": "lustre",
}
"""Kinds of volumes by their drivers."""
_DEFAULT_DRIVERS: Final = ClusterEntry.model_fields["storage_drivers"].default


class _Claim(NamedTuple):
    """A claim on one cluster, and what is behind it there."""

    cluster: str
    namespace: str
    team: str
    shared: Data
    """What an entry says of all clusters."""
    existing: Any
    zones: tuple[str, ...]


def adopt_storage(platform: Platform) -> list[Data]:
    """`storage`; a claim is left out that is not a fleet's, or not the same for all namespaces and clusters."""
    regions = {cluster.name: cluster.region for cluster in platform.clusters}
    claims_by_name: dict[str, list[_Claim]] = {}
    for name, claim in _claims(platform):
        claims_by_name.setdefault(name, []).append(claim)
    entries = []
    for name, claims in claims_by_name.items():
        existing = {regions[claim.cluster]: claim.existing for claim in claims}
        teams = list(dict.fromkeys(claim.team for claim in claims))
        clusters: Specs = {claim.cluster: {} for claim in claims}
        team_namespaces = {
            (cluster, namespace)
            for cluster in clusters
            for namespace, labels in platform.objects[cluster].namespaces.items()
            if labels.get(TEAM_LABEL) in teams
        }
        alike = all(
            claim.shared == claims[0].shared and existing[regions[claim.cluster]] == claim.existing for claim in claims
        )
        if not alike or team_namespaces != {(claim.cluster, claim.namespace) for claim in claims}:
            continue
        shared_data = dict(claims[0].shared)
        zones = list(dict.fromkeys(zone for claim in claims for zone in claim.zones))
        volume = {**shared_data.pop("volume"), "existing": existing, **({"zones": zones} if zones else {})}
        entries.append({"name": name, "teams": teams, "volume": volume, **platform.where(clusters), **shared_data})
    return entries


def add_drivers(data: Data, clusters: Sequence[str]) -> None:
    """Give each cluster of the file the drivers of the claims that are on it."""
    for cluster in data["clusters"]:
        there = [entry for entry in data["storage"] if cluster["name"] in entry.get("clusters", clusters)]
        if there and cluster["mode"] == "Standard":
            drivers = dict.fromkeys((*_DEFAULT_DRIVERS, *(DRIVERS[entry["volume"]["type"]] for entry in there)))
            cluster["storageDrivers"] = list(drivers)


def _claims(platform: Platform) -> Iterator[tuple[str, _Claim]]:
    """Those in namespaces of teams that are bound to a volume of a fleet, by name."""
    for cluster in platform.job_clusters:
        objects = platform.objects[cluster]
        volumes = {other["metadata"]["name"]: other for other in objects.others if other["kind"] == "PersistentVolume"}
        for item in (other for other in objects.others if other["kind"] == "PersistentVolumeClaim"):
            name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "default")
            team = objects.namespaces.get(namespace, {}).get(TEAM_LABEL)
            volume = volumes.get(str(inside(item, "spec").get("volumeName")))
            spec = {} if volume is None else _spec_of(volume, namespace, name)
            if team is None or volume is None or volume["metadata"]["name"] != volume_name(namespace, name, spec):
                continue
            behind = _behind(inside(spec, "csi"), _gib(inside(volume, "spec", "capacity").get("storage", "0")))
            if behind is not None:
                kind, existing = behind
                shared_data: Data = {"volume": kind}
                if kind["type"] == "gcsFuse" or "mountOptions" in spec:
                    shared_data["mountOptions"] = spec.get("mountOptions", [])
                if spec["accessModes"] == ["ReadOnlyMany"] and kind["type"] != "hyperdiskMl":
                    shared_data["readOnly"] = True
                yield name, _Claim(cluster, namespace, team, shared_data, existing, tuple(_zones(spec)))


def _spec_of(volume: Object, namespace: str, name: str) -> Data:
    """What a fleet writes into a volume, without what the server adds."""
    spec = inside(volume, "spec")
    fields = ("accessModes", "csi", "persistentVolumeReclaimPolicy", "mountOptions", "nodeAffinity")
    spec_fields = {field: spec[field] for field in fields if field in spec}
    return {**spec_fields, "claimRef": {"namespace": namespace, "name": name}, "storageClassName": ""}


def _gib(text: Any) -> int:
    return int(Quantity(str(text)).value // _GIB)


def _zones(spec: Object) -> Iterator[str]:
    for term in inside(spec, "nodeAffinity", "required").get("nodeSelectorTerms", ()):
        for expression in term.get("matchExpressions", ()):
            yield from expression.get("values", ())


def _behind(source: Object, gib: int) -> tuple[Data, Any] | None:
    """The volume of an entry, and what exists for it; None for what a fleet has no kind for."""
    kind = _KINDS.get(str(source.get("driver")))
    parts = str(source.get("volumeHandle")).split("/")
    if kind not in ("filestore", "lustre"):
        size = {"capacityGib": gib} if kind == "hyperdiskMl" and gib != NOT_COUNTED else {}
        return ({"type": kind, **size}, parts[-1]) if kind else None
    location, name = parts[1], parts[2]
    server = inside(source, "volumeAttributes")
    share, address = server.get("volume", server.get("filesystem")), str(server.get("ip"))
    if gib != NOT_COUNTED or ip_address(address) is not None:
        return None  # One that a fleet made: it asks Google for the address.
    return {"type": kind}, {"name": name, "location": location, "address": address, "share": share}
