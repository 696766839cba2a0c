"""Rules about types of objects, namespaces, what publishes to the internet, and Helm releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_admission.api.manifests import POD_SECURITY_LABEL
from kueue_admission.kernel.unknown import UNKNOWN, holds_unknown, is_known
from kueue_fleet.google.resource_types import HELM_RELEASE
from kueue_fleet_policies.internet import internet_ranges
from kueue_fleet_policies.resource import KUBERNETES, Resource, patched_type
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import entries, items

_RBAC: Final = f"{KUBERNETES}rbac.authorization.k8s.io/"
_ENFORCED: Final = ("baseline", "restricted")
_OF_SYSTEM: Final = re.compile(r"^(kube-(system|public|node-lease)|gke-(managed|gmp)-.+|gmp-(system|public))$")
_LOAD_BALANCER_TYPE: Final = ("networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type")
_EXTERNAL_CLASS: Final = "networking.gke.io/l4-regional-external"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_PUBLIC_GATEWAY: Final = re.compile(r"gke-l7-(gxlb|(global|regional)-external-managed)(-mc)?")
"""Source: https://cloud.google.com/kubernetes-engine/docs/how-to/gatewayclass-capabilities"""
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_REACHED: Final = "with an address that the internet reaches"
_PERSISTENT_DISK: Final = "pd.csi.storage.gke.io"
_DISK_KEY: Final = "disk-encryption-kms-key"
_EXACT_VERSION: Final = re.compile(r"^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$")


def _of_system(namespace: Resource) -> bool:
    name = namespace.get("metadata.name")
    return isinstance(name, str) and _OF_SYSTEM.match(name) is not None


def _pod_security(namespace: Resource, _: Settings) -> Iterator[Breach]:
    labels = namespace.get("metadata.labels")
    if labels is UNKNOWN:
        return
    level = labels.get(POD_SECURITY_LABEL) if isinstance(labels, dict) else None
    if is_known(level) and level not in _ENFORCED and not (level is None and namespace.is_patch):
        fault = "is missing, so any pod may take over its node" if level is None else f"is {level}"
        yield Breach(f"metadata.labels[{POD_SECURITY_LABEL}]", fault, "set it to baseline or restricted")


def _default_namespace(resource: Resource, _: Settings) -> Iterator[Breach]:
    path = "namespace" if resource.type == HELM_RELEASE else "metadata.namespace"
    if resource.get(path) == "default" and not resource.type.startswith(_RBAC):
        yield Breach(path, "is default, which no role and no quota sets apart", "use a namespace of its own")


def _disk_key(storage_class: Resource, _: Settings) -> Iterator[Breach]:
    if storage_class.get("provisioner") == _PERSISTENT_DISK and storage_class.lacks(f"parameters.{_DISK_KEY}"):
        yield Breach(
            f"parameters.{_DISK_KEY}", "is missing, so Google keeps the key of the disks", "name a key of yours"
        )


def _own_type(resource: Resource, _: Settings) -> Iterator[Breach]:
    """Of what type an object is: pulumi-kubernetes makes what `apiVersion` and `kind` say, of whatever type it is.

    Whatever has `items` is a list to Kubernetes' libraries. Sources: Create in pulumi-kubernetes
    provider/pkg/provider/provider.go; IsList in apimachinery@v0.36.3 pkg/apis/meta/v1/unstructured/unstructured.go.
    """
    version, kind = resource.get("apiVersion"), resource.get("kind")
    if isinstance(version, str) and isinstance(kind, str):
        type_ = f"{KUBERNETES}{version if '/' in version else f'core/{version}'}:{kind}"
        if type_ not in (resource.type, patched_type(resource.type)):
            yield Breach("kind", f"is {kind} of {version}, in a {resource.type}", f"declare it as {type_}")
    if isinstance(resource.get("items"), list):
        yield Breach("items", "hold objects which are not judged one by one", "declare each as a resource of its own")


