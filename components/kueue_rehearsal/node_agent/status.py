"""A Pod's status from what its containers do, and when a container starts again.

No I/O. Source of the rules: k8s.io/kubernetes pkg/kubelet/kubelet_pods.go (getPhase), pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kueue_fleet.kube.answers import Json

# The kubelet starts at 10 s and ends at 300 s. A rehearsal lasts minutes, so the same doubling runs from 1 s to 30 s.
BACKOFF_FIRST_SECONDS = 1.0
"""Pause before the first restart of a container."""
BACKOFF_LAST_SECONDS = 30.0
"""Longest pause before a restart."""
# Like the kubelet's 10 minutes, scaled the same way: who ran this long starts again at once.
BACKOFF_RESET_SECONDS = 60.0
"""A container that ran this long starts again with the first pause."""

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


@dataclass(frozen=True, slots=True)
class Terminated:
    """How a container's last process ended."""

    exit_code: int
    signal: int | None
    reason: str
    started_at: float
    finished_at: float

    def render(self) -> Json:
        """As in `state.terminated`."""
        body: Json = {
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": timestamp(self.started_at),
            "finishedAt": timestamp(self.finished_at),
        }
        if self.signal is not None:
            body["signal"] = self.signal
        return body


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container now. At most one of `running_since` and `terminated` is set; neither means waiting."""

    name: str
    image: str
    waiting_reason: str = "ContainerCreating"
    waiting_message: str = ""
    running_since: float | None = None
    terminated: Terminated | None = None
    last: Terminated | None = None
    restart_count: int = 0
    started: bool = False
    """The startup probe has succeeded, or there is none and the process runs."""
    ready: bool = False
    container_id: str = ""

    @property
    def waiting_for(self) -> str | None:
        """The reason why it waits; None if it does not."""
        return self.waiting_reason if self.running_since is None and self.terminated is None else None

    def __str__(self) -> str:
        if self.running_since is not None:
            now = f"has run since {timestamp(self.running_since)}" + (" and is not ready" if not self.ready else "")
        elif self.terminated is not None:
            now = f"ended with exit code {self.terminated.exit_code}"
        else:
            now = f"waits: {self.waiting_reason}" + (f" ({self.waiting_message})" if self.waiting_message else "")
        restarts = f", restarted {self.restart_count} times" if self.restart_count else ""
        return f"container {self.name} {now}{restarts}"

    def waiting(self, reason: str, message: str = "") -> ContainerState:
        """Waiting for the given reason; what ended before becomes `last`."""
        return replace(
            self,
            waiting_reason=reason,
            waiting_message=message,
            running_since=None,
            terminated=None,
            last=self.terminated or self.last,
            started=False,
            ready=False,
        )

    def running(
        self, now: float, container_id: str, has_startup_probe: bool, has_readiness_probe: bool
    ) -> ContainerState:
        """Started just now; ready at once only without probes."""
        return replace(
            self,
            running_since=now,
            terminated=None,
            last=self.terminated or self.last,
            started=not has_startup_probe,
            ready=not (has_startup_probe or has_readiness_probe),
            container_id=container_id,
        )

    def ended(self, end: Terminated) -> ContainerState:
        """Its process has ended."""
        return replace(self, running_since=None, terminated=end, started=False, ready=False)

    def restarted(self) -> ContainerState:
        """About to start once more; what ended before is `last` from then on."""
        return replace(self, restart_count=self.restart_count + 1, last=self.terminated or self.last)

    def render(self) -> Json:
        """As in `status.containerStatuses`."""
        if self.running_since is not None:
            state: Json = {"running": {"startedAt": timestamp(self.running_since)}}
        elif self.terminated is not None:
            state = {"terminated": self.terminated.render()}
        else:
            state = {"waiting": {"reason": self.waiting_reason}}
            if self.waiting_message:
                state["waiting"]["message"] = self.waiting_message
        body: Json = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restart_count,
            "state": state,
        }
        if self.container_id:
            body["containerID"] = self.container_id
        if self.last is not None:
            body["lastState"] = {"terminated": self.last.render()}
        return body


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as the API server writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> float:
    """Seconds since the epoch of a time as the API server writes it."""
    return datetime.fromisoformat(text).timestamp()


def terminated(return_code: int, started_at: float, now: float) -> Terminated:
    """The end of a process from its return code, negative for a signal as in `subprocess`."""
    if return_code < 0:
        return Terminated(128 - return_code, -return_code, "Error", started_at, now)
    return Terminated(return_code, None, "Completed" if return_code == 0 else "Error", started_at, now)


def should_restart(restart_policy: str, exit_code: int) -> bool:
    """Whether the kubelet starts the container again."""
    return restart_policy == "Always" or (restart_policy == "OnFailure" and exit_code != 0)


def restart_delay_seconds(restarts_in_a_row: int, ran_seconds: float) -> float:
    """How long to wait before the next start, after `restarts_in_a_row` starts that ended too soon."""
    if ran_seconds >= BACKOFF_RESET_SECONDS or restarts_in_a_row <= 0:
        return 0.0
    delay: float = BACKOFF_FIRST_SECONDS * 2.0 ** min(restarts_in_a_row - 1, 10)
    return min(delay, BACKOFF_LAST_SECONDS)


def pod_phase(restart_policy: str, is_initialized: bool, containers: Sequence[ContainerState]) -> str:
    """Pending until every container has once started; then Running, until all have ended for good."""
    if not is_initialized:
        return "Pending"
    if any(state.running_since is None and state.terminated is None and state.last is None for state in containers):
        return "Pending"
    if any(state.terminated is None for state in containers):
        return "Running"
    codes = [state.terminated.exit_code for state in containers if state.terminated is not None]
    if any(should_restart(restart_policy, code) for code in codes):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def pod_status(
    pod: Mapping[str, Any],
    *,
    containers: Sequence[ContainerState],
    init_containers: Sequence[ContainerState],
    initialized: bool,
    pod_ip: str | None,
    host_ip: str,
    start_time: float,
    now: float,
) -> Json:
    """The body of a strategic merge patch of `status`. Conditions keep their transition time while they do not
    change."""
    restart_policy = pod["spec"].get("restartPolicy", "Always")
    phase = pod_phase(restart_policy, initialized, containers)
    is_finished = phase in ("Succeeded", "Failed")
    all_ready = initialized and not is_finished and all(state.ready for state in containers)
    status: Json = {
        "phase": phase,
        "hostIP": host_ip,
        "hostIPs": [{"$patch": "replace"}, {"ip": host_ip}],
        "startTime": timestamp(start_time),
        "containerStatuses": [state.render() for state in containers],
    }
    if init_containers:
        status["initContainerStatuses"] = [state.render() for state in init_containers]
    if pod_ip is not None:
        status |= {"podIP": pod_ip, "podIPs": [{"$patch": "replace"}, {"ip": pod_ip}]}
    truth = dict(
        zip(_CONDITIONS, (pod_ip is not None and not is_finished, initialized, all_ready, all_ready), strict=True)
    )
    status["conditions"] = _conditions(pod, truth, containers, is_finished, now)
    return status


def _conditions(
    pod: Mapping[str, Any],
    truth: Mapping[str, bool],
    containers: Sequence[ContainerState],
    is_finished: bool,
    now: float,
) -> list[Json]:
    before = {condition["type"]: condition for condition in pod.get("status", {}).get("conditions", ())}
    conditions = []
    for kind, holds in truth.items():
        word = "True" if holds else "False"
        old = before.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == word else timestamp(now)
        condition: Json = {"type": kind, "status": word, "lastTransitionTime": since, "reason": None, "message": None}
        if not holds and kind in ("ContainersReady", "Ready"):
            if is_finished:
                condition["reason"] = "PodCompleted"
            else:
                names = " ".join(state.name for state in containers if not state.ready)
                condition |= {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
        conditions.append(condition)
    return conditions
