"""Google's NCCL plugins for the networks of GPUs: what is installed on nodes, and what pods need.

No page or repository of Google's gives a digest of these images, so they are pinned by tag; the pairs of plugin and
daemon are those that are tested together there. What NCCL itself is to be told, the plugin's own scripts say.

Sources: GoogleCloudPlatform/cluster-toolkit@10470803 examples/gke-a3-highgpu (nccl-tcpx-installer.yaml.tftpl,
nccl-test.yaml), gke-a3-megagpu (nccl-tcpxo-installer.yaml.tftpl, nccl-test-latest.yaml), gke-a3-ultragpu, gke-a4,
gke-a4x (nccl-installer.yaml.tftpl, nccl-jobset-example.yaml).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_fleet.gke.accelerator_networks import Card, network_of

_IMAGES: Final = "us-docker.pkg.dev/gce-ai-infra"
INTERFACES: Final = "networking.gke.io/interfaces"
"""Annotation of pods: which networks they take, as JSON."""
DEFAULT_INTERFACE: Final = "networking.gke.io/default-interface"
"""Annotation of pods: the interface by which all else goes."""
_DEVICES: Final = "devices.gke.io/container."
NVIDIA_FOLDER: Final = "/home/kubernetes/bin/nvidia"
"""Where GKE puts the driver on nodes."""
_GIB: Final = "/home/kubernetes/bin/gib"
_LIBRARIES: Final = "/usr/local/nvidia/lib64"
_GPUS: Final = tuple(f"/dev/nvidia{end}" for end in (*range(8), "ctl", "-uvm"))


@dataclass(frozen=True, slots=True)
class Daemon:
    """What runs beside each program, and takes what comes in over the network to the GPUs."""

    name: str
    image: str
    command: tuple[str, ...]
    capabilities: tuple[str, ...]
    devices: tuple[str, ...]
    mounts: Mapping[str, str]
    """Where it has which volumes, by their names."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin."""

    installer: str
    """Name of the DaemonSet that puts it on nodes."""
    image: str
    volumes: Mapping[str, str]
    """Paths of the node that pods need, by the name of the volume."""
    mounts: Mapping[str, str]
    """Where the program has them."""
    env: Mapping[str, str]
    capabilities: tuple[str, ...] = ()
    daemon: Daemon | None = None
    host_paths: Mapping[str, str] = field(default_factory=dict)
    """Paths of the node that the installer fills, and where it has them."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Folders that it copies there."""
    install: str = ""
    """What it does before that, in a shell."""
    prepare: str = ""
    """What is done before on the node itself, in a shell."""


_QUIET: Final = "for each in /proc/sys/net/ipv4/conf/gpu*rdma0/log_martians; do echo 0 > $each; done"
"""The kernel would write of each packet that comes in by another card than that of its subnet."""
_APERTURES: Final = """set -e
/sbin/iptables -I INPUT -p tcp -m tcp -j ACCEPT
modprobe import-helper
for device in $(lspci -nn -D | grep 1ae0:0084 | cut -d ' ' -f 1); do
  target=/dev/aperture_devices/$device
  mkdir -p $target
  mountpoint -q $target || mount --bind $(readlink -f /sys/bus/pci/devices/$device) $target
done
chmod -R a+r /dev/aperture_devices
chmod a+rw /dev/aperture_devices/*/resource*
"""
"""Opens the memory of the network cards to programs."""
_HOST: Final = {"sys": "/sys", "proc-sys": "/proc/sys"}
_DAEMON_MOUNTS: Final = {"nvidia": _LIBRARIES, "sys": "/hostsysfs", "proc-sys": "/hostprocsysfs"}
_TCP_HOST_PATHS: Final = {"/var/lib": "/var/lib", "/home/kubernetes/bin": "/usr/local"}


def _gib(architecture: str) -> Plugin:
    return Plugin(
        installer=f"nccl-rdma-installer{architecture}",
        image=f"{_IMAGES}/gpudirect-gib/nccl-plugin-gib{architecture}:v1.1.0",
        volumes={"nvidia": NVIDIA_FOLDER, "gib": _GIB},
        mounts={"nvidia": "/usr/local/nvidia", "gib": "/usr/local/gib"},
        env={"LD_LIBRARY_PATH": _LIBRARIES},
        host_paths={path: f"/usr/local{path}" for path in (f"{NVIDIA_FOLDER}/lib64", _GIB)},
        copies={"/var/lib/gib/lib64": f"/usr/local{NVIDIA_FOLDER}/lib64", "/var/lib/gib": f"/usr/local{_GIB}"},
        install=_QUIET,
    )


