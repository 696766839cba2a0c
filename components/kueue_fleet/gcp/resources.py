"""Google Cloud resources, and the image, by type token, with the outputs the components read.

`pulumi.CustomResource`s of the same types and URNs that the classes of pulumi-gcp and pulumi-docker-build make. Those
classes are not used because importing `pulumi_gcp.compute` alone runs 190,000 lines and takes longer than building the
graph of twenty clusters; tests/gcp/test_property_names.py holds every property passed here against the SDKs' own
argument types instead.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar, cast

import pulumi


class TypedResource(pulumi.CustomResource):
    """A resource of one type; subclasses name the type and the outputs that are read."""

    sdk: ClassVar[str]
    """The distribution whose version is that of the provider."""
    pulumi_type: ClassVar[str]
    """Pulumi type token, for example `gcp:compute/network:Network`."""
    outputs: ClassVar[tuple[str, ...]] = ()
    """Outputs, camelCase, that `output` can return beside the inputs."""

    def __init__(self, name: str, properties: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        """Declare the resource.

        `opts` is made for this resource alone: the provider's version is written into it.
        """
        opts.version = opts.version or _provider_version(self.sdk)
        super().__init__(self.pulumi_type, name, {**dict.fromkeys(self.outputs), **properties}, opts)

    def output(self, key: str) -> pulumi.Output[Any]:
        """The output `key` (camelCase); it must be an input given or be listed in `outputs`."""
        return cast("pulumi.Output[Any]", self.__dict__[key])


class GcpResource(TypedResource):
    """A resource of the `gcp` provider."""

    sdk = "pulumi-gcp"


class ProjectService(GcpResource):
    """An API of Google Cloud that is enabled in a project."""

    pulumi_type = "gcp:projects/service:Service"


class ArtifactRegistryRepository(GcpResource):
    """A repository of images in Artifact Registry."""

    pulumi_type = "gcp:artifactregistry/repository:Repository"


class DockerBuildImage(TypedResource):
    """An image that is built and pushed, by the provider `docker-build`."""

    sdk = "pulumi-docker-build"
    pulumi_type = "docker-build:index:Image"
    outputs = ("ref",)


class ComputeNetwork(GcpResource):
    """A VPC network."""

    pulumi_type = "gcp:compute/network:Network"
    outputs = ("selfLink",)


class ComputeSubnetwork(GcpResource):
    """A subnet of one region."""

    pulumi_type = "gcp:compute/subnetwork:Subnetwork"
    outputs = ("selfLink",)


class ComputeRouter(GcpResource):
    """A Cloud Router, which Cloud NAT needs."""

    pulumi_type = "gcp:compute/router:Router"


class ComputeRouterNat(GcpResource):
    """Cloud NAT of one region."""

    pulumi_type = "gcp:compute/routerNat:RouterNat"


class ComputeReservation(GcpResource):
    """Machines of one zone that are kept, and paid for, whether they run or not."""

    pulumi_type = "gcp:compute/reservation:Reservation"
    outputs = ("selfLink",)


class ComputeFutureReservation(GcpResource):
    """A request for machines in a window of time to come: DWS Calendar."""

    pulumi_type = "gcp:compute/futureReservation:FutureReservation"
    outputs = ("selfLink",)


class ComputeRegionCommitment(GcpResource):
    """A contract to pay for resources of a region for one or three years; it cannot be deleted."""

    pulumi_type = "gcp:compute/regionCommitment:RegionCommitment"
    outputs = ("selfLink",)


class ComputeResourcePolicy(GcpResource):
    """How the machines of a node pool are placed next to each other."""

    pulumi_type = "gcp:compute/resourcePolicy:ResourcePolicy"
    outputs = ("selfLink",)


class ServiceAccount(GcpResource):
    """A Google service account."""

    pulumi_type = "gcp:serviceaccount/account:Account"
    outputs = ("email", "member", "name")


class ServiceAccountIamMember(GcpResource):
    """One role on a service account for one member; leaves the role's other members alone."""

    pulumi_type = "gcp:serviceaccount/iAMMember:IAMMember"


class ProjectIamMember(GcpResource):
    """One role for one member in a project; leaves the role's other members alone."""

    pulumi_type = "gcp:projects/iAMMember:IAMMember"


class ProjectIamCustomRole(GcpResource):
    """A role of the project's own; one that was deleted under the same id comes back."""

    pulumi_type = "gcp:projects/iAMCustomRole:IAMCustomRole"
    outputs = ("name",)


class ContainerCluster(GcpResource):
    """A GKE cluster."""

    pulumi_type = "gcp:container/cluster:Cluster"
    outputs = (
        "endpoint",
        "masterAuth",
        "selfLink",
        "masterVersion",
        "controlPlaneEndpointsConfig",
        "privateClusterConfig",
        "nodeConfig",
    )


class ContainerNodePool(GcpResource):
    """A node pool of a Standard cluster."""

    pulumi_type = "gcp:container/nodePool:NodePool"


class MonitoringDashboard(GcpResource):
    """A Cloud Monitoring dashboard."""

    pulumi_type = "gcp:monitoring/dashboard:Dashboard"


class MonitoringAlertPolicy(GcpResource):
    """A Cloud Monitoring alert policy."""

    pulumi_type = "gcp:monitoring/alertPolicy:AlertPolicy"
    outputs = ("name",)


KINDS_OF_GKE: Mapping[str, str] = {"PodMonitoring": "monitoring.googleapis.com/v1"}
"""Custom resources whose definitions GKE itself brings to every cluster, and that the components make: kind to API
version. Source: https://cloud.google.com/stackdriver/docs/managed-prometheus/setup-managed."""


@cache
def _provider_version(sdk: str) -> str:
    """Version of the provider plugin: that of the installed SDK, which the lock file pins."""
    return version(sdk)


def concat(*parts: pulumi.Input[str]) -> pulumi.Input[str]:
    """The texts one after the other: a plain text where all of them are."""
    plain = [part for part in parts if isinstance(part, str)]
    return "".join(plain) if len(plain) == len(parts) else pulumi.Output.concat(*parts)


def workload_pool(project: pulumi.Input[str]) -> pulumi.Input[str]:
    """The pool of identities that the Kubernetes service accounts of a project's clusters have."""
    return concat(project, ".svc.id.goog")


def access_token(parent: pulumi.Resource) -> pulumi.Output[str]:
    """An access token of the user that the `gcp` provider acts as, as a secret; it expires within an hour."""
    options = pulumi.InvokeOptions(parent=parent, version=_provider_version(GcpResource.sdk))
    found = pulumi.runtime.invoke_output("gcp:organizations/getClientConfig:getClientConfig", {}, options)
    return pulumi.Output.secret(found.apply(lambda config: str(config["accessToken"])))