def _public_load_balancer(service: Resource, _: Settings) -> Iterator[Breach]:
    sources, class_ = service.get("spec.loadBalancerSourceRanges"), service.get("spec.loadBalancerClass")
    if any(holds_unknown(one) for one in (service.get("metadata.annotations"), sources, class_)):
        return
    annotations = entries(service.get("metadata.annotations"))
    ranges = items(sources) or [one for one in str(annotations.get(_SOURCE_RANGES, "")).split(",") if one.strip()]
    limited = bool(ranges) and not internet_ranges(ranges)
    if service.get("spec.type") == "LoadBalancer" and _is_external(class_, annotations) and not limited:
        yield Breach(
            "spec.type",
            f"is LoadBalancer, {_REACHED}",
            f"annotate it with {_LOAD_BALANCER_TYPE[0]}: Internal, or set loadBalancerSourceRanges",
        )


def _is_external(class_: Any, annotations: Mapping[str, Any]) -> bool:
    """Whether GKE gives a load balancer a public address: its class decides, or the first annotation that is there."""
    if class_ not in (None, ""):
        return str(class_).startswith(_EXTERNAL_CLASS)
    type_ = next((annotations[key] for key in _LOAD_BALANCER_TYPE if key in annotations), None)
    return type_ not in ("Internal", "internal")


def _external_ips(service: Resource, _: Settings) -> Iterator[Breach]:
    if addresses := items(service.get("spec.externalIPs")):
        yield Breach(
            "spec.externalIPs",
            f"hold {', '.join(map(str, addresses))}, and nodes send their traffic to the Service, whosever they are",
            "remove them, and use an internal load balancer",
        )


def _public_ingress(ingress: Resource, _: Settings) -> Iterator[Breach]:
    """What has a public address of GKE's own controllers; others publish by a Service.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/ingress#controller_behavior
    """
    if ingress.kind == "MultiClusterIngress":
        yield Breach("kind", f"is {ingress.kind}, {_REACHED}", "use a Gateway of class gke-l7-rilb-mc")
    class_ = ingress.get("spec.gatewayClassName")
    if isinstance(class_, str) and _PUBLIC_GATEWAY.fullmatch(class_):
        yield Breach("spec.gatewayClassName", f"is {class_}, {_REACHED}", "set it to gke-l7-rilb")
    annotations = ingress.get("metadata.annotations")
    if ingress.kind == "Ingress" and annotations is not UNKNOWN:
        class_ = annotations.get(_INGRESS_CLASS) if isinstance(annotations, Mapping) else None
        if class_ == "gce" or (class_ in (None, "") and ingress.lacks("spec.ingressClassName")):
            yield Breach(
                f"metadata.annotations[{_INGRESS_CLASS}]",
                f"is {class_ or 'missing'}, so it gets a load balancer {_REACHED}",
                "set it to gce-internal",
            )


def _chart_version(release: Resource, _: Settings) -> Iterator[Breach]:
    chart, version = release.get("chart"), release.get("version")
    if not isinstance(chart, str) or not is_known(version) or chart.startswith(("/", ".")):
        return
    if not _EXACT_VERSION.match(str(version or "")) and not chart.endswith(".tgz"):
        fault = "is missing" if version in (None, "") else f'is "{version}"'
        yield Breach("version", f"{fault}, so the next update may install another one", "name one version")


RULES: Final = rules_of(
    "Kubernetes objects",
    {
        "kube-namespace-pod-security": _pod_security,
        "kube-no-default-namespace": _default_namespace,
        "kube-own-type": _own_type,
        "kube-disk-key": _disk_key,
        "kube-no-public-load-balancer": _public_load_balancer,
        "kube-no-external-ips": _external_ips,
        "kube-no-public-ingress": _public_ingress,
        "helm-version": _chart_version,
    },
    exemptions={"kube-namespace-pod-security": _of_system},
)
"""The rules of this module."""
