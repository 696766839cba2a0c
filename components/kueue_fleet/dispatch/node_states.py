"""Which nodes quota that follows capacity can count on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kueue_admission.kernel.names import ACCELERATOR_RESOURCES, TO_BE_DELETED
from kueue_admission.read.printed import PrintedNode

SILENT_SECONDS: Final = 20.0
"""For how long a kubelet may say nothing: one that is started again does so for a moment."""
STEADY_SECONDS: Final = 30.0
"""For how long a node that was out is well again before it counts, so that one that comes and goes does not."""
DRIVER_SECONDS: Final = 600.0
"""How long a node may take to offer its devices, once it is Ready: their driver is installed then."""
PROBLEMS: Final = (
    "KernelDeadlock",
    "ReadonlyFilesystem",
    "NetworkUnavailable",
    "FrequentKubeletRestart",
    "FrequentContainerdRestart",
    "KubeletUnhealthy",
    "ContainerRuntimeUnhealthy",
)
"""Conditions of a node that keep it from running pods. Source: https://cloud.google.com/kubernetes-engine/
distributed-cloud/bare-metal/docs/how-to/node-problem-detector."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node."""

    name: str
    labels: Mapping[str, str]
    amounts: Mapping[str, int]
    """What pods can have of it: CPU in thousandths, all else in units."""
    out: str = ""
    """Why it runs no new pods; empty: it does."""
    ready_since: float = 0.0
    """When it became Ready."""

    def offers(self, resource: str, expected_amount: int, now: float) -> int:
        """What it has of a resource of which such a node has `expected_amount`.

        Of CPU and memory that is what it is expected to have. Of devices it is less where the device plugin has found
        some unhealthy; a node that is not Ready for long may still install their driver.
        """
        if resource not in ACCELERATOR_RESOURCES or now - self.ready_since < DRIVER_SECONDS:
            return expected_amount
        return min(expected_amount, self.amounts.get(resource, 0))


def read_node(node: PrintedNode, now: float) -> NodeState | None:
    """How a node is at `now`; None for one that is being removed."""
    taints = {taint.text("key") for taint in node.spec.children("taints")}
    if node.deleted_at is not None or TO_BE_DELETED in taints:
        return None
    amounts = {name: value.counted(name) for name, value in node.allocatable.items()}
    ready = node.changed_at("Ready") or 0.0
    return NodeState(node.name, dict(node.labels.data), amounts, _out(node, ready, now), ready)


def _out(node: PrintedNode, ready: float, now: float) -> str:
    if not node.is_ready and now - ready >= SILENT_SECONDS:
        return "NotReady"
    problem_type = next(filter(node.is_true, PROBLEMS), "")
    return problem_type or ("Unschedulable" if node.spec.flag("unschedulable") else "")


class SteadyNodes:
    """Nodes that were out stay so until they are well for a while."""

    def __init__(self) -> None:
        self._out: dict[tuple[str, str], tuple[str, float]] = {}

    def steady(self, cluster: str, nodes: Sequence[NodeState], now: float) -> tuple[NodeState, ...]:
        """The nodes of a cluster as they are to be counted at `now`."""
        for node in nodes:
            if node.out:
                self._out[cluster, node.name] = node.out, now
        self._out = {key: (why, at) for key, (why, at) in self._out.items() if now - at < STEADY_SECONDS}
        return tuple(replace(node, out=self._out.get((cluster, node.name), (node.out, 0.0))[0]) for node in nodes)
