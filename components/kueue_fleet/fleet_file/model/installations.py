"""How Kueue and JobSet are installed: on every cluster, and what differs on one.

Frozen models with the rules of GKE for their pods, and the defaults.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.kernel import syntax
from kueue_admission.kernel.base import Count, DnsLabel, DnsSubdomain, Flag, RuledModel, SpecModel, Text, syntax_of
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.problem import Problem
from kueue_admission.releases import DEFAULT_VERSION, Release, nearest
from kueue_fleet.fleet_file.model.addresses import Chart, ImageRepository
from kueue_fleet.fleet_file.model.kueue_pods import KUEUE_PRIORITY_CLASS, ZONES_AND_NODES, PodResources, TopologySpread
from kueue_fleet.fleet_file.rules.teams import PRIORITY_CLASS, REPLICAS

Version = Annotated[Text, syntax_of(syntax.version)]
"""A version of a chart."""


class KueueInstallation(RuledModel):
    """How Kueue is installed on every cluster."""

    version: Version = DEFAULT_VERSION
    """Version of the chart and of Kueue; default 0.19.2. `check` has the rules of 0.17, 0.18, 0.19 and 0.20."""
    chart: Chart = "oci://registry.k8s.io/kueue/charts/kueue"
    """Helm chart, also of a mirror, or a path."""
    image: ImageRepository = "registry.k8s.io/kueue/kueue"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "kueue-system"
    """Namespace of Kueue, and of the workers' credentials on the manager."""
    replicas: Annotated[Count, Field(ge=1)] = 2
    """Pods of Kueue; default 2. One admits; all serve webhooks, without which no job can be created."""
    min_available: Count | None = None
    """Pods that a PodDisruptionBudget keeps while nodes are drained; default: one less than `replicas`; 0: none."""
    resources: PodResources = Field(default_factory=PodResources)
    """Requests and limits of each pod."""
    topology_spread: ListOf[TopologySpread] = ZONES_AND_NODES
    """How the pods spread; default: over zones and nodes, where that can be had."""
    priority_class_name: DnsSubdomain = KUEUE_PRIORITY_CLASS
    """PriorityClass of the pods and of the fleet's controller; default kueue-fleet-critical, which the fleet creates.
    """
    configuration: KueueConfiguration = Field(default_factory=KueueConfiguration)
    """Kueue's own Configuration, for all clusters."""

    @property
    def release(self) -> Release:
        """What is known of the version."""
        return nearest(self.version)

    @property
    def pods_that_stay(self) -> int:
        """How many pods a PodDisruptionBudget keeps; 0: there is no budget."""
        return self.replicas - 1 if self.min_available is None else self.min_available

    def own_problems(self) -> Iterator[Problem]:
        """A budget that lets nodes be drained, one leader, and a PriorityClass that GKE allows here."""
        if self.pods_that_stay >= self.replicas:
            yield REPLICAS.at(
                "minAvailable",
                f"{self.pods_that_stay} of {self.replicas} replicas, so no node with one of them could be drained",
                f"write {self.replicas - 1} or less",
                "warning",
            )
        election = self.configuration.leader_election
        if self.replicas > 1 and election is not None and election.get("leaderElect") is False:
            yield REPLICAS.at(
                "configuration.leaderElection.leaderElect",
                f"false, but there are {self.replicas} replicas, which would all admit jobs",
                "remove it, or set replicas to 1",
            )
        if self.priority_class_name.startswith("system-"):
            yield PRIORITY_CLASS.at(
                "priorityClassName",
                f"GKE refuses pods of {self.priority_class_name} outside kube-system, unless their namespace has a "
                "ResourceQuota with this PriorityClass as its scope",
                "leave the field out, or make that ResourceQuota first",
            )


class ClusterKueue(SpecModel):
    """Settings of Kueue that differ on one cluster."""

    version: Version | None = None
    """Version of chart and Kueue here; default: the fleet's."""
    configuration: KueueConfiguration = Field(default_factory=KueueConfiguration)
    """Merged over the fleet's: maps merge, lists and scalars replace."""


class JobSetInstallation(SpecModel):
    """How JobSet is installed on every cluster."""

    enabled: Flag = True
    """Default true."""
    version: Version = "0.11.0"
    """Version of chart and JobSet."""
    chart: Chart = "oci://registry.k8s.io/jobset/charts/jobset"
    """Helm chart, also of a mirror, or a path."""
    image: ImageRepository = "registry.k8s.io/jobset/jobset"
    """Repository of the image; the tag is `v` and the version."""
    namespace: DnsLabel = "jobset-system"
    """Where JobSet runs."""
