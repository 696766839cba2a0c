"""What jobs ask of topologies: slices that pods come in, and levels whose labels GKE may give or not.

Sources: kueue@v0.19.2 pkg/controller/jobframework/tas_validation.go (which sizes the webhooks refuse),
pkg/cache/scheduler/tas_flavor_snapshot.go (only whole slices are placed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.block_topology import topology_labels
from kueue_fleet.gke.labels import SYSTEM_LABEL, ZONE
from kueue_fleet.kueue_api.names import HOSTNAME_LABEL
from kueue_fleet.kueue_api.syntax import whole_number
from kueue_fleet.simulation.documents import Document
from kueue_fleet.simulation.provisioning_request import PodSetTemplate, pod_set_templates, queued_jobs

_PREFIX: Final = "kueue.x-k8s.io/podset-"
_SIZE: Final = f"{_PREFIX}slice-size"
_LEVEL: Final = f"{_PREFIX}slice-required-topology"


def check_slices(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[str]:
    """Slices that Kueue refuses, or that leave pods over, each with its file and line."""
    for named, job, _ in queued_jobs(fleet, manifests):
        for pod_set in pod_set_templates(job):
            problem = _slices(pod_set)
            if problem:
                yield f"{named}: pod set {pod_set.name} {problem}"


def _annotations(pod_set: PodSetTemplate) -> Mapping[str, Any]:
    return (pod_set.template.get("metadata") or {}).get("annotations") or {}


def _slices(pod_set: PodSetTemplate) -> str:
    given = _annotations(pod_set)
    if (_SIZE in given) != (_LEVEL in given):
        there, missing = (_SIZE, _LEVEL) if _SIZE in given else (_LEVEL, _SIZE)
        return f"has the annotation {there} without {missing}, and Kueue refuses the job; give both"
    size = whole_number(str(given.get(_SIZE, "1"))) or 1
    if size > pod_set.count:
        return (
            f"has {pod_set.count} pods, but slices of {size} ({_SIZE}), and Kueue refuses the job; write at most "
            f"{pod_set.count}"
        )
    if pod_set.count % size:
        whole = pod_set.count // size * size
        return (
            f"has {pod_set.count} pods, which slices of {size} ({_SIZE}) do not divide: Kueue places {whole}, and "
            f"the others get no node; make it {whole} or {whole + size} pods, or choose another size"
        )
    return ""


def jobs_on_unknown_levels(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[tuple[Document, str]]:
    """Jobs whose place depends on labels that GKE may give to nodes, and why it is not known whether they start."""
    for document in manifests:
        for named, job, queue in queued_jobs(fleet, [document]):
            asks = any(key.startswith(_PREFIX) for pod_set in pod_set_templates(job) for key in _annotations(pod_set))
            level = next(_unknown_levels(fleet, queue, asks=asks), None)
            if level is not None:
                label, topology, pool = level
                yield (
                    document,
                    (
                        f"{named}: whether it starts is not known: topology {topology} has the level {label}, which "
                        f"GKE may give to nodes of pool {pool.name}; compare with `kubectl get nodes -L {label}`"
                    ),
                )


def _unknown_levels(fleet: FleetSpec, queue: str, *, asks: bool) -> Iterator[tuple[str, str, ResolvedNodePool]]:
    """Levels of the topologies of the queue that nodes of a pool may have; of a queue with none but such flavors, all
    jobs get a place in it, even if they do not ask."""
    entry = fleet.queue(queue)
    found = [fleet.flavor(name) for name in dict.fromkeys(entry.flavor_names)] if entry is not None else []
    flavors = [flavor for flavor in found if flavor is not None]
    if not asks and any(flavor.topology_name is None for flavor in flavors):
        return
    levels = {topology.name: [level.node_label for level in topology.levels] for topology in fleet.topologies}
    for flavor, topology in ((flavor, flavor.topology_name) for flavor in flavors):
        for pool in _pools(fleet, flavor) if topology is not None else ():
            known = {*pool.labels, *topology_labels(pool.machine_type, pool.name, 0), ZONE, HOSTNAME_LABEL}
            for label in levels.get(topology or "", ()):
                if label not in known and SYSTEM_LABEL.search(label):
                    yield label, topology or "", pool


def _pools(fleet: FleetSpec, flavor: FlavorEntry) -> Iterator[ResolvedNodePool]:
    """The pools of the flavor to whose nodes GKE may give labels that are not known."""
    for cluster in fleet.clusters_of(flavor):
        for pool in fleet.flavor_nodes(flavor, cluster):
            if pool.compact_placement or pool.tpu_topology or pool.machine is None:
                yield pool
