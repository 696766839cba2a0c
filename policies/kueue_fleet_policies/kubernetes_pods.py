"""Rules about pods: what they may do to their node, as whom they run, which images they run.

The rules about the node are those of the Pod Security Standards,
https://kubernetes.io/docs/concepts/security/pod-security-standards/, which a namespace enforces too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_admission.api.pod_security import APPARMOR, BASELINE_CAPABILITIES, SAFE_SYSCTLS
from kueue_admission.kernel.unknown import UNKNOWN, holds_unknown
from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE
from kueue_fleet_policies.pods import containers, metadata, pod_specs, security_contexts
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, entries, items, number, truth

_SE_LINUX: Final = {
    "type": ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
    "user": ("",),
    "role": ("",),
}
"""Options of SELinux, and what the baseline standard lets a pod set."""
_HANDLERS: Final = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
"""Where a container says which requests the node sends."""
_UNCONFINED: Final = {
    "seccompProfile": "lets every system call through",
    "appArmorProfile": "lifts what AppArmor forbids a container by default",
}
"""Profiles of a security context, and what is lost without one."""


def _installs_driver(workload: Resource) -> bool:
    pods = [spec for _, spec in pod_specs(workload)] if workload.kind == "DaemonSet" else []
    return bool(pods) and all(map(_only_beside_gpus, pods))


def _only_beside_gpus(spec: Mapping[str, Any]) -> bool:
    """Whether a pod runs on nodes with accelerators only: every alternative of its affinity asks for them."""
    if ACCELERATOR in entries(spec.get("nodeSelector")):
        return True
    required = at(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    terms = [items(at(term, "matchExpressions")) for term in items(at(required, "nodeSelectorTerms"))]
    return bool(terms) and all(any(_asks_for_accelerator(one) for one in term) for term in terms)


def _asks_for_accelerator(expression: Any) -> bool:
    return at(expression, "key") == ACCELERATOR and at(expression, "operator") in ("In", "Exists")


def _service_account(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, spec in pod_specs(workload):
        accounts = (spec.get("serviceAccountName"), spec.get("serviceAccount"))
        named = any(account is UNKNOWN or account not in (None, "", "default") for account in accounts)
        mounted = truth(spec.get("automountServiceAccountToken"))
        if not named and mounted in (None, True) and not workload.is_patch:
            yield Breach(
                f"{path}.serviceAccountName",
                "is the namespace's default, whose token every pod there has",
                "name an account of its own, or set automountServiceAccountToken to false",
            )


def _privileged(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, context in security_contexts(workload):
        if truth(at(context, "privileged")) is True:
            yield Breach(f"{path}.privileged", "is true: the container is the node's root", "remove it")
        if truth(at(context, "windowsOptions.hostProcess")) is True:
            yield Breach(f"{path}.windowsOptions.hostProcess", "is true: it is a process of the node", "remove it")


def _host_namespaces(workload: Resource, _: Settings) -> Iterator[Breach]:
    agent = workload.kind == "DaemonSet"
    for path, spec in pod_specs(workload):
        for key in ("hostIPC",) if agent else ("hostPID", "hostIPC", "hostNetwork"):
            if truth(spec.get(key)) is True:
                yield Breach(f"{path}.{key}", "is true: the pod shares it with the node", "remove it")
        for where, container in () if agent else containers(path, spec):
            yield from _network_of_node(where, container)


def _network_of_node(where: str, container: Mapping[str, Any]) -> Iterator[Breach]:
    for index, port in enumerate(items(container.get("ports"))):
        if number(at(port, "hostPort")):
            yield Breach(f"{where}.ports[{index}].hostPort", "is a port of the node", "remove it, and use a Service")
    for path in (f"{handler}.{action}.host" for handler in _HANDLERS for action in ("httpGet", "tcpSocket")):
        host = at(container, path)
        if isinstance(host, str) and host:
            yield Breach(
                f"{where}.{path}", f"is {host}, to which the node sends requests", "remove it: the default is the pod"
            )


def _host_paths(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, spec in pod_specs(workload):
        for index, volume in enumerate(items(spec.get("volumes"))):
            if at(volume, "hostPath") in (None, UNKNOWN) or _only_read(workload, path, spec, at(volume, "name")):
                continue
            yield Breach(
                f"{path}.volumes[{index}].hostPath",
                _of_the_node(volume),
                "mount it read-only" if workload.kind == "DaemonSet" else "use emptyDir, or a PersistentVolumeClaim",
            )
    if workload.kind == "PersistentVolume" and workload.get("spec.hostPath") not in (None, UNKNOWN):
        yield Breach("spec.hostPath", _of_the_node(workload.get("spec")), "use csi, or local for disks of the node")


def _of_the_node(volume: Any) -> str:
    where = at(volume, "hostPath.path")
    return f"is {where if isinstance(where, str) else 'a path'} of the node"


def _only_read(workload: Resource, path: str, spec: Mapping[str, Any], volume: Any) -> bool:
    """Whether a DaemonSet mounts a volume for reading only, or may, where that is not known."""
    if workload.kind != "DaemonSet":
        return False
    if volume is UNKNOWN or any(holds_unknown(spec.get(key)) for key in ("containers", "initContainers")):
        return True
    mounts = [mount for _, container in containers(path, spec) for mount in items(container.get("volumeMounts"))]
    return all(truth(at(mount, "readOnly")) is True for mount in mounts if at(mount, "name") == volume)


def _capabilities(workload: Resource, settings: Settings) -> Iterator[Breach]:
    allowed = {*BASELINE_CAPABILITIES, *settings.names("capabilities")}
    for path, context in security_contexts(workload):
        added = [str(one) for one in items(at(context, "capabilities.add")) if one not in allowed]
        if added:
            yield Breach(
                f"{path}.capabilities.add",
                f"holds {', '.join(added)}, beyond what a container has by default",
                "remove it, or add it to the setting capabilities",
            )


def _root(workload: Resource, _: Settings) -> Iterator[Breach]:
    overridden = set()
    for path, spec in pod_specs(workload):
        own = [at(container, "securityContext.runAsUser") for _, container in containers(path, spec)]
        if own and None not in own:
            overridden.add(f"{path}.securityContext")
    for path, context in security_contexts(workload):
        if number(at(context, "runAsUser")) == 0 and path not in overridden:
            yield Breach(f"{path}.runAsUser", "is 0, which is root on the node too", "set a user above 0")


def _privilege_escalation(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, context in security_contexts(workload):
        if truth(at(context, "allowPrivilegeEscalation")) is True:
            yield Breach(
                f"{path}.allowPrivilegeEscalation", "is true, so a program may become root by sudo", "set it to false"
            )


def _kernel_protection(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, context in security_contexts(workload):
        if at(context, "procMount") == "Unmasked":
            yield Breach(f"{path}.procMount", "is Unmasked, which shows the kernel's own files", "remove it")
        for kind, lost in _UNCONFINED.items():
            if at(context, f"{kind}.type") == "Unconfined":
                yield Breach(f"{path}.{kind}.type", f"is Unconfined, which {lost}", "remove it")
        for option, allowed in _SE_LINUX.items():
            label = at(context, f"seLinuxOptions.{option}")
            if isinstance(label, str) and label not in allowed:
                yield Breach(
                    f"{path}.seLinuxOptions.{option}",
                    f"is {label}, which may lift what SELinux forbids a container",
                    "remove it",
                )
        for index, sysctl in enumerate(items(at(context, "sysctls"))):
            name = at(sysctl, "name")
            if isinstance(name, str) and name not in SAFE_SYSCTLS:
                yield Breach(
                    f"{path}.sysctls[{index}].name", f"is {name}, which affects the node's other pods", "remove it"
                )
    for path, described in metadata(workload):
        for key, value in entries(described.get("annotations")).items():
            if key.startswith(APPARMOR) and value == "unconfined":
                lost = _UNCONFINED["appArmorProfile"]
                yield Breach(f"{path}.annotations[{key}]", f"is unconfined, which {lost}", "remove it")


def _token_lifetime(workload: Resource, settings: Settings) -> Iterator[Breach]:
    most = settings.whole("maxSeconds")
    for path, spec in pod_specs(workload):
        for index, volume in enumerate(items(spec.get("volumes"))):
            for place, source in enumerate(items(at(volume, "projected.sources"))):
                seconds = number(at(source, "serviceAccountToken.expirationSeconds"))
                if seconds is not None and seconds > most:
                    yield Breach(
                        f"{path}.volumes[{index}].projected.sources[{place}].serviceAccountToken.expirationSeconds",
                        f"is {seconds:.0f} s, in which whoever copies the token may use it",
                        f"set it to at most {most}, since the kubelet renews it, or raise the setting maxSeconds",
                    )


def _image(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            image = container.get("image")
            if isinstance(image, str) and "@" not in image:
                tag = image.rpartition("/")[2].partition(":")[2]
                if tag in ("", "latest"):
                    yield Breach(f"{where}.image", f"is {image}, which can change", "name a version, or a digest")


def _registry(workload: Resource, settings: Settings) -> Iterator[Breach]:
    allowed = settings.names("registries")
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            image = container.get("image")
            if isinstance(image, str) and not any(_is_from(image, registry) for registry in allowed):
                yield Breach(
                    f"{where}.image",
                    f"is {image}, from a registry that is not allowed",
                    f"use an image of {', '.join(allowed)}, or add its registry to the setting registries",
                )


def _is_from(image: str, registry: str) -> bool:
    host = image.split("/", 1)[0] if "/" in image else ""
    if registry.startswith("*."):
        return host.endswith(registry[1:])
    return image == registry or image.startswith(f"{registry.rstrip('/')}/")


def _requests(workload: Resource, _: Settings) -> Iterator[Breach]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            given = {**_known(at(container, "resources.limits")), **_known(at(container, "resources.requests"))}
            unknown = at(container, "resources.limits") is UNKNOWN or at(container, "resources.requests") is UNKNOWN
            if GPU_RESOURCE in given and not unknown and not {"cpu", "memory"} <= given.keys():
                yield Breach(
                    f"{where}.resources.requests",
                    "ask for GPUs, but not for CPU and memory, so Kueue counts them as nothing",
                    "add cpu and memory",
                )


def _known(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


RULES: Final = rules_of(
    "Pods",
    {
        "kube-workload-service-account": _service_account,
        "kube-not-privileged": _privileged,
        "kube-no-host-namespaces": _host_namespaces,
        "kube-no-host-path": _host_paths,
        "kube-no-added-capabilities": _capabilities,
        "kube-kernel-protection": _kernel_protection,
        "kube-not-root": _root,
        "kube-no-privilege-escalation": _privilege_escalation,
        "kube-token-lifetime": _token_lifetime,
        "kube-image-version": _image,
        "kube-image-registry": _registry,
        "kube-gpu-requests": _requests,
    },
    exemptions={
        "kube-not-privileged": _installs_driver,
        "kube-no-host-namespaces": _installs_driver,
        "kube-no-host-path": _installs_driver,
        "kube-no-added-capabilities": _installs_driver,
        "kube-kernel-protection": _installs_driver,
        "kube-not-root": lambda workload: workload.kind == "DaemonSet",
        "kube-no-privilege-escalation": _installs_driver,
    },
)
"""The rules of this module."""
