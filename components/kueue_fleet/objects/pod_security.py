"""What the pods of a job may not ask for in a namespace with a Pod Security Standard, in CEL.

The API server enforces the standard on pods alone. A job that breaks it would have quota, and its controller would try
without end to make pods that are refused; with MultiKueue that shows on a worker only.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/; kubernetes@v1.36
staging/src/k8s.io/pod-security-admission/policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kueue_admission.api.pod_security import BASELINE_CAPABILITIES, SAFE_SYSCTLS


class Control(NamedTuple):
    """One control of a standard."""

    path: str
    """Of the fields, as a message has it."""
    broken: str
    """CEL: whether the spec of a pod, `pod`, breaks it."""
    fix: str


def _of_containers(broken: str) -> str:
    every = "(pod.?containers.orValue([]) + pod.?initContainers.orValue([]))"
    return f"{every}.exists(container, {broken})"


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(name) for name in sorted(names))}]"


_OF_CONTAINER: Final = "container.?securityContext"
_OF_POD: Final = "pod.?securityContext"
_SECCOMP: Final = "?seccompProfile.?type"
_KEPT_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_BASELINE: Final = (
    Control(
        "hostNetwork, hostPID or hostIPC of its pods",
        "pod.?hostNetwork.orValue(false) || pod.?hostPID.orValue(false) || pod.?hostIPC.orValue(false)",
        "remove it",
    ),
    Control(
        "volumes of its pods",
        "pod.?volumes.orValue([]).exists(volume, has(volume.hostPath))",
        "use a volume of another kind than hostPath",
    ),
    Control(
        "securityContext.sysctls of its pods",
        f"{_OF_POD}.?sysctls.orValue([]).exists(one, !(one.name in {_names(SAFE_SYSCTLS)}))",
        "remove those that Kubernetes does not call safe",
    ),
    Control(
        "securityContext.privileged of its containers",
        _of_containers(f"{_OF_CONTAINER}.?privileged.orValue(false)"),
        "remove it",
    ),
    Control(
        "securityContext.capabilities.add of its containers",
        _of_containers(
            f"{_OF_CONTAINER}.?capabilities.?add.orValue([]).exists(name, !(name in {_names(BASELINE_CAPABILITIES)}))"
        ),
        "remove those that a container does not have by default",
    ),
    Control(
        "ports of its containers",
        _of_containers("container.?ports.orValue([]).exists(port, port.?hostPort.orValue(0) != 0)"),
        "remove hostPort",
    ),
    Control(
        "securityContext.seccompProfile of its pods",
        f"{_OF_POD}.{_SECCOMP}.orValue('') == 'Unconfined' || "
        + _of_containers(f"{_OF_CONTAINER}.{_SECCOMP}.orValue('') == 'Unconfined'"),
        "write RuntimeDefault",
    ),
)
_RESTRICTED: Final = (
    Control(
        "volumes of its pods",
        "pod.?volumes.orValue([]).exists(volume, !("
        + " || ".join(f"has(volume.{kind})" for kind in _KEPT_VOLUMES)
        + "))",
        f"use {', '.join(_KEPT_VOLUMES[:-1])} or {_KEPT_VOLUMES[-1]}",
    ),
    Control(
        "securityContext.allowPrivilegeEscalation of its containers",
        _of_containers(f"{_OF_CONTAINER}.?allowPrivilegeEscalation.orValue(true)"),
        "write false",
    ),
    Control(
        "securityContext.capabilities of its containers",
        _of_containers(
            f"!('ALL' in {_OF_CONTAINER}.?capabilities.?drop.orValue([])) || "
            f"{_OF_CONTAINER}.?capabilities.?add.orValue([]).exists(name, name != 'NET_BIND_SERVICE')"
        ),
        "drop ALL, and add at most NET_BIND_SERVICE",
    ),
    Control(
        "securityContext.runAsNonRoot of its pods",
        _of_containers(f"!{_OF_CONTAINER}.?runAsNonRoot.orValue({_OF_POD}.?runAsNonRoot.orValue(false))"),
        "write true",
    ),
    Control(
        "securityContext.runAsUser of its pods",
        f"{_OF_POD}.?runAsUser.orValue(1) == 0 || " + _of_containers(f"{_OF_CONTAINER}.?runAsUser.orValue(1) == 0"),
        "write another user than 0",
    ),
    Control(
        "securityContext.seccompProfile of its pods",
        _of_containers(
            f"!({_OF_CONTAINER}.{_SECCOMP}.orValue({_OF_POD}.{_SECCOMP}.orValue('')) in "
            "['RuntimeDefault', 'Localhost'])"
        ),
        "write RuntimeDefault",
    ),
)


def controls(standard: str) -> Iterator[Control]:
    """The controls of a standard: none for privileged, the first for baseline, all for restricted."""
    if standard != "privileged":
        yield from _BASELINE
    if standard == "restricted":
        yield from _RESTRICTED
