"""GKE clusters of a fleet: the cluster, the identity of its nodes, its kubeconfig and its Kubernetes provider.

Not here: node pools for jobs (`gcp.node_pool`), and anything inside the cluster (`kueue_fleet.kueue_components`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Literal, Self

import pulumi
import pulumi_kubernetes as kubernetes

from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.arguments import checked, shown
from kueue_admission.kernel.model_problems import problems_in
from kueue_fleet.component import Component, Labels, check_labels, judge, today
from kueue_fleet.fleet_file import ClusterEntry
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.model.gcp_names import AddressRange, GoogleServiceAccountAddress, ProjectId, ResourceName
from kueue_fleet.fleet_file.model.network import AuthorizedNetwork, NetworkArgs
from kueue_fleet.fleet_file.model.resolved_pools import system_pool_entry
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.fleet_file.rules.files import PROGRAM
from kueue_fleet.gcp_components.declare import declare, put_in
from kueue_fleet.gcp_components.gke_kubeconfig import cluster_kubeconfig, server_ca
from kueue_fleet.gcp_components.identity import NodeIdentity
from kueue_fleet.gcp_components.node_pool import NodePool, parts_of_id
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.gke.google_syntax import region_in_link
from kueue_fleet.gke.zones import region_at
from kueue_fleet.google.answers import IN_A_TEST
from kueue_fleet.google.clusters import Access, cluster
from kueue_fleet.google.resource import joined, workload_pool


@dataclass(frozen=True)
class ControlPlaneAccess(Access):
    """How the API server of a cluster is reached."""

    dns: bool = True
    """By a DNS name, checked by IAM, with no IP address at all; else by addresses, from `networks` alone."""
    networks: Mapping[str, pulumi.Input[AddressRange]] = field(default_factory=dict)
    """Ranges that may reach the addresses, by a display name; unused with `dns`."""
    kubernetes_tokens: bool = False
    """Whether tokens of Kubernetes service accounts are taken over the DNS name, as MultiKueue's managers have them.
    Without it the DNS name takes only Google's own tokens."""


shown(ControlPlaneAccess.__init__)


CLUSTER_ID = "projects/P/locations/L/clusters/N"
"""Form of the id of a cluster."""


