"""Rules about Kubernetes objects: roles, service accounts, images, charts.

In: objects of any Kubernetes provider. Out: problems. Numbers of CIS rules are those of its section 4, policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulumi_policy import Severity

from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE
from kueue_fleet.spec import Problem
from kueue_fleet_policies.pods import WORKLOAD_TYPES, containers, pod_specs
from kueue_fleet_policies.resource import HELM_RELEASE, Resource
from kueue_fleet_policies.rule import ADVISORY, ResourceRule, Settings
from kueue_fleet_policies.values import UNKNOWN, at, entries, is_known, items, strings, truth

_RBAC: Final = "kubernetes:rbac.authorization.k8s.io/v1:"
_BINDINGS: Final = (f"{_RBAC}ClusterRoleBinding", f"{_RBAC}RoleBinding")
_ROLES: Final = (f"{_RBAC}ClusterRole", f"{_RBAC}Role")
_EVERYBODY: Final = ("system:anonymous", "system:unauthenticated", "system:authenticated")
_NAMESPACED: Final = (
    *WORKLOAD_TYPES,
    "kubernetes:core/v1:ConfigMap",
    "kubernetes:core/v1:Secret",
    "kubernetes:core/v1:Service",
    "kubernetes:core/v1:ServiceAccount",
    "kubernetes:kueue.x-k8s.io/v1beta1:LocalQueue",
    "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue",
    HELM_RELEASE,
)
_EXACT_VERSION: Final = re.compile(r"^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$")
DRIVER_INSTALLER: Final = "a DaemonSet for nodes with GPUs only, which needs the host to install their driver"
"""Why the installer of GPU drivers is left alone by rules about the host."""


def _cluster_admin(binding: Resource, _: Settings) -> Iterator[Problem]:
    if binding.get("roleRef.name") == "cluster-admin":
        yield Problem("roleRef.name", "is cluster-admin, which may do everything", "bind a role with what is needed")


def _wildcards(role: Resource, _: Settings) -> Iterator[Problem]:
    for index, rule in enumerate(items(role.get("rules"))):
        for key in ("apiGroups", "resources", "verbs"):
            if "*" in items(at(rule, key)):
                yield Problem(f"rules[{index}].{key}", 'holds "*", also for what will be added', "list what is needed")


def _public_binding(binding: Resource, _: Settings) -> Iterator[Problem]:
    for index, subject in enumerate(items(binding.get("subjects"))):
        name = at(subject, "name")
        if name in _EVERYBODY:
            yield Problem(f"subjects[{index}].name", f"is {name}: every Google account is in it", "name who needs it")


def _default_namespace(resource: Resource, _: Settings) -> Iterator[Problem]:
    path = "namespace" if resource.type == HELM_RELEASE else "metadata.namespace"
    if resource.get(path) == "default":
        yield Problem(path, "is default, which no role and no quota sets apart", "use a namespace of its own")


def _service_account(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        account, mounted = spec.get("serviceAccountName"), truth(spec.get("automountServiceAccountToken"))
        if account is not UNKNOWN and account in (None, "", "default") and mounted in (None, True):
            yield Problem(
                f"{path}.serviceAccountName",
                "is the namespace's default, whose token every pod there has",
                "name an account of its own, or set automountServiceAccountToken to false",
            )


def _installs_driver(workload: Resource) -> str | None:
    if workload.kind != "DaemonSet":
        return None
    for _, spec in pod_specs(workload):
        selected = ACCELERATOR in entries(spec.get("nodeSelector"))
        required = at(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        if selected or any(text == ACCELERATOR for _, text in strings(required)):
            return DRIVER_INSTALLER
    return None


def _privileged(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            if truth(at(container, "securityContext.privileged")) is True:
                yield Problem(
                    f"{where}.securityContext.privileged", "is true: the container is the node's root", "remove it"
                )


def _host_namespaces(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        for key in ("hostPID", "hostIPC", "hostNetwork"):
            if truth(spec.get(key)) is True:
                yield Problem(f"{path}.{key}", "is true: the pod sees what is the node's", "remove it")


def _image(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            image = container.get("image")
            if isinstance(image, str) and "@" not in image:
                tag = image.rpartition("/")[2].partition(":")[2]
                if tag in ("", "latest"):
                    yield Problem(f"{where}.image", f"is {image}, which moves", "name a version, or a digest")


def _registry(workload: Resource, settings: Settings) -> Iterator[Problem]:
    allowed = settings.names("registries")
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            image = container.get("image")
            if isinstance(image, str) and not any(_is_from(image, registry) for registry in allowed):
                yield Problem(
                    f"{where}.image",
                    f"is {image}, from a registry that is not allowed",
                    f"use an image of {', '.join(allowed)}, or add its registry to the setting registries",
                )


def _is_from(image: str, registry: str) -> bool:
    host = image.split("/", 1)[0] if "/" in image else ""
    if registry.startswith("*."):
        return host.endswith(registry[1:])
    return image == registry or image.startswith(f"{registry.rstrip('/')}/")


def _chart_version(release: Resource, _: Settings) -> Iterator[Problem]:
    chart, version = release.get("chart"), release.get("version")
    if not isinstance(chart, str) or not is_known(version) or chart.startswith(("/", ".")):
        return
    if not _EXACT_VERSION.match(str(version or "")) and not chart.endswith(".tgz"):
        said = "is missing" if version in (None, "") else f'is "{version}"'
        yield Problem("version", f"{said}, so the next update may install another one", "name one version")


def _release_on_failure(release: Resource, _: Settings) -> Iterator[Problem]:
    if release.is_on("skipAwait"):
        yield Problem("skipAwait", "is true, so what follows begins before the chart serves", "remove it")


def _requests(workload: Resource, _: Settings) -> Iterator[Problem]:
    for path, spec in pod_specs(workload):
        for where, container in containers(path, spec):
            given = {**_known(at(container, "resources.limits")), **_known(at(container, "resources.requests"))}
            unknown = at(container, "resources.limits") is UNKNOWN or at(container, "resources.requests") is UNKNOWN
            if GPU_RESOURCE in given and not unknown and not {"cpu", "memory"} <= given.keys():
                yield Problem(
                    f"{where}.resources.requests",
                    "ask for GPUs, but not for CPU and memory, so Kueue counts them as nothing",
                    "add cpu and memory",
                )


def _known(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_KUBERNETES: Final = "https://kubernetes.io/docs"
_GROUP: Final = "Kubernetes"

RULES: Final = (
    ResourceRule(
        name="kube-no-cluster-admin",
        asks="Nobody is cluster-admin.",
        cis="4.1.1",
        severity=Severity.HIGH,
        source=f"{_KUBERNETES}/concepts/security/rbac-good-practices/",
        group=_GROUP,
        types=_BINDINGS,
        check=_cluster_admin,
    ),
    ResourceRule(
        name="kube-no-wildcard-roles",
        asks="Roles list what they allow.",
        cis="4.1.3",
        severity=Severity.HIGH,
        source=f"{_KUBERNETES}/concepts/security/rbac-good-practices/",
        group=_GROUP,
        types=_ROLES,
        check=_wildcards,
    ),
    ResourceRule(
        name="kube-no-public-bindings",
        asks="No role is given to everybody who can reach the cluster.",
        severity=Severity.CRITICAL,
        source="https://cloud.google.com/kubernetes-engine/docs/best-practices/rbac#default-roles-groups",
        group=_GROUP,
        types=_BINDINGS,
        check=_public_binding,
    ),
    ResourceRule(
        name="kube-workload-service-account",
        asks="A workload has a service account of its own, or no token.",
        cis="4.1.5",
        source=f"{_KUBERNETES}/concepts/security/service-accounts/",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_service_account,
    ),
    ResourceRule(
        name="kube-not-privileged",
        asks="No container is privileged.",
        cis="4.2.1",
        severity=Severity.HIGH,
        source=f"{_KUBERNETES}/concepts/security/pod-security-standards/",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_privileged,
        exemption=_installs_driver,
        exempts=f"a DaemonSet that selects nodes by {ACCELERATOR}: {DRIVER_INSTALLER}",
    ),
    ResourceRule(
        name="kube-no-host-namespaces",
        asks="No pod shares the node's processes, memory or network.",
        cis="4.2.4",
        severity=Severity.HIGH,
        source=f"{_KUBERNETES}/concepts/security/pod-security-standards/",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_host_namespaces,
        exemption=_installs_driver,
        exempts=f"a DaemonSet that selects nodes by {ACCELERATOR}: {DRIVER_INSTALLER}",
    ),
    ResourceRule(
        name="kube-no-default-namespace",
        asks="Nothing is in the namespace default.",
        cis="4.6.4",
        severity=Severity.LOW,
        source=f"{_KUBERNETES}/concepts/overview/working-with-objects/namespaces/",
        group=_GROUP,
        types=_NAMESPACED,
        check=_default_namespace,
    ),
    ResourceRule(
        name="kube-image-version",
        asks="Images do not move.",
        source=f"{_KUBERNETES}/concepts/configuration/overview/",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_image,
    ),
    ResourceRule(
        name="kube-image-registry",
        asks="Images come from allowed registries.",
        cis="5.1.4",
        level=ADVISORY,
        source="https://cloud.google.com/binary-authorization/docs/overview",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_registry,
        options={
            "registries": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Registries, or beginnings of image names; `*.host` for every host below it.",
                "default": ["registry.k8s.io", "*.pkg.dev", "gcr.io", "*.gcr.io", "ghcr.io", "quay.io"],
            }
        },
    ),
    ResourceRule(
        name="kube-gpu-requests",
        asks="A container that wants GPUs says what else it needs.",
        level=ADVISORY,
        source="https://kueue.sigs.k8s.io/docs/concepts/workload/#resource-requests",
        group=_GROUP,
        types=WORKLOAD_TYPES,
        check=_requests,
    ),
    ResourceRule(
        name="helm-version",
        asks="Charts do not move.",
        source="https://www.pulumi.com/registry/packages/kubernetes/api-docs/helm/v3/release/",
        group=_GROUP,
        types=(HELM_RELEASE,),
        check=_chart_version,
        exempts="charts of a local folder or archive, which are their own version",
    ),
    ResourceRule(
        name="helm-await",
        asks="A release is finished when it serves.",
        level=ADVISORY,
        source="https://www.pulumi.com/registry/packages/kubernetes/api-docs/helm/v3/release/",
        group=_GROUP,
        types=(HELM_RELEASE,),
        check=_release_on_failure,
    ),
)
"""The rules of this module."""
