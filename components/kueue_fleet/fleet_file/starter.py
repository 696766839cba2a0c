"""The text of a first fleet file: Autopilot clusters that ask DWS for GPUs, one queue, a LocalQueue for each team.

Answers are checked by the rules of any fleet file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from kueue_admission.kernel.problem import Problem, SpecError
from kueue_fleet.fleet_file.check import check_fleet
from kueue_fleet.fleet_file.parse import parse_fleet_text
from kueue_fleet.gke.google_syntax import gke_cluster_name

ROTATE_AFTER: Final = timedelta(days=90)
"""How long a worker's credentials are used by default."""
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
    today: date
    """Day on which the workers' credentials are made."""
    context: str = ""
    """Context of a kubeconfig: one cluster of any Kubernetes, with quota for CPU and memory; empty: clusters of GKE."""

    @property
    def answers(self) -> tuple[str, ...]:
        """The fields that people answer, in the order in which to ask."""
        return OUTSIDE_GKE if self.context else ANSWERS


ANSWERS: Final = ("name", "project", "regions", "accelerator", "gpus", "teams")
"""The fields of a `Starter` that people answer, in the order in which to ask."""
OUTSIDE_GKE: Final = ("name", "teams")
"""Those of a cluster that is not of GKE."""
_CONCERNED: Final = {"flavors": "accelerator", "clusterQueues": "gpus", "clusters": "regions"}


@lru_cache(maxsize=1)
def starter_problems(starter: Starter) -> dict[str, list[Problem]]:
    """What is wrong with each answer, or to be warned of; only answers with problems are there."""
    try:
        problems = check_fleet(parse_fleet_text(starter_text(starter), "fleet"))
    except SpecError as refused:
        problems = list(refused.problems)
    problems_by_answer: dict[str, list[Problem]] = {}
    for problem in problems:
        section = re.split(r"[.\[]", problem.path)[0]
        problems_by_answer.setdefault(_CONCERNED.get(section, section), []).append(problem)
    return problems_by_answer


def starter_text(starter: Starter) -> str:
    """The fleet file."""
    if starter.context:
        return _text_of_plain(starter)
    several = len(starter.regions) > 1
    flavor = f"{starter.accelerator.removeprefix('nvidia-').removeprefix('tesla-')}-dws"
    quotas = {
        "nvidia.com/gpu": str(starter.gpus),
        "cpu": str(starter.gpus * _CPUS_PER_GPU),
        "memory": f"{starter.gpus * _MEMORY_GIB_PER_GPU}Gi",
        "ephemeral-storage": f"{starter.gpus * _DISK_GIB_PER_GPU}Gi",
    }
    lines = [
        "config:",
        "  kueue-fleet:fleet:",
        f"    name: {_scalar(starter.name)}",
        f"    project: {_scalar(starter.project)}",
        "",
        "    # Autopilot (the default) runs the nodes. Reserved or spot nodes: mode: Standard, and nodePools.",
        "    clusters:",
        *(f"      - {cluster}" for cluster in _clusters(starter)),
        "",
        "    flavors:",
        f"      - name: {_scalar(flavor)}",
        "        nodeLabels:",
        f"          cloud.google.com/gke-accelerator: {_scalar(starter.accelerator)}",
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
        f"              - name: {_scalar(flavor)}",
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
            "        type: ServiceAccountToken # ClusterProfile keeps no token, and needs an image of a plugin",
            f'        rotation: "{starter.today:%Y-%m}" # when the tokens were made; another value makes new ones',
            f"        rotateBy: {(starter.today + ROTATE_AFTER).isoformat()}",
            "",
        ]
    lines += ["    # Each team has a namespace of its name, with a LocalQueue to submit to.", "    teams:"]
    for team in starter.teams:
        lines += [f"      - name: {_scalar(team)}", "        localQueues: [{ name: gpu, clusterQueue: gpu }]"]
    return "\n".join(lines) + "\n"