class GkeCluster(Component):
    """What the clusters of every role have in common; use the subclass of the role."""

    name: pulumi.Output[str]
    """Name in Google Cloud and of the kubeconfig's context, once the cluster is there."""
    cluster_name: str
    """The same, known before."""
    identifier: pulumi.Output[str]
    """`projects/P/locations/L/clusters/N`: known before the cluster exists and the same for its whole life."""
    cluster: "gcp.container.Cluster"
    """The GKE cluster, made or read."""
    deleted_with: "gcp.container.Cluster | None"
    """What everything in it goes with when it is deleted; None: it stays, and objects are deleted one by one."""
    endpoint: pulumi.Output[str]
    """Address of the API server, without a scheme: its DNS name, or its public IP address."""
    internal_endpoint: pulumi.Output[str]
    """The address for the other clusters of the network: the same DNS name, or the private IP address."""
    ca_certificate: pulumi.Output[str | None]
    """Certificate authority of the API server, base64 PEM; None: the certificate is a public one."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig with one context, JSON, secret. It holds no credential: gke-gcloud-auth-plugin gets one that soon
    expires, of whoever uses it."""
    provider: kubernetes.Provider
    """Provider for everything in this cluster and for nothing outside it."""
    workload_pool: pulumi.Output[str]
    """Workload Identity pool of the project."""
    node_service_account: pulumi.Output[str]
    """Address of the nodes' service account."""
    private_nodes: pulumi.Output[bool]
    """Whether nodes have internal addresses alone, as far as a node pool does not say otherwise."""
    system_pool: NodePool | None
    """On a Standard cluster: the pool that Kueue and the rest of the system run on."""

    role: ClassVar[Literal["manager", "worker", "standalone"]]
    """What the cluster is in its fleet."""

    def __init__(
        self,
        name: str,
        spec: ClusterEntry,
        *,
        project: pulumi.Input[ProjectId],
        network: "pulumi.Input[str] | None" = None,
        subnetwork: "pulumi.Input[str] | None" = None,
        access: ControlPlaneAccess | None = None,
        pod_range_name: "pulumi.Input[ResourceName] | None" = None,
        service_range_name: "pulumi.Input[ResourceName] | None" = None,
        node_service_account: "pulumi.Input[GoogleServiceAccountAddress] | None" = None,
        existing_id: "pulumi.Input[str] | None" = None,
        images_of: "pulumi.Input[ProjectId] | None" = None,
        managed_prometheus: bool = True,
        deletion_protection: bool = True,
        labels: "Labels | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the cluster. If its entry says that it exists, it is read, and not changed.

        `network` and `subnetwork`, of a cluster that is made, are self links or names; `access` says how the API server
        is reached, by default by its DNS name alone; `pod_range_name` and `service_range_name` are secondary ranges of
        the subnet, by default GKE's choice; `node_service_account` takes the place of the entry's, such as one that the
        program makes; `existing_id` is the id of a cluster that exists, `projects/P/locations/L/clusters/N`, such as an
        output of what makes it, and has to be the one of the entry, whose region L is, or a zone in it; `images_of` is
        another project whose images the nodes read; `managed_prometheus` runs Google's collectors, which Autopilot
        always does; `deletion_protection` sets GKE's own protection and Pulumi's `protect`, and must be false in the
        state before the cluster can be destroyed; `labels` are Google Cloud labels.

        Raises:
            SpecError: the entry has another role than the class, or breaks rules; a cluster that is made has no
                network or has an `existing_id`; that is the id of another cluster, from within Pulumi where it is an
                output.
        """
        where = f"cluster {spec.name}"
        if spec.role != self.role:
            wrong = f"{type(self).__name__} needs role {self.role}, but it has {spec.role}"
            raise SpecError([COMPONENT.at(where, wrong, "use the class of its role")])
        if existing_id is not None and not spec.existing:
            raise SpecError([COMPONENT.at(where, "has an id of the program, but not existing: true", "add it")])
        if not spec.existing and (network is None or subnetwork is None):
            wrong = "no network or no subnetwork"
            raise SpecError([COMPONENT.at(where, wrong, "give network=... and subnetwork=...")])
        elsewhere = region_in_link(subnetwork) if isinstance(subnetwork, str) else None
        if elsewhere not in (None, spec.region):
            wrong = f"is in {elsewhere}, and the cluster in {spec.region}"
            judge([COMPONENT.at(f"{where}.subnetwork", wrong, "give a subnet of that region")], opts)
        judge(
            chain(check_alone("clusters", spec, today=today()), _access_problems(where, access), check_labels(labels)),
            opts,
        )
        if isinstance(existing_id, str):
            parts_of_id(f"{where}.existing_id", existing_id, CLUSTER_ID)
            if isinstance(project, str):
                judge(_other_cluster(spec.name, _identifier(project, spec), existing_id), opts)
        super().__init__(name, opts)
        self.cluster_name = spec.name
        identifier = put_in(_identifier(project, spec))
        self.workload_pool = pulumi.Output.from_input(put_in(workload_pool(project)))
        access = access or ControlPlaneAccess()
        autopilot = spec.mode == "Autopilot"
        known_id = identifier
        if spec.existing:
            if existing_id is not None:
                known_id = pulumi.Output.all(identifier, existing_id).apply(lambda ids: _same_cluster(spec.name, *ids))
            self.cluster = gcp.container.Cluster.get(name, known_id, opts=pulumi.ResourceOptions(parent=self))
        self.identifier = pulumi.Output.from_input(known_id)
        roles: list[gcp.projects.IAMMember] = []
        service_account = spec.node_service_account if node_service_account is None else node_service_account
        if service_account is not None:
            self.node_service_account = pulumi.Output.from_input(service_account)
        elif spec.existing and autopilot:
            self.node_service_account = self.cluster.node_config.apply(_service_account)
        else:
            # Of a cluster that exists, for the node pools that the fleet adds to it.
            identity = NodeIdentity(
                f"{name}-nodes",
                project=project,
                cluster_name=spec.name,
                images_of=images_of,
                opts=pulumi.ResourceOptions(parent=self),
            )
            self.node_service_account, roles = identity.email, identity.roles
        if network is not None and subnetwork is not None and not spec.existing:
            waiting = {str(index): role for index, role in enumerate(roles)}
            rendered_cluster = cluster(
                name,
                spec,
                project=project,
                network=network,
                subnetwork=subnetwork,
                access=access,
                pod_range_name=pod_range_name,
                service_range_name=service_range_name,
                node_service_account=self.node_service_account,
                managed_prometheus=managed_prometheus,
                deletion_protection=deletion_protection,
                labels=labels or {},
                needs=tuple(waiting),
            )
            [self.cluster] = declare(self, [rendered_cluster], waiting).values()
        self.deleted_with = None if spec.existing else self.cluster
        theirs = self.cluster.private_cluster_config.apply(_private_nodes) if spec.existing else True
        self.private_nodes = pulumi.Output.from_input(theirs)
        self._addresses(access)
        self.name = self.cluster.name
        # With the id: what is in the cluster depends on the resource that makes it, and goes before it.
        kubeconfig = pulumi.Output.all(self.endpoint, self.ca_certificate, known_id).apply(
            lambda parts: json.dumps(cluster_kubeconfig(spec.name, *parts[:2]), sort_keys=True)
        )
        self.kubeconfig = pulumi.Output.secret(kubeconfig)
        own_nodes = not (autopilot or spec.existing)
        self.system_pool = self._system_pool(name, project, spec, labels, deletion_protection) if own_nodes else None
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=kubeconfig,
            cluster_identifier=known_id,
            # A worker's kubeconfig is rotated in place: the manager never is without it.
            enable_secret_mutable=True,
            upsert_existing_objects=spec.upsert_existing_objects or None,
            # Fields of an object that is taken over are their former owner's, and would be in conflict.
            enable_patch_force=spec.upsert_existing_objects or None,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.system_pool] if self.system_pool else []),
        )
        self._give_out()

    @classmethod
    @checked
    def get(cls, name: str, identifier: str, *, opts: pulumi.ResourceOptions | None = None) -> Self:
        """A cluster that exists, `projects/P/locations/L/clusters/N`: it is read, and nothing is made for it.

        `L` is its region, or its zone.

        Raises:
            SpecError: the identifier names something else.
        """
        project, location, cluster = parts_of_id(f"{cls.__name__} {name}", identifier, CLUSTER_ID)
        # As for Autopilot, the nodes' account is the cluster's own: no pools are added.
        entry = ClusterEntry(name=cluster, role=cls.role, region=region_at(location), existing=True, mode="Autopilot")
        return cls(name, entry, project=project, existing_id=identifier, opts=opts)

    def _addresses(self, access: ControlPlaneAccess) -> None:
        cluster = self.cluster
        if access.dns:
            name = cluster.control_plane_endpoints_config.apply(_dns_name)
            self.endpoint = pulumi.Output.all(name, cluster.endpoint).apply(lambda found: str(found[0] or found[1]))
            self.internal_endpoint = self.endpoint
        else:
            private = cluster.private_cluster_config.apply(lambda config: config.private_endpoint if config else None)
            self.endpoint = cluster.endpoint
            self.internal_endpoint = pulumi.Output.all(private, cluster.endpoint).apply(
                lambda found: str(found[0] or found[1])
            )
        authority = cluster.master_auth.apply(lambda auth: _authority(self.cluster_name, auth))
        self.ca_certificate = pulumi.Output.all(self.endpoint, authority).apply(lambda parts: server_ca(*parts))

    def _system_pool(
        self,
        name: str,
        project: pulumi.Input[str],
        spec: ClusterEntry,
        labels: "Labels | None",
        protection: bool,
    ) -> NodePool:
        """Zones are the cluster's. No taint: GKE's own pods, Kueue and JobSet tolerate none."""
        return _SystemPool(
            f"{name}/system",
            system_pool_entry(spec),
            cluster_spec=spec,
            project=project,
            cluster=self.cluster.name,
            service_account=self.node_service_account,
            deletion_protection=protection,
            labels=labels,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=self.cluster),
        )


def _access_problems(where: str, access: ControlPlaneAccess | None) -> Iterator[Problem]:
    """What the rules of the file say of the networks that reach the cluster, as far as they are known."""
    if not isinstance(access, ControlPlaneAccess):
        return
    known_cidrs = {name: cidr for name, cidr in access.networks.items() if isinstance(cidr, str)}
    if len(known_cidrs) == len(access.networks):
        way = "DnsEndpoint" if access.dns else "AuthorizedNetworks"
        networks = [AuthorizedNetwork(name, cidr) for name, cidr in known_cidrs.items()]
        section = NetworkArgs.model_construct(control_plane_access=way, authorized_networks=networks)
        yield from problems_in(section, f"{where}.access")


class ManagerCluster(GkeCluster):
    """The cluster that jobs are submitted to; it runs Kueue and no jobs."""

    role = "manager"


class WorkerCluster(GkeCluster):
    """A cluster that runs the jobs a manager sends to it."""

    role = "worker"


class StandaloneCluster(GkeCluster):
    """A cluster that runs the jobs submitted to it, without MultiKueue."""

    role = "standalone"


class _SystemPool(NodePool):
    """The pool that Kueue and the rest of the system run on."""

    in_file = False


def _identifier(project: pulumi.Input[str], spec: ClusterEntry) -> Any:
    return joined("projects/", project, f"/locations/{spec.region}/clusters/{spec.name}")


def _same_cluster(name: str, identifier: str, given_identifier: str) -> str:
    """`given_identifier`, which is the id of the cluster. Raises RunError, from within Pulumi."""
    for problem in _other_cluster(name, identifier, given_identifier):
        raise pulumi.RunError(problem.coded)
    return given_identifier


def _other_cluster(name: str, identifier: str, given_identifier: str) -> Iterator[Problem]:
    """An id that is not that of the cluster, in its region or in a zone of it."""
    parts = given_identifier.split("/")
    if "/".join([*parts[:3], *map(region_at, parts[3:4]), *parts[4:]]) != identifier:
        wrong = f"is {identifier} by its entry, but the program gives {given_identifier}"
        yield PROGRAM.at(f"cluster {name}", wrong, "correct project, region or name, or pass another id")


def _dns_name(endpoints: "gcp.container.outputs.ClusterControlPlaneEndpointsConfig | None") -> str | None:
    dns = endpoints.dns_endpoint_config if endpoints else None
    return dns.endpoint or None if dns and dns.allow_external_traffic else None


def _authority(name: str, auth: "gcp.container.outputs.ClusterMasterAuth | None") -> str:
    if auth is None:
        raise RuntimeError(f"cluster {name}: GKE answered no certificate authority; look at it, or {IN_A_TEST}")
    return str(auth.cluster_ca_certificate)


def _private_nodes(config: "gcp.container.outputs.ClusterPrivateClusterConfig | None") -> bool:
    return bool(config and config.enable_private_nodes)


def _service_account(node_config: "gcp.container.outputs.ClusterNodeConfig | None") -> str:
    """The account of the nodes of a cluster that exists."""
    return (node_config and node_config.service_account) or "default"
