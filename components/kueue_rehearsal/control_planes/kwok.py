"""kwok for one cluster: its process as data. It plays the kubelets of the simulated nodes, and touches no other node.

The life of pods and nodes is in `kwok_stages.yaml`.
"""

from __future__ import annotations

from pathlib import Path

from kueue_rehearsal.cloud.node_templates import SIMULATED
from kueue_rehearsal.control_planes.control_plane import ControlPlanePlan
from kueue_rehearsal.processes.child_process import ProcessSpec

STAGES = Path(__file__).with_name("kwok_stages.yaml")
"""The stages that kwok runs; the annotation kueue-fleet.dev/exit-code of a pod says how it ends."""


def kwok_process(plan: ControlPlanePlan) -> ProcessSpec:
    """kwok with `STAGES`; serves nothing, and listens nowhere."""
    return plan.process(
        "kwok",
        f"--kubeconfig={plan.admin_kubeconfig}",
        f"--config={STAGES}",
        f"--manage-nodes-with-label-selector={SIMULATED}=true",
        # With leases, kwok never runs a pod that is bound before its own watch shows it the node's lease:
        # sigs.k8s.io/kwok@v0.8.0 pkg/kwok/controllers/pod_controller.go, watchResources, "read only".
        "--node-lease-duration-seconds=0",
        "--v=WARN",
    )