def _text_of_plain(starter: Starter) -> str:
    """One cluster of any Kubernetes. Its name is the context's, where a cluster can have that."""
    [name] = _cluster_names(starter)
    connection = "{}" if name == starter.context else f"{{ context: {_scalar(starter.context)} }}"
    lines = [
        "config:",
        "  kueue-fleet:fleet:",
        f"    name: {_scalar(starter.name)}",
        "    deletionProtection: false # true: `pulumi destroy` deletes neither Kueue nor queues",
        "",
        "    # A cluster that is there, of any Kubernetes, by its context; nothing in Google Cloud.",
        "    clusters:",
        f"      - {{ name: {_scalar(name)}, role: standalone, kubernetes: {connection} }}",
        "",
        "    # Kinds of node, by any label: nodeLabels: { nvidia.com/gpu.product: Tesla-T4 }",
        "    flavors:",
        "      - name: any-node",
        "",
        "    # Everything that a pod requests has to be covered, or its job is never admitted.",
        "    clusterQueues:",
        "      - name: batch",
        "        namespaceSelector: {} # jobs of every namespace",
        "        resourceGroups:",
        "          - coveredResources: [cpu, memory]",
        "            flavors:",
        "              - name: any-node",
        "                resources:",
        "                  - { name: cpu, nominalQuota: 8 } # what jobs may use at once",
        "                  - { name: memory, nominalQuota: 32Gi }",
        "",
        "    # Each team has a namespace of its name, with a LocalQueue to submit to.",
        "    teams:",
    ]
    for team in starter.teams:
        lines += [f"      - name: {_scalar(team)}", "        localQueues: [{ name: batch, clusterQueue: batch }]"]
    return "\n".join(lines) + "\n"


STARTER_PROGRAM: Final = '''\
"""The fleet that the stack's config describes."""

import pulumi

import kueue_fleet as kf

fleet = kf.Fleet.from_config()
pulumi.export("kubeconfig", fleet.kubeconfig)
'''
"""The Pulumi program of a new project."""


def starter_project(name: str, stacks: str) -> str:
    """The Pulumi.yaml of a new project, with its stack files in the folder `stacks`."""
    runtime = "python # the one that is active, with kueue-fleet installed"
    return f"name: {name}\nruntime: {runtime}\nstackConfigDir: {stacks}\n"


def starter_jobs(starter: Starter) -> str:
    """A List with a small job for each team, which one region can run."""
    lines = [
        "# A job for each team. Submit them as they are:",
        f"#   kubectl --context {_cluster_names(starter)[0]} create -f FILE",
        "apiVersion: v1",
        "kind: List",
        "items:",
    ]
    dws = [
        "      annotations:",
        "        # DWS takes the nodes back after this many seconds; never more than seven days (604800).",
        '        provreq.kueue.x-k8s.io/maxRunDurationSeconds: "600"',
    ]
    on_gpus = [
        "          # Autopilot refuses a GPU job that does not say which GPU, where it is submitted too.",
        f"          nodeSelector: {{ cloud.google.com/gke-accelerator: {_scalar(starter.accelerator)} }}",
        "          containers:",
        "            - name: train",
        "              image: nvidia/cuda:12.6.2-base-ubuntu24.04",
        "              command: [nvidia-smi]",
        "              resources:",
        '                requests: { cpu: "2", memory: 8Gi, ephemeral-storage: 10Gi, nvidia.com/gpu: "1" }',
        '                limits: { nvidia.com/gpu: "1" }',
    ]
    on_cpus = [
        "          containers:",
        "            - name: work",
        "              image: docker.io/library/busybox:1.37",
        '              command: [sleep, "10"]',
        "              resources:",
        '                requests: { cpu: "1", memory: 256Mi }',
    ]
    for team in starter.teams:
        lines += [
            "  - apiVersion: batch/v1",
            "    kind: Job",
            "    metadata:",
            "      generateName: first-",
            f"      namespace: {_scalar(team)}",
            f"      labels: {{ kueue.x-k8s.io/queue-name: {'batch' if starter.context else 'gpu'} }}",
            *(() if starter.context else dws),
            "    spec:",
            "      suspend: true # Kueue starts it",
            "      template:",
            "        metadata:",
            '          annotations: { kueue-fleet.dev/run-seconds: "10" } # in rehearsals and simulations',
            "        spec:",
            "          restartPolicy: Never",
            *(on_cpus if starter.context else on_gpus),
        ]
    return "\n".join(lines) + "\n"


def _clusters(starter: Starter) -> Iterator[str]:
    single = len(starter.regions) == 1
    roles = ["standalone"] if single else ["manager", *("worker" for _ in starter.regions)]
    regions = starter.regions if single else (starter.regions[0], *starter.regions)
    for name, role, region in zip(_cluster_names(starter), roles, regions, strict=True):
        yield f"{{ name: {_scalar(name)}, role: {role}, region: {_scalar(region)} }}"


def _cluster_names(starter: Starter) -> list[str]:
    """The one that jobs are submitted to first."""
    if starter.context:
        return [starter.name if gke_cluster_name(starter.context) else starter.context]
    first = starter.regions[0]
    if len(starter.regions) == 1:
        return [f"{starter.name}-{first}"]
    return [f"manager-{first}", *(f"worker-{region}" for region in starter.regions)]


def _scalar(text: str) -> str:
    """An answer as YAML, whatever it is."""
    plain = re.fullmatch(r"[a-z][a-z0-9.-]*", text) and text not in ("true", "false", "null")
    return text if plain else json.dumps(text)
