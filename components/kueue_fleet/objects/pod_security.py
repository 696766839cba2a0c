"""What the pods of a job may not ask for in a namespace with a Pod Security Standard, in CEL and in Python.

The API server enforces the standard on pods alone. A job that breaks it would have quota, and its controller would try
indefinitely to make pods that are refused; with MultiKueue that shows on a worker only.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/; kubernetes@v1.36
staging/src/k8s.io/pod-security-admission/policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from kueue_admission.api.pod_security import (
    APPARMOR,
    BASELINE_CAPABILITIES,
    BASELINE_SELINUX_TYPES,
    SAFE_SYSCTLS,
)
from kueue_admission.kernel.manifest import Manifest, inside


class Control(NamedTuple):
    """One control of a standard."""

    path: str
    """Of the fields, as a message has it."""
    broken: str
    """CEL: whether the spec of a pod, `pod`, breaks it."""
    fix: str
    breaks: Callable[[Manifest], bool]
    """The same of a manifest."""


def _any(broken: Callable[[Manifest, Manifest], bool]) -> Callable[[Manifest], bool]:
    """Whether one of the containers of a pod, with its securityContext, is broken."""
    return lambda pod: any(
        broken(container, inside(container, "securityContext"))
        for field in ("containers", "initContainers")
        for container in pod.get(field) or ()
    )


def _either(broken: Callable[[Manifest], bool]) -> Callable[[Manifest], bool]:
    """Whether the securityContext of a pod, or that of one of its containers, is broken."""
    return lambda pod: broken(inside(pod, "securityContext")) or _any(lambda _, context: broken(context))(pod)


def _lacks(wanted_field: Callable[[Manifest], object]) -> Callable[[Manifest], bool]:
    """Whether a container lacks what its securityContext, or else that of its pod, has to have."""
    return lambda pod: _any(lambda _, own: not wanted_field({**inside(pod, "securityContext"), **own}))(pod)


def _seccomp(context: Manifest) -> object:
    return inside(context, "seccompProfile").get("type")


def _added(context: Manifest) -> set[str]:
    return set(inside(context, "capabilities").get("add") or ())


def _dropped(context: Manifest) -> set[str]:
    return set(inside(context, "capabilities").get("drop") or ())


def _selinux(context: Manifest) -> bool:
    options = inside(context, "seLinuxOptions")
    is_allowed = (options.get("type") or "") in ("", *BASELINE_SELINUX_TYPES)
    return not is_allowed or any(options.get(field) for field in ("user", "role"))


def _hosts(container: Manifest) -> Iterator[object]:
    for handler in _HANDLERS:
        for way in _WAYS:
            yield inside(container, *handler, way).get("host")


def _in_user_namespace(pod: Manifest) -> bool:
    return pod.get("hostUsers") is False


def _of_either(broken: str) -> str:
    """CEL: whether the securityContext of a pod, `context`, or that of one of its containers, breaks it."""
    every = f"[{_OF_POD}] + (pod.?containers.orValue([]) + pod.?initContainers.orValue([])).map(c, c.?securityContext)"
    return f"({every}).exists(context, {broken})"


def _of_containers(broken: str) -> str:
    every = "(pod.?containers.orValue([]) + pod.?initContainers.orValue([]))"
    return f"{every}.exists(container, {broken})"


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(name) for name in sorted(names))}]"


_proc_mount: Final = _any(lambda _, context: (context.get("procMount") or "Default") != "Default")
_OF_CONTAINER: Final = "container.?securityContext"
_OF_POD: Final = "pod.?securityContext"
_SECCOMP: Final = "?seccompProfile.?type"
_SELINUX: Final = "?seLinuxOptions"
_HANDLERS: Final = (
    ("livenessProbe",), ("readinessProbe",), ("startupProbe",), ("lifecycle", "postStart"), ("lifecycle", "preStop"),
)  # fmt: skip
_WAYS: Final = ("httpGet", "tcpSocket")
_KEPT_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_BASELINE: Final = (
    Control(
        "hostNetwork, hostPID or hostIPC of its pods",
        "pod.?hostNetwork.orValue(false) || pod.?hostPID.orValue(false) || pod.?hostIPC.orValue(false)",
        "remove it",
        lambda pod: any(pod.get(field) for field in ("hostNetwork", "hostPID", "hostIPC")),
    ),
    Control(
        "volumes of its pods",
        "pod.?volumes.orValue([]).exists(volume, has(volume.hostPath))",
        "use a volume of another kind than hostPath",
        lambda pod: any("hostPath" in volume for volume in pod.get("volumes") or ()),
    ),
    Control(
        "securityContext.sysctls of its pods",
        f"{_OF_POD}.?sysctls.orValue([]).exists(one, !(one.name in {_names(SAFE_SYSCTLS)}))",
        "remove those that Kubernetes does not call safe",
        lambda pod: any(
            sysctl.get("name") not in SAFE_SYSCTLS for sysctl in inside(pod, "securityContext").get("sysctls") or ()
        ),
    ),
    Control(
        "securityContext.privileged of its containers",
        _of_containers(f"{_OF_CONTAINER}.?privileged.orValue(false)"),
        "remove it",
        _any(lambda _, context: bool(context.get("privileged"))),
    ),
    Control(
        "securityContext.capabilities.add of its containers",
        _of_containers(
            f"{_OF_CONTAINER}.?capabilities.?add.orValue([]).exists(name, !(name in {_names(BASELINE_CAPABILITIES)}))"
        ),
        "remove those that a container does not have by default",
        _any(lambda _, context: not _added(context) <= BASELINE_CAPABILITIES),
    ),
    Control(
        "ports of its containers",
        _of_containers("container.?ports.orValue([]).exists(port, port.?hostPort.orValue(0) != 0)"),
        "remove hostPort",
        _any(lambda container, _: any(port.get("hostPort") for port in container.get("ports") or ())),
    ),
    Control(
        "securityContext.seccompProfile of its pods",
        _of_either(f"context.{_SECCOMP}.orValue('') == 'Unconfined'"),
        "write RuntimeDefault",
        _either(lambda context: _seccomp(context) == "Unconfined"),
    ),
    Control(
        "securityContext.appArmorProfile of its pods",
        _of_either("context.?appArmorProfile.?type.orValue('') == 'Unconfined'"),
        "write RuntimeDefault",
        _either(lambda context: inside(context, "appArmorProfile").get("type") == "Unconfined"),
    ),
    Control(
        "securityContext.seLinuxOptions of its pods",
        _of_either(
            f"!(context.{_SELINUX}.?type.orValue('') in {_names(('', *BASELINE_SELINUX_TYPES))}) || "
            f"context.{_SELINUX}.?user.orValue('') != '' || context.{_SELINUX}.?role.orValue('') != ''"
        ),
        f"remove user and role, and write type {', '.join(sorted(BASELINE_SELINUX_TYPES))} or none",
        _either(_selinux),
    ),
    Control(
        "securityContext.windowsOptions.hostProcess of its pods",
        _of_either("context.?windowsOptions.?hostProcess.orValue(false)"),
        "remove it",
        _either(lambda context: bool(inside(context, "windowsOptions").get("hostProcess"))),
    ),
    Control(
        "securityContext.procMount of its containers",
        "pod.?hostUsers.orValue(true) && "
        + _of_containers(f"{_OF_CONTAINER}.?procMount.orValue('Default') != 'Default'"),
        "write Default, or hostUsers: false",
        lambda pod: not _in_user_namespace(pod) and _proc_mount(pod),
    ),
    Control(
        "host of probes and lifecycle handlers of its containers",
        _of_containers(
            " || ".join(
                f"container.?{'.?'.join((*handler, way, 'host'))}.orValue('') != ''"
                for handler in _HANDLERS
                for way in _WAYS
            )
        ),
        "remove it",
        _any(lambda container, _: any(_hosts(container))),
    ),
)
_RESTRICTED: Final = (
    Control(
        "volumes of its pods",
        "pod.?volumes.orValue([]).exists(volume, !("
        + " || ".join(f"has(volume.{kind})" for kind in _KEPT_VOLUMES)
        + "))",
        f"use {', '.join(_KEPT_VOLUMES[:-1])} or {_KEPT_VOLUMES[-1]}",
        lambda pod: any(not volume.keys() & set(_KEPT_VOLUMES) for volume in pod.get("volumes") or ()),
    ),
    Control(
        "securityContext.allowPrivilegeEscalation of its containers",
        _of_containers(f"{_OF_CONTAINER}.?allowPrivilegeEscalation.orValue(true)"),
        "write false",
        _any(lambda _, context: context.get("allowPrivilegeEscalation") is not False),
    ),
    Control(
        "securityContext.capabilities of its containers",
        _of_containers(
            f"!('ALL' in {_OF_CONTAINER}.?capabilities.?drop.orValue([])) || "
            f"{_OF_CONTAINER}.?capabilities.?add.orValue([]).exists(name, name != 'NET_BIND_SERVICE')"
        ),
        "drop ALL, and add at most NET_BIND_SERVICE",
        _any(lambda _, context: "ALL" not in _dropped(context) or not _added(context) <= {"NET_BIND_SERVICE"}),
    ),
    Control(
        "securityContext.procMount of its containers",
        _of_containers(f"{_OF_CONTAINER}.?procMount.orValue('Default') != 'Default'"),
        "write Default",
        _proc_mount,
    ),
    Control(
        "securityContext.runAsNonRoot of its pods",
        "pod.?hostUsers.orValue(true) && "
        + _of_containers(f"!{_OF_CONTAINER}.?runAsNonRoot.orValue({_OF_POD}.?runAsNonRoot.orValue(false))"),
        "write true",
        lambda pod: not _in_user_namespace(pod) and _lacks(lambda context: context.get("runAsNonRoot"))(pod),
    ),
    Control(
        "securityContext.runAsUser of its pods",
        f"pod.?hostUsers.orValue(true) && {_of_either('context.?runAsUser.orValue(1) == 0')}",
        "write another user than 0",
        lambda pod: not _in_user_namespace(pod) and _either(lambda context: context.get("runAsUser") == 0)(pod),
    ),
    Control(
        "securityContext.seccompProfile of its pods",
        _of_containers(
            f"!({_OF_CONTAINER}.{_SECCOMP}.orValue({_OF_POD}.{_SECCOMP}.orValue('')) in "
            "['RuntimeDefault', 'Localhost'])"
        ),
        "write RuntimeDefault",
        _lacks(lambda context: _seccomp(context) in ("RuntimeDefault", "Localhost")),
    ),
)


_ANNOTATED: Final = Control(
    f"annotations {APPARMOR} of its pods",
    f"annotations.exists(key, key.startsWith('{APPARMOR}') && !(annotations[key] in ['', 'runtime/default'] || "
    "annotations[key].startsWith('localhost/')))",
    "write runtime/default",
    lambda annotations: any(
        key.startswith(APPARMOR) and value not in ("", "runtime/default") and not str(value).startswith("localhost/")
        for key, value in annotations.items()
    ),
)


def annotation_controls(standard: str) -> Iterator[Control]:
    """The controls of a standard that look at the annotations of a pod, which their CEL calls `annotations`."""
    if standard != "privileged":
        yield _ANNOTATED


def controls(standard: str) -> Iterator[Control]:
    """The controls of a standard: none for privileged, the first for baseline, all for restricted."""
    if standard != "privileged":
        yield from _BASELINE
    if standard == "restricted":
        yield from _RESTRICTED
