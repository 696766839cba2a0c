"""Whether the pods of jobs take the networks of the GPUs that they get, and have what Google's NCCL plugin needs.

A job without that runs, and its GPUs reach those of other nodes over the nodes' own network, at a small part of the
speed. Where GKE makes the networks by a profile, and where DRANET gives them to pods, nothing of this is asked for: by
which names pods take the former is not known.

Sources: those of `gke.gpu_direct`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.gpu_direct import INTERFACES, Plugin, annotations_of, daemon_container, plugin_of
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.jobs.check import right_job_check
from kueue_fleet.jobs.check.nodes import pod_set_of, possible_flavors
from kueue_fleet.jobs.queued_job import PodSetTemplate, QueuedJob, job_fault, of_pod_set


@right_job_check
def warn_of_networks(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """What pods of several nodes lack, where all nodes that they may come to have networks of their own for GPUs."""
    queue = fleet.queue(job.queue)
    for template in job.pod_sets if queue is not None else ():
        several = queue is not None and template.count > 1 and asks_for_gpus(template)
        pools = list(pools_of(fleet, queue, template)) if queue is not None and several else []
        if pools and all(pool.networks for pool in pools) and (lacking := list(_lacking(pools[0], template))):
            wrong = f"runs on GPUs of pool {pools[0].name}, whose networks it does not use: it lacks "
            fix = "add it as docs/tasks/gpu-networks.md shows, or let `kueue-fleet submit` make the job"
            fault = job_fault(wrong + ", ".join(lacking), fix)
            yield of_pod_set(job, template, fault, "warning")


def add_networks(pools: Iterable[ResolvedNodePool], pods: dict[str, Any]) -> None:
    """Gives pods, whose first container is the program, what they need on nodes of these pools, if all need one."""
    needed_plugins = {tuple(network.card for network in pool.networks): plugin_of(pool.machine_type) for pool in pools}
    if len(needed_plugins) != 1 or not all(needed_plugins):
        return
    [(cards, plugin)] = needed_plugins.items()
    pods.setdefault("metadata", {}).setdefault("annotations", {}).update(annotations_of(plugin, cards))
    if plugin is not None:
        _add_plugin(plugin, pods["spec"])


def _add_plugin(plugin: Plugin, spec: dict[str, Any]) -> None:
    program = spec["containers"][0]
    own = {variable["name"] for variable in program.get("env", ())}
    program["env"] = [
        *program.get("env", ()),
        *({"name": name, "value": value} for name, value in plugin.env.items() if name not in own),
    ]
    program.setdefault("volumeMounts", []).extend(
        {"name": name, "mountPath": path} for name, path in plugin.mounts.items()
    )
    spec.setdefault("volumes", []).extend(
        {"name": name, "hostPath": {"path": path}} for name, path in plugin.volumes.items()
    )
    if plugin.capabilities:
        program["securityContext"] = {"capabilities": {"add": list(plugin.capabilities)}}
    if plugin.daemon is not None:
        spec["initContainers"] = [daemon_container(plugin.daemon)]


def asks_for_gpus(template: PodSetTemplate) -> bool:
    """Whether the pods request GPUs."""
    return GPU_RESOURCE in {name for name, amount in pod_set_of(template).requests if amount}


def pools_of(fleet: FleetSpec, queue: ClusterQueueEntry, template: PodSetTemplate) -> Iterator[ResolvedNodePool]:
    """The pools whose nodes the pods may come to."""
    pods = pod_set_of(template)
    for cluster in fleet.clusters_of(queue):
        for flavor, _ in possible_flavors(fleet, queue, pods, cluster):
            yield from fleet.flavor_nodes(flavor, cluster)


def _lacking(pool: ResolvedNodePool, template: PodSetTemplate) -> Iterator[str]:
    """In the words of a pod's manifest."""
    plugin = plugin_of(pool.machine_type)
    spec = inside(template.template, "spec")
    annotations = inside(template.template, "metadata", "annotations")
    for key, value in annotations_of(plugin, [network.card for network in pool.networks]).items():
        if key not in annotations:
            yield f"annotation {key}"
        elif key == INTERFACES and (missing_networks := _networks(value) - _networks(annotations[key])):
            yield f"{', '.join(sorted(missing_networks))} in annotation {key}"
    if plugin is None:
        return
    there = {inside(volume, "hostPath").get("path") for volume in spec.get("volumes") or ()}
    for path in plugin.volumes.values():
        if path not in there:
            yield f"a volume of host path {path}"
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if plugin.daemon is not None and plugin.daemon.name not in {container.get("name") for container in containers}:
        yield f"container {plugin.daemon.name}"
    variables = {variable.get("name") for container in containers for variable in container.get("env") or ()}
    for name in plugin.env:
        if name not in variables:
            yield f"variable {name}"


def _networks(interfaces: Any) -> set[str]:
    """The networks that the annotation names; none where it is not a list of maps, as GKE has it."""
    try:
        annotation_value = json.loads(interfaces)
    except (TypeError, ValueError):
        return set()
    interface_list = annotation_value if isinstance(annotation_value, list) else []
    return {str(interface.get("network")) for interface in interface_list if isinstance(interface, Mapping)}
