"""The resources of a stack together: which node pools and which Kubernetes objects belong to which cluster.

What links them is what links them in the program: a node pool's `cluster`, and the provider of a Kubernetes object,
which got its kubeconfig from a cluster or names one with `clusterIdentifier`. An object whose cluster cannot be told is
in no cluster, and rules that need one leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from pulumi_policy import PolicyResource

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.google.resource_types import CLUSTER, NODE_POOL
from kueue_fleet_policies.pool import Pool
from kueue_fleet_policies.resource import KUBERNETES, KUBERNETES_PROVIDER, Resource, kubernetes_type
from kueue_fleet_policies.values import entries, items, number, truth

KubernetesObjects = Mapping[str, Sequence[Resource]]
"""Objects by kind."""


@dataclass(frozen=True)
class ClusterView:
    """A GKE cluster of the stack, with what belongs to it."""

    resource: Resource
    pools: tuple[Pool, ...]
    objects: KubernetesObjects

    @cached_property
    def disposable(self) -> bool:
        """Whether it is declared as one that may be deleted."""
        return is_disposable(self.resource)

    @property
    def auto_provisioning(self) -> Any:
        """Whether node auto-provisioning makes pools of its own; `UNKNOWN` where that is not known."""
        value = truth(self.resource.get("clusterAutoscaling.enabled"))
        return UNKNOWN if value is UNKNOWN else bool(value)

    @property
    def limits(self) -> dict[str, float]:
        """The most that auto-provisioning lets the whole cluster have, by resource type; memory in GB."""
        limits_by_place = {}
        for limit in items(self.resource.get("clusterAutoscaling.resourceLimits")):
            entry = entries(limit)
            most = number(entry.get("maximum"))
            if "resourceType" in entry and most is not None:
                limits_by_place[str(entry["resourceType"])] = most
        return limits_by_place

    def of_kind(self, kind: str) -> Sequence[Resource]:
        """Its Kubernetes objects of a kind."""
        return self.objects.get(kind, ())


@dataclass(frozen=True)
class Estate:
    """Everything in a stack."""

    resources: tuple[Resource, ...]
    clusters: tuple[ClusterView, ...]
    providers: Mapping[str, KubernetesObjects]
    """Kubernetes objects by the URN of their provider, then by kind."""
    cluster_of_provider: Mapping[str, str] = field(default_factory=dict)
    """URN of the cluster, by the URN of the Kubernetes provider."""
    provider_of: Mapping[str, str] = field(default_factory=dict)
    """URN of the provider, by the URN of the Kubernetes object."""

    @classmethod
    def of(cls, given: Iterable[PolicyResource], inputs: Mapping[str, Mapping[str, Any]] | None = None) -> Estate:
        """The stack of the resources that a stack policy was called with, and of their inputs by URN."""
        return _Builder(inputs or {}).build(list(given))

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Resources of these types."""
        return (resource for resource in self.resources if resource.type in types)

    def cluster_of(self, resource: Resource) -> ClusterView | None:
        """The cluster that a Kubernetes object is in."""
        urn = self.cluster_of_provider.get(self.provider_of.get(resource.urn, ""))
        return next((cluster for cluster in self.clusters if cluster.resource.urn == urn), None)


_ANSWERED: Final = frozenset({"cluster", "effectiveLabels", "id", "location", "name", "project"})
"""What is taken of Google's answer for a cluster or a node pool: its name and place. The rest is judged as the program
asks for it: Google fills in the present size, for example, which need not be within the limits."""

DISPOSABLE_LABEL: Final = "disposable"
"""Label on a cluster that may be deleted at any time."""


def is_disposable(cluster: Resource) -> bool:
    """Whether a cluster carries the label that declares it as one that may be deleted."""
    return any(
        entries(cluster.get(where)).get(DISPOSABLE_LABEL) == "true" for where in ("resourceLabels", "effectiveLabels")
    )


def object_name(resource: Resource) -> Any:
    """`metadata.name` of a Kubernetes object; `UNKNOWN` where it is not known."""
    name = resource.get("metadata.name")
    return name if isinstance(name, str) else UNKNOWN


def objects_by_name(objects: Iterable[Resource]) -> dict[str, Resource]:
    """Kubernetes objects whose name is known, by name."""
    return {name: one for one in objects if isinstance(name := object_name(one), str)}


