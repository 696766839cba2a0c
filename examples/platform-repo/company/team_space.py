"""A team's space in a cluster: a namespace that says who pays, a limit of GPUs, and entrances to queues.

In: a `TeamSpaceSpec`, and the cluster's queues as components of kueue-fleet. Out: one component around the library's
own `Namespaces` and `LocalQueue` and a ResourceQuota of Kubernetes.
"""

from collections.abc import Mapping
from typing import Annotated

import pulumi
import pulumi_kubernetes as kubernetes
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

import kueue_fleet as kf

DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
"""What Kubernetes takes as the name of a namespace."""
SPACE_LABEL = "company.example/space"
"""On the namespace of every space."""
COST_CENTRE_LABEL = "company.example/cost-centre"
"""Who pays; the bill of Google Cloud is broken down by it (GKE cost allocation)."""


class TeamSpaceSpec(BaseModel):
    """What a team has. Frozen, camelCase in files, unknown fields refused: as in kueue-fleet's own models."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    name: DnsLabel
    """Name of the team, and of its namespace."""
    cost_centre: Annotated[str, StringConstraints(pattern=r"^cc-\d{4}$")]
    """Who pays: cc- and four digits."""
    gpus: Annotated[int, Field(strict=True, ge=0)]
    """The most GPUs its pods hold at once, whatever the queues have to give."""
    queues: Annotated[tuple[DnsLabel, ...], Field(min_length=1)]
    """ClusterQueues that it may submit to; the LocalQueues have the same names."""


class TeamSpace(pulumi.ComponentResource):
    """A namespace, a ResourceQuota and LocalQueues."""

    namespace: str
    """Name of the namespace."""
    local_queues: dict[str, kf.LocalQueue]
    """The entrances, by queue."""

    def __init__(
        self,
        name: str,
        spec: TeamSpaceSpec,
        *,
        cluster_queues: Mapping[str, kf.ClusterQueue],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the space; `cluster_queues` are the cluster's, by name, and the provider in `opts` is the cluster's.

        Raises:
            ValueError: the team is to submit to a queue that the cluster does not have.
        """
        missing = [queue for queue in spec.queues if queue not in cluster_queues]
        if missing:
            raise ValueError(
                f"space {spec.name}: there is no ClusterQueue {', '.join(missing)}; use one of "
                f"{', '.join(sorted(cluster_queues))}"
            )
        super().__init__("company:index:TeamSpace", name, None, opts)
        deleted_with = opts.deleted_with if opts else None
        labels = {
            "pod-security.kubernetes.io/enforce": "baseline",
            SPACE_LABEL: "true",
            COST_CENTRE_LABEL: spec.cost_centre,
        }
        self.namespace = spec.name
        place = kf.Namespaces(
            name,
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": spec.name, "labels": labels}}],
            opts=pulumi.ResourceOptions(parent=self, deleted_with=deleted_with),
        )
        inside = pulumi.ResourceOptions(parent=self, depends_on=[place], deleted_with=deleted_with)
        kubernetes.core.v1.ResourceQuota(
            f"{name}/gpus",
            metadata={"name": "gpus", "namespace": spec.name},
            spec={"hard": {"requests.nvidia.com/gpu": str(spec.gpus)}},
            opts=inside,
        )
        self.local_queues = {
            queue: kf.LocalQueue(
                f"{name}/{queue}",
                namespace=place.names[spec.name],
                object_name=queue,
                cluster_queue=cluster_queues[queue],
                opts=inside,
            )
            for queue in spec.queues
        }
        self.register_outputs({"namespace": self.namespace})