PLUGINS: Final[Mapping[str, Plugin]] = {
    "tcpx": Plugin(
        installer="nccl-tcpx-installer",
        image=f"{_IMAGES}/gpudirect-tcpx/nccl-plugin-gpudirecttcpx-dev:v3.1.9",
        volumes={"nvidia": f"{NVIDIA_FOLDER}/lib64", "tcpx-socket": "/run/tcpx", **_HOST},
        mounts={"nvidia": _LIBRARIES, "tcpx-socket": "/tmp"},  # noqa: S108  (where the plugin looks)
        env={"LD_LIBRARY_PATH": _LIBRARIES},
        capabilities=("IPC_LOCK",),
        daemon=Daemon(
            name="tcpx-daemon",
            image=f"{_IMAGES}/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.12",
            command=(
                *("/tcpgpudmarxd/build/app/tcpgpudmarxd", "--gpu_nic_preset", "a3vm", "--gpu_shmem_type", "fd"),
                *("--uds_path", "/run/tcpx", "--setup_param", '\\"--verbose 128 2 0 \\"'),
            ),
            capabilities=("NET_ADMIN",),
            devices=_GPUS,
            mounts={**_DAEMON_MOUNTS, "tcpx-socket": "/run/tcpx"},
        ),
        host_paths={**_TCP_HOST_PATHS, "/run/tcpx": "/run/tcpx"},
        copies={"/var/lib/tcpx/lib64": _LIBRARIES},
    ),
    "tcpxo": Plugin(
        installer="nccl-tcpxo-installer",
        image=f"{_IMAGES}/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.15",
        volumes={"nvidia": f"{NVIDIA_FOLDER}/lib64", "aperture-devices": "/dev/aperture_devices", **_HOST},
        mounts={"nvidia": _LIBRARIES, "aperture-devices": "/dev/aperture_devices"},
        env={"LD_LIBRARY_PATH": _LIBRARIES, "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices"},
        daemon=Daemon(
            name="tcpxo-daemon",
            image=f"{_IMAGES}/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21",
            command=(
                *("/bin/sh", "-c"),
                "chmod 755 /fts/entrypoint_rxdm_container.sh && "
                "exec /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8",
            ),
            capabilities=("NET_ADMIN", "NET_BIND_SERVICE"),
            devices=(*_GPUS, "/dev/dmabuf_import_helper"),
            mounts=_DAEMON_MOUNTS,
        ),
        host_paths=_TCP_HOST_PATHS,
        copies={"/var/lib/tcpxo/lib64": _LIBRARIES},
        prepare=_APERTURES,
    ),
    "gib": _gib(""),
    "gib-arm64": _gib("-arm64"),
}
"""The plugins, by what `accelerator_networks.csv` calls them."""


def plugin_of(machine: str) -> Plugin | None:
    """The plugin of a machine type; None: Google has none that is known here."""
    row = network_of(machine)
    return PLUGINS.get(row["plugin"]) if row else None


def annotations_of(plugin: Plugin | None, cards: Iterable[Card]) -> dict[str, str]:
    """What pods on nodes with these network cards say of them."""
    interfaces = [{"interfaceName": "eth0", "network": "default"}]
    interfaces += [{"interfaceName": card.interface, "network": card.network} for card in cards if card.interface]
    found = {DEFAULT_INTERFACE: "eth0", INTERFACES: json.dumps(interfaces)} if len(interfaces) > 1 else {}
    if plugin is not None and plugin.daemon is not None:
        found[_DEVICES + plugin.daemon.name] = "".join(f"- path: {path}\n" for path in plugin.daemon.devices)
    return found


def daemon_container(daemon: Daemon) -> dict[str, Any]:
    """The daemon as a sidecar, which ends with the program: a Job whose containers all have to end would not."""
    return {
        "name": daemon.name,
        "image": daemon.image,
        "restartPolicy": "Always",
        "command": list(daemon.command),
        "securityContext": {"capabilities": {"add": list(daemon.capabilities)}},
        "env": [{"name": "LD_LIBRARY_PATH", "value": _LIBRARIES}],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in daemon.mounts.items()],
    }
