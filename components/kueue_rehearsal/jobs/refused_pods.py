"""Pods that nothing here can run, and what `pulumi up` would wait for indefinitely because of them.

What is not waited for, such as a Deployment with `pulumi.com/skipAwait`, is only reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kueue_fleet.google.resource_types import HELM_RELEASE
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes.supervisor_client import SupervisorClient
from kueue_rehearsal.pulumi_events import Operation

ASK_SECONDS = 1.0
"""How often the node agents are asked."""
PATIENCE_SECONDS = 2.0
"""How long a new pod has been refused before the run is ended: others of the same moment are then named with it."""
REPLACEMENT_SECONDS = 30.0
"""The same for a pod that was there before the operation, which may be about to replace it."""

_WORKLOADS = {f"kubernetes:apps/v1:{kind}": kind for kind in ("Deployment", "StatefulSet", "DaemonSet")}
_SERVICE = "kubernetes:core/v1:Service"
_SKIP_AWAIT = "pulumi.com/skipAwait"
_WAITING_OPERATIONS = ("create", "update", "create-replacement", "replace")


class RefusedPodsError(RehearsalError):
    """`pulumi up` would wait for pods that nothing here can run; the text names each."""


@dataclass(frozen=True, slots=True)
class RefusedPod:
    """A pod that a node agent will never run, by what made it."""

    cluster: str
    kind: str
    namespace: str
    name: str
    message: str
    since: float
    labels: Mapping[str, str] = field(default_factory=dict)
    release: tuple[str, str] | None = None
    """Namespace and name of the Helm release that made it."""
    curable: bool = False
    """Whether the message says already what to do on this machine."""

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> RefusedPod:
        """A row of the supervisor's `GET /refusedPods`."""
        release = row.get("release")
        release_key = (release["namespace"], release["name"]) if release else None
        return cls(**{**row, "release": release_key})

    def __str__(self) -> str:
        return f"{self.cluster}: {self.kind} {self.namespace}/{self.name}: {self.message}"


def blocked(pod: RefusedPod, operation: Operation) -> str | None:
    """The resource of the stack that this operation makes wait for the pod, and how to avoid it; None if none waits."""
    inputs = operation.inputs
    metadata = _part(inputs, "metadata")
    if operation.op not in _WAITING_OPERATIONS or _part(metadata, "annotations").get(_SKIP_AWAIT) == "true":
        return None
    place = (metadata.get("namespace") or "default", metadata.get("name") or "")
    annotate = f'give it the annotation {_SKIP_AWAIT}: "true"'
    if operation.type == HELM_RELEASE:
        if inputs.get("skipAwait") or pod.release != (inputs.get("namespace"), inputs.get("name")):
            return None
        return f"leave Helm release {'/'.join(pod.release)} out of the stack, or set its skipAwait"
    if _WORKLOADS.get(operation.type) == pod.kind and place == (pod.namespace, pod.name):
        return f"leave it out of the stack, or {annotate}"
    if operation.type == _SERVICE and place[0] == pod.namespace:
        selector = _part(_part(inputs, "spec"), "selector")
        if selector and selector.items() <= pod.labels.items():
            return f"Service {'/'.join(place)} waits for it too: leave it out of the stack, or {annotate}"
    return None


def _part(inputs: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at a key; empty for one that is not there, or that Pulumi masks as a secret."""
    value = inputs.get(key)
    return value if isinstance(value, Mapping) else {}


@dataclass(slots=True)
class RefusedPods:
    """The refused pods of a rehearsal while `pulumi up` runs. Called with what is under way, it is a `Watch`."""

    client: SupervisorClient
    now: Callable[[], float] = time.time
    _asked: float = 0.0

    def __call__(self, under_way: Collection[Operation]) -> None:
        """Looks at the refused pods, now and then.

        Raises:
            RefusedPodsError: one of these operations waits for one of them.
        """
        if self.now() - self._asked < ASK_SECONDS or not under_way:
            return
        pods = self.ask()
        self._asked = self.now()
        waiting = [(pod, operation, fix) for pod in pods for operation in under_way if (fix := blocked(pod, operation))]
        if not any(self._is_in_vain(pod, operation) for pod, operation, _ in waiting):
            return
        lines = [str(pod) if pod.curable else f"{pod}; {fix}" for pod, _, fix in waiting]
        raise RefusedPodsError(
            "\n".join([*dict.fromkeys(lines), "pulumi up was ended: these pods will never become ready"])
        )

    def ask(self) -> list[RefusedPod]:
        """The pods that are refused now; none while the supervisor does not answer."""
        try:
            return [RefusedPod.parse(row) for row in self.client.refused_pods()]
        except RehearsalError:
            return []

    def late(self) -> list[str]:
        """The pods that are not ready now, each with why; none while the supervisor does not answer."""
        try:
            return self.client.late_pods()
        except RehearsalError:
            return []

    def _is_in_vain(self, pod: RefusedPod, operation: Operation) -> bool:
        patience = PATIENCE_SECONDS if pod.since >= operation.since else REPLACEMENT_SECONDS
        return self.now() - max(pod.since, operation.since) >= patience