class _Builder:
    """Puts the resources of a stack together; what was asked for comes before what was made of it."""

    def __init__(self, inputs: Mapping[str, Mapping[str, Any]]) -> None:
        self._inputs = inputs
        self._resources: dict[str, Resource] = {}

    def _resource(self, one: PolicyResource) -> Resource:
        if one.urn not in self._resources:
            resource, inputs = Resource.of(one), self._inputs.get(one.urn)
            if inputs is not None:
                whole = resource.type not in (CLUSTER, NODE_POOL)
                answered = {key: value for key, value in resource.props.items() if whole or key in _ANSWERED}
                resource = replace(resource, props={**answered, **inputs})
            self._resources[one.urn] = resource
        return self._resources[one.urn]

    def build(self, given: Sequence[PolicyResource]) -> Estate:
        """The estate of these resources."""
        relevant = [one for one in given if _is_relevant(one.resource_type)]
        clusters = [one for one in relevant if one.resource_type == CLUSTER]
        of_provider = {
            one.urn: owner
            for one in relevant
            if one.resource_type == KUBERNETES_PROVIDER and (owner := self._cluster_of_provider(one, clusters))
        }
        objects: dict[str, dict[str, list[Resource]]] = {}
        provider_of: dict[str, str] = {}
        for one in relevant:
            resource = self._resource(one)
            if one.provider is not None and resource.type.startswith(KUBERNETES) and not resource.is_patch:
                objects.setdefault(one.provider.urn, {}).setdefault(resource.kind, []).append(resource)
                provider_of[one.urn] = one.provider.urn
        pools: dict[str, list[Pool]] = {}
        for one in relevant:
            if one.resource_type == NODE_POOL and (cluster := self._cluster_of_pool(one, clusters)):
                pools.setdefault(cluster.urn, []).append(Pool(self._resource(one), cluster))
        views = tuple(
            ClusterView(
                self._resource(cluster),
                tuple(pools.get(cluster.urn, ())),
                _merged(objects[urn] for urn, owner in of_provider.items() if owner == cluster.urn and urn in objects),
            )
            for cluster in clusters
        )
        return Estate(tuple(map(self._resource, relevant)), views, objects, of_provider, provider_of)

    def _cluster_of_provider(self, provider: PolicyResource, clusters: Sequence[PolicyResource]) -> str | None:
        """The one cluster that the provider's settings come from, or that it names."""
        identifier = self._resource(provider).get("clusterIdentifier")
        if isinstance(identifier, str):
            for cluster in clusters:
                if identifier == _identifier(self._resource(cluster)):
                    return cluster.urn
        for sources in (provider.property_dependencies.get("kubeconfig", []), provider.dependencies):
            urns = {one.urn for one in sources if one.resource_type == CLUSTER}
            if len(urns) == 1:
                return urns.pop()
        return None

    def _cluster_of_pool(self, pool: PolicyResource, clusters: Sequence[PolicyResource]) -> Resource | None:
        """The one cluster that the pool's setting comes from, or that it names."""
        sources = [one for one in pool.property_dependencies.get("cluster", []) if one.resource_type == CLUSTER]
        if len({one.urn for one in sources}) == 1:
            return self._resource(sources[0])
        resource = self._resource(pool)
        owner, location = resource.get("cluster"), resource.get("location")
        for cluster in map(self._resource, clusters):
            name = cluster.get("name")
            same_place = not isinstance(location, str) or location == cluster.get("location")
            if (
                isinstance(owner, str)
                and isinstance(name, str)
                and ((owner == name and same_place) or owner in (_identifier(cluster), cluster.get("id")))
            ):
                return cluster
        return None


def _is_relevant(type_: str) -> bool:
    return kubernetes_type(type_).startswith(("gcp:", KUBERNETES)) or type_ == KUBERNETES_PROVIDER


def _merged(parts: Iterable[Mapping[str, list[Resource]]]) -> dict[str, tuple[Resource, ...]]:
    merged: dict[str, list[Resource]] = {}
    for part in parts:
        for kind, objects in part.items():
            merged.setdefault(kind, []).extend(objects)
    return {kind: tuple(objects) for kind, objects in merged.items()}


def _identifier(cluster: Resource) -> str:
    project, location, name = (cluster.get(key) for key in ("project", "location", "name"))
    return f"projects/{project}/locations/{location}/clusters/{name}"
