"""kwok for one cluster: its process as data. It plays the kubelets of the simulated nodes, and touches no other node.

The life of pods and nodes is in `kwok_stages.yaml`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from kueue_rehearsal.cloud.node_templates import SIMULATED
from kueue_rehearsal.control_planes.control_plane import ControlPlanePlan
from kueue_rehearsal.control_planes.ports import HOST
from kueue_rehearsal.private_files import write_private
from kueue_rehearsal.processes.child_process import ProcessSpec

STAGES = Path(__file__).with_name("kwok_stages.yaml")
"""The stages that kwok runs; the annotation kueue-fleet.dev/exit-code of a pod says how it ends."""
_LOG_LINE: Final = "This pod is simulated: its containers run nothing, and print only this line."


def write_kwok_files(plan: ControlPlanePlan) -> None:
    """What the simulated nodes answer to who reads the log of a pod, in the format of the container runtime."""
    log, config = _log_files(plan)
    write_private(log, f"2026-01-01T00:00:00.000000000Z stdout F {_LOG_LINE}\n".encode())
    logs = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "simulated"}}
    spec = {"logs": [{"logsFile": str(log), "previousLogsFile": str(log)}]}
    write_private(config, json.dumps({**logs, "spec": spec}).encode())


def _log_files(plan: ControlPlanePlan) -> tuple[Path, Path]:
    return plan.folder / "simulated-pod.txt", plan.folder / "kwok-logs.json"


def kwok_process(plan: ControlPlanePlan) -> ProcessSpec:
    """kwok with `STAGES`; on loopback it answers with the logs of pods to the API server, and with nothing else."""
    return plan.process(
        "kwok",
        f"--kubeconfig={plan.admin_kubeconfig}",
        f"--config={STAGES},{_log_files(plan)[1]}",
        f"--node-ip={HOST}",
        f"--node-port={plan.node_port}",
        f"--server-address={HOST}:{plan.node_port}",
        f"--manage-nodes-with-label-selector={SIMULATED}=true",
        # With leases, kwok never runs a pod that is bound before its own watch shows it the node's lease:
        # sigs.k8s.io/kwok@v0.8.0 pkg/kwok/controllers/pod_controller.go, watchResources, "read only".
        "--node-lease-duration-seconds=0",
        "--v=WARN",
    )
