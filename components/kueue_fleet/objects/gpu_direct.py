"""Networks of GPUs inside a cluster: by which names pods ask for them, and what their nodes need beside.

For each network card of nodes a Network with its GKENetworkParamSet; for each NCCL plugin a DaemonSet that puts it on
the nodes; and where a daemon beside the programs needs GPUs without counting them, the device injector of Google's.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods;
GoogleCloudPlatform/cluster-toolkit@10470803 modules/scheduler/gke-cluster/templates, and the installers that
`gke.gpu_direct` names; container-engine-accelerators nri_device_injector/nri-device-injector.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.gpu_direct import Plugin
from kueue_fleet.gke.labels import NODE_POOL
from kueue_fleet.objects.drivers import node_daemon, privileged_container

INJECTOR: Final = "device-injector"
"""Name of the DaemonSet that hands devices to containers by annotations of their pods."""
INJECTOR_IMAGE: Final = (
    "gcr.io/gke-release/nri-device-injector@sha256:6e79483d52abdc28454bf186320b10a56b0f117a10e8d65d5c74dbb821a76970"
)
"""Its image, by digest."""
GKE_NETWORKING_API: Final = "networking.gke.io/v1"
"""`apiVersion` of what GKE adds to networks."""
_PREPARED_BY: Final = "ubuntu:24.04"
"""Has nsenter, by which the node itself is prepared; Google's manifest has it without a version."""


def render_node_networks(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The networks of the pools that the fleet makes on `cluster`, each once."""
    manifests: dict[str, list[Manifest]] = {}
    for pool in fleet.node_pools_on(cluster):
        for network in pool.networks if not pool.entry.existing else ():
            name = network.card.network
            place = {"vpc": network.network, "vpcSubnet": network.subnetwork, "deviceMode": network.card.device_mode}
            refers = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": name}
            manifests[name] = [
                manifest(GKE_NETWORKING_API, "GKENetworkParamSet", name, spec=place),
                manifest(GKE_NETWORKING_API, "Network", name, spec={"type": "Device", "parametersRef": refers}),
            ]
    return [manifest_there for pair in manifests.values() for manifest_there in pair]


def render_gpu_direct(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """The DaemonSets that nodes of `cluster` need for GPUDirect."""
    return list(_daemons(fleet, cluster))


def _daemons(fleet: FleetSpec, cluster: str) -> Iterator[Manifest]:
    pools: dict[str, list[str]] = {}
    plugins: dict[str, Plugin] = {}
    for pool in fleet.node_pools_on(cluster):
        if pool.plugin is not None:
            plugins[pool.plugin.installer] = pool.plugin
            pools.setdefault(pool.plugin.installer, []).append(pool.name)
    for name, plugin in plugins.items():
        yield _installer(plugin, pools[name])
    with_daemon = [pool_name for name, plugin in plugins.items() if plugin.daemon for pool_name in pools[name]]
    if with_daemon:
        volumes = {"dev": "/dev", "nri": "/var/run/nri"}
        pod = {
            "volumes": _volumes(volumes),
            "containers": [privileged_container(INJECTOR, INJECTOR_IMAGE, {}, volumes)],
        }
        yield node_daemon(INJECTOR, _nodes_of(with_daemon), pod)


def _nodes_of(pools: Iterable[str]) -> list[dict[str, Any]]:
    return [{"key": NODE_POOL, "operator": "In", "values": list(pools)}]


def _volumes(paths: dict[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in paths.items()]


def _installer(plugin: Plugin, pools: Iterable[str]) -> Manifest:
    names = {path: f"host-{number}" for number, path in enumerate(plugin.host_paths)}
    mounts = {names[path]: inside for path, inside in plugin.host_paths.items()}
    copy_commands = [f"mkdir -p {to}\ncp -r {folder}/. {to}" for folder, to in plugin.copies.items()]
    script = "/scripts/container_entry.sh"
    run = filter(
        None, ("set -ex", plugin.install, f"chmod 755 {script}", f"{script} install --install-nccl", *copy_commands)
    )
    container = privileged_container(plugin.installer, plugin.image, {}, mounts)
    container["command"] = ["/bin/sh", "-c", "\n".join(run)]
    first = []
    if plugin.prepare:
        first = [privileged_container("pre-installation", _PREPARED_BY, {}, {})]
        first[0]["command"] = ["nsenter", "-at", "1", "--", "sh", "-c", plugin.prepare]
    pod = {"volumes": _volumes({name: path for path, name in names.items()}), "initContainers": [*first, container]}
    return node_daemon(plugin.installer, _nodes_of(pools), pod)
