"""The text of a first fleet file: Autopilot clusters that ask DWS for GPUs, one queue, a LocalQueue for each team.

In: a handful of answers. Out: YAML with comments, for people to go on from. Whether it is right, `parse_fleet_text`
says, which also names what is wrong with an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

_CPUS_PER_GPU: Final = 12
_MEMORY_GIB_PER_GPU: Final = 48
_DISK_GIB_PER_GPU: Final = 100


@dataclass(frozen=True, slots=True)
class Starter:
    """What a first fleet needs to know."""

    name: str
    project: str
    regions: tuple[str, ...]
    """One: a single cluster. More: a manager in the first, and a worker in each."""
    accelerator: str
    """Value of the node label cloud.google.com/gke-accelerator."""
    gpus: int
    """In each region."""
    teams: tuple[str, ...]
    rotate_by: date
    """Day by which the workers' credentials are to be made anew."""


def starter_text(starter: Starter) -> str:
    """The fleet file."""
    several = len(starter.regions) > 1
    flavor = f"{starter.accelerator.removeprefix('nvidia-').removeprefix('tesla-')}-dws"
    quotas = {
        "nvidia.com/gpu": str(starter.gpus),
        "cpu": str(starter.gpus * _CPUS_PER_GPU),
        "memory": f"{starter.gpus * _MEMORY_GIB_PER_GPU}Gi",
        "ephemeral-storage": f"{starter.gpus * _DISK_GIB_PER_GPU}Gi",
    }
    lines = [
        f"# Fleet {starter.name}: {starter.gpus} {starter.accelerator} in each of {', '.join(starter.regions)}.",
        "config:",
        f"  gcp:project: {starter.project}",
        "  kueue-fleet:fleet:",
        f"    name: {starter.name}",
        f"    project: {starter.project}",
        "",
        "    # Autopilot (the default) runs the nodes. Reserved or spot nodes: mode: Standard, and nodePools.",
        "    clusters:",
        *(f"      - {cluster}" for cluster in _clusters(starter)),
        "",
        "    flavors:",
        f"      - name: {flavor}",
        "        nodeLabels:",
        f"          cloud.google.com/gke-accelerator: {starter.accelerator}",
        "",
        "    # Ask Dynamic Workload Scheduler for the nodes before a job starts: all of them at once, or none.",
        "    admissionChecks:",
        "      - name: dws",
        "        provisioningRequest:",
        "          provisioningClassName: queued-provisioning.gke.io",
        "          managedResources: [nvidia.com/gpu]",
        "",
        "    # Everything that a pod requests has to be covered, or its job is never admitted.",
        "    clusterQueues:",
        "      - name: gpu",
        "        namespaceSelector: {} # jobs of every namespace",
        "        resourceGroups:",
        f"          - coveredResources: [{', '.join(quotas)}]",
        "            flavors:",
        f"              - name: {flavor}",
        "                resources:",
        *(f"                  - {{ name: {name}, nominalQuota: {amount} }}" for name, amount in quotas.items()),
        "        admissionChecksStrategy:",
        "          admissionChecks:",
        "            - name: dws",
        "",
    ]
    if several:
        lines += [
            "    # The manager offers each job to all workers; the first that gets the nodes runs it.",
            "    multiKueue:",
            "      credentials:",
            "        type: ServiceAccountToken",
            f'        rotation: "{starter.rotate_by:%Y-%m}" # change it to make new tokens',
            f"        rotateBy: {starter.rotate_by.isoformat()}",
            "",
        ]
    lines += ["    # Each team has a namespace of its name, with a LocalQueue to submit to.", "    teams:"]
    for team in starter.teams:
        lines += [f"      - name: {team}", "        localQueues: [{ name: gpu, clusterQueue: gpu }]"]
    return "\n".join(lines) + "\n"


def _clusters(starter: Starter) -> list[str]:
    first = starter.regions[0]
    if len(starter.regions) == 1:
        return [f"{{ name: {starter.name}-{first}, role: standalone, region: {first} }}"]
    return [
        f"{{ name: manager-{first}, role: manager, region: {first} }}",
        *(f"{{ name: worker-{region}, role: worker, region: {region} }}" for region in starter.regions),
    ]
