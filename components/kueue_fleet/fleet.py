"""A whole fleet: the network, what is reserved, every cluster with its node pools, and Kueue's objects on each.

What exists on which cluster, and every object, is decided by `objects`; here it is only put in order, so that each
thing is made after what it needs and destroyed before it. What is inside a cluster is in
`kueue_fleet.kueue_components.cluster_contents`.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Self, TypeVar, Unpack

import pulumi

from kueue_admission.kernel import SpecError, errors_of
from kueue_admission.kernel.form_rules import MISSING
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.component import Component
from kueue_fleet.fleet_file import (
    ClusterEntry,
    FleetSpec,
    NodePoolEntry,
    check_dates,
    check_fleet,
)
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.fleet_file.controller_image import built_image
from kueue_fleet.fleet_file.model.resolved_pools import resolve_pool
from kueue_fleet.fleet_file.parse import PULUMI_KEY
from kueue_fleet.fleet_inputs import (
    FleetInputs,
    account_addresses,
    check_accounts,
    check_existing,
    check_image,
    check_kubernetes,
    check_network,
    check_project,
    check_secrets,
    known_project,
    read_spec,
)
from kueue_fleet.gcp_components.cloud_resources import declare_part
from kueue_fleet.gcp_components.cluster import GkeCluster, ManagerCluster, StandaloneCluster, WorkerCluster
from kueue_fleet.gcp_components.controller_image import ControllerImage
from kueue_fleet.gcp_components.dashboards import Dashboards
from kueue_fleet.gcp_components.gke_kubeconfig import merge_kubeconfigs
from kueue_fleet.gcp_components.identity import GrafanaIdentity, ManagerIdentity, MemberAccess, TeamIdentity
from kueue_fleet.gcp_components.network import AcceleratorNetworks, Network, NetworkIds, existing_network
from kueue_fleet.gcp_components.node_pool import NodePool
from kueue_fleet.gcp_components.reserved_capacity import ReservedCapacity
from kueue_fleet.gcp_components.services import ProjectServices
from kueue_fleet.gcp_components.storage import TeamStorage
from kueue_fleet.google.parts import CLOUD_PARTS, Surroundings, labels_of
from kueue_fleet.google.resources import (
    api_arguments,
    capacity_arguments,
    cluster_arguments,
    dashboard_arguments,
    network_arguments,
    pool_makers,
    pools_of,
    reservation_of,
    team_arguments,
)
from kueue_fleet.in_programs import below_parent
from kueue_fleet.kueue_components.cluster_contents import ClusterConnection, ClusterContents
from kueue_fleet.kueue_components.plain_cluster import KubernetesCluster, PlainCluster
from kueue_fleet.kueue_components.team_secrets import known_secrets
from kueue_fleet.program.handed_out import hand_out

CONFIG: Final = PRODUCT
"""Namespace of the stack's config."""
_CLUSTER_CLASSES: Mapping[str, type[GkeCluster]] = {
    "manager": ManagerCluster,
    "worker": WorkerCluster,
    "standalone": StandaloneCluster,
}

_OF_CLOUD_PARTS: Mapping[str, Callable[..., Component]] = {
    "storage": TeamStorage,
    "members": MemberAccess,
    "manager": ManagerIdentity,
    "grafana": GrafanaIdentity,
}
"""The components of parts that programs can declare alone."""
_Part = TypeVar("_Part", bound=Component)


def spec_from_config(*, as_published: bool = False) -> FleetSpec:
    """The checked fleet in the stack's config `kueue-fleet:fleet`.

    Raises:
        pulumi.RunError: there is none, or with every problem, each with the code that `kueue-fleet explain` knows.
    """
    data = pulumi.Config(CONFIG).get_object("fleet")
    if data is None:
        file = f"Pulumi.{pulumi.get_stack()}.yaml"
        fix = f"write the fleet below config: and {PULUMI_KEY}: of {file}, as kueue-fleet init does"
        raise pulumi.RunError(MISSING.at(PULUMI_KEY, "is missing", fix).coded)
    try:
        return read_spec(data, as_published=as_published)
    except SpecError as refused:
        raise _unusable(refused) from None


def _unusable(refusal: SpecError) -> pulumi.RunError:
    problems = "\n".join(f"  {problem.coded}" for problem in errors_of(refusal.problems))
    return pulumi.RunError(f"the fleet in {CONFIG}:fleet cannot be used:\n{problems}")


class Fleet(Component):
    """A manager with its workers, or one standalone cluster, with Kueue and its queues on them."""

    judges_whole = True

    spec: FleetSpec
    """What was declared, with calendar pools open or closed as they are now."""
    image: ControllerImage | None
    """The image of the fleet's own controller, unless the file or the program gives one, or there is no controller."""
    services: ProjectServices | None
    """The APIs that the fleet enables, unless the file says that it does not."""
    network: Network | NetworkIds | None
    """The VPC of the clusters that the fleet makes, if it makes any."""
    capacity: ReservedCapacity | None
    """Reservations and commitments, if the fleet makes any."""
    clusters: dict[str, GkeCluster]
    """The clusters of GKE by name."""
    plain_clusters: dict[str, PlainCluster]
    """The other clusters by name."""
    accelerator_networks: dict[str, AcceleratorNetworks]
    """Networks for GPUs that the fleet makes, by cluster."""
    node_pools: dict[tuple[str, str], NodePool]
    """The file's node pools, by cluster and name."""
    contents: dict[str, ClusterContents]
    """What is inside each cluster, by the cluster's name."""
    team_identities: dict[str, TeamIdentity]
    """Google service accounts that are made for teams, by team."""
    grafana_identity: GrafanaIdentity | None
    """The account by which the fleet's Grafana reads metrics, if there is one."""
    manager_identity: ManagerIdentity | None
    """The Google accounts by which the manager reaches the workers; None: it has tokens."""
    parts: "dict[str, Component]"
    """The other parts that the fleet has in Google Cloud, such as `storage`, by their names in `google.parts`."""
    storage: TeamStorage | None
    """The data of teams, if the file has some."""
    member_access: MemberAccess | None
    """By what the members of teams connect to the clusters, if a team has members."""
    dashboards: Dashboards | None
    """Dashboard and alerts, if the fleet asks for them."""
    kubeconfig: pulumi.Output[str]
    """Kubeconfig with a context for each cluster, named like it, of GKE or that the program gives; JSON, secret; the
    manager's is current."""

    def __init__(
        self,
        name: str,
        spec: FleetSpec | dict[str, Any],
        *,
        opts: pulumi.ResourceOptions | None = None,
        **inputs: Unpack[FleetInputs],
    ) -> None:
        """Declare the fleet, and log the warnings about it, those about dates too.

        The Pulumi name of everything in the fleet begins with `name`, such as `name/worker-a`. Below a parent, `name`
        itself begins with the parent's name, so that a component that makes a fleet can be used twice: `fleet` becomes
        `parent/fleet`, and `parent-fleet` stays. Aliases keep resources that an earlier release made under other names:
        run `pulumi up` once before you add a second fleet with clusters of the same names to the program, or Pulumi
        refuses both.

        `spec` may be plain data in the spelling of fleet files. `inputs`: see `FleetInputs`.

        Raises:
            SpecError: `spec` breaks rules that `parse_fleet` checks; it lists all of them.
        """
        project, network = inputs.get("project"), inputs.get("network")
        hand_out(name, spec, project)
        if not isinstance(spec, FleetSpec):
            spec = read_spec(spec, as_published=bool(inputs.get("as_published")))
        accounts, existing = inputs.get("node_service_accounts") or {}, inputs.get("existing_clusters") or {}
        connections = inputs.get("kubernetes_clusters") or {}
        team_secrets, controller_image = inputs.get("team_secrets"), inputs.get("controller_image")
        if isinstance(project, str) and not any(check_project(project)):
            spec = spec.model_copy(update={"project": project})
        problems = [
            *check_project(project),
            *check_fleet(spec),
            *check_network(spec, network),
            *check_accounts(spec, accounts),
            *check_existing(spec, existing),
            *check_kubernetes(spec, connections),
            *check_secrets(spec, team_secrets),
            *check_image(spec, controller_image),
        ]
        if inputs.get("as_published"):
            problems = [problem.as_published() for problem in problems]
        if errors_of(problems):
            raise SpecError(problems)
        short_names = name == spec.name
        name, opts = below_parent(name, opts)
        super().__init__(name, opts)
        now = datetime.now(UTC)  # noqa: TID251  (a program runs once, and now)
        for warning in (*problems, *check_dates(spec, now.date())):
            pulumi.log.warn(warning.coded, self)
        spec = fleet_at(spec, now)
        self.spec = spec
        self._prefix = _parts_begin(name)
        self._short_names = short_names
        secrets = (
            None if team_secrets is None else known_secrets(f"Fleet {name}.team_secrets", spec.teams, team_secrets)
        )
        self._team_secrets = secrets
        self._node_service_accounts, self._existing_clusters = accounts, existing
        self._project = spec.project if project is None or isinstance(project, str) else known_project(project)
        self._labels = labels_of(spec)
        self.services = self._services(name)
        self.image = self._image(name) if controller_image is None else None
        self._controller_image = self.image.reference if self.image else controller_image
        self.network = (
            network or existing_network(spec, self._project) or (self._network() if spec.new_clusters else None)
        )
        self.capacity = self._capacity(name)
        self.clusters = {entry.name: self._cluster(entry) for entry in spec.gke_clusters}
        self.plain_clusters = {
            entry.name: self._plain_cluster(entry, connections)
            for entry in spec.clusters
            if entry.name not in self.clusters
        }
        self.accelerator_networks = {
            entry.name: networks
            for entry in spec.clusters
            if (networks := self._accelerator_networks(entry)) is not None
        }
        self.node_pools = {
            (entry.name, pool.name): self._node_pool(entry, pool)
            for entry in spec.clusters
            for pool in pools_of(spec, entry)
        }
        self.team_identities = self._team_identities(name)
        self.parts = self._cloud_parts(name)
        self.storage, self.member_access = self._part(TeamStorage), self._part(MemberAccess)
        self.manager_identity, self.grafana_identity = self._part(ManagerIdentity), self._part(GrafanaIdentity)
        self._fill()
        self.dashboards = self._dashboards(name)
        current_first = sorted(spec.clusters, key=lambda entry: entry.role != "manager")
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(*(self._every_cluster[entry.name].kubeconfig for entry in current_first)).apply(
                lambda texts: json.dumps(
                    merge_kubeconfigs([json.loads(text) for text in texts if text]), sort_keys=True
                )
            )
        )
        self._give_out()

    @classmethod
    def from_config(
        cls, name: str | None = None, *, opts: pulumi.ResourceOptions | None = None, **inputs: Unpack[FleetInputs]
    ) -> Self:
        """Declare the fleet of the stack's config: `kueue-fleet:fleet`, and what else the config has for it.

        Those are `kueue-fleet:teamSecrets` and `kueue-fleet:asPublished`, unless `inputs` have them. `name` is by
        default the fleet's.

        Raises:
            pulumi.RunError: with every problem, each with the code that `kueue-fleet explain` knows.
        """
        config = pulumi.Config(CONFIG)
        fleet_inputs = FleetInputs(as_published=bool(config.get_bool("asPublished")))
        if (secrets := config.get_secret_object("teamSecrets")) is not None:
            fleet_inputs["team_secrets"] = secrets
        fleet_inputs |= inputs
        spec = spec_from_config(as_published=fleet_inputs["as_published"])
        try:
            return cls(name or spec.name, spec, opts=opts, **fleet_inputs)
        except SpecError as refused:
            raise _unusable(refused) from None

    @property
    def endpoints(self) -> dict[str, pulumi.Output[str]]:
        """Address of each cluster's API server, by the cluster's name."""
        return {name: cluster.endpoint for name, cluster in self._every_cluster.items()}

    @property
    def _every_cluster(self) -> dict[str, GkeCluster | PlainCluster]:
        return {**self.clusters, **self.plain_clusters}

    @property
    def network_link(self) -> pulumi.Output[str] | None:
        """Self link of the VPC network, or its name with the project's; none where all clusters were there."""
        return pulumi.Output.from_input(self.network.self_link) if self.network else None

    @property
    def subnetwork_links(self) -> dict[str, pulumi.Output[str]]:
        """Self link of each region's subnet, or its name with project and region."""
        links = self.network.subnetworks if self.network else {}
        return {region: pulumi.Output.from_input(link) for region, link in links.items()}

    @property
    def node_service_accounts(self) -> dict[str, pulumi.Output[str]]:
        """Address of the nodes' Google service account of each cluster, to allow it images and buckets."""
        return {name: cluster.node_service_account for name, cluster in self.clusters.items()}

    @property
    def team_service_accounts(self) -> dict[str, pulumi.Output[str]]:
        """Address of the Google service account of each team that has one."""
        emails = {team: identity.email for team, identity in self.team_identities.items()}
        existing = {team.name: team.existing_google_service_account for team in self.spec.teams}
        return emails | {name: pulumi.Output.from_input(email) for name, email in existing.items() if email}

    @property
    def queues(self) -> dict[str, list[str]]:
        """Names of the LocalQueues that jobs are submitted to, by namespace."""
        queues_by_team: dict[str, list[str]] = {}
        for team in self.spec.teams:
            for namespace in team.namespace_names:
                queues_by_team.setdefault(namespace, []).extend(queue.name for queue in team.local_queues)
        for queue in self.spec.local_queues:
            queues_by_team.setdefault(queue.namespace, []).append(queue.name)
        return queues_by_team

    @property
    def dashboard_url(self) -> pulumi.Output[str] | None:
        """Where the console shows the fleet's dashboard, if there is one."""
        return self.dashboards.url if self.dashboards else None

    def _opts(self, earlier_name: str, *depends_on: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options of a child; its own children inherit the alias, as their names begin with its name.

        An earlier release gave short names to a fleet under its own name only: another one has no claim to them.
        """
        aliases = [pulumi.Alias(name=earlier_name)] if self._short_names else None
        return self._child(*depends_on, aliases=aliases)

    def _child(self, *depends_on: pulumi.Resource, aliases: list[pulumi.Alias] | None = None) -> pulumi.ResourceOptions:
        """Options of a child, which comes after the APIs that it needs."""
        services = [self.services] if self.services else []
        return pulumi.ResourceOptions(parent=self, depends_on=[*services, *depends_on], aliases=aliases)

    def _network(self) -> Network:
        return Network(
            f"{self._prefix}{self.spec.network_name}",
            project=self._project,
            **network_arguments(self.spec),
            opts=self._opts(self.spec.network_name),
        )

    def _services(self, name: str) -> ProjectServices | None:
        if not (self.spec.enable_apis and self.spec.gke_clusters):
            return None
        opts = pulumi.ResourceOptions(parent=self)
        return ProjectServices(f"{name}/apis", project=self._project, **api_arguments(self.spec), opts=opts)

    def _image(self, name: str) -> ControllerImage | None:
        image_build = built_image(self.spec)
        if image_build is None:
            return None
        return ControllerImage(
            f"{name}/controller-image", image_build, project=self._project, labels=self._labels, opts=self._child()
        )

    def _capacity(self, name: str) -> ReservedCapacity | None:
        spec = self.spec
        if not (spec.reservations or spec.future_reservations or spec.commitments):
            return None
        return ReservedCapacity(name, project=self._project, **capacity_arguments(spec), opts=self._child())

    def _plain_cluster(self, entry: ClusterEntry, kubernetes_clusters: Mapping[str, KubernetesCluster]) -> PlainCluster:
        return PlainCluster(
            f"{self._prefix}{entry.name}", entry, kubernetes_clusters.get(entry.name), opts=self._child()
        )

    def _cluster(self, entry: ClusterEntry) -> GkeCluster:
        network = self.network
        place: dict[str, Any] = {}
        elsewhere = self.spec.project_of(entry.name) != self.spec.project
        egress: list[pulumi.Resource] = []
        if network is not None and not entry.existing:
            place = cluster_arguments(self.spec, entry, network)
            # Private nodes pull their images through Cloud NAT.
            egress = [network.egress[entry.region]] if isinstance(network, Network) else []
        return _CLUSTER_CLASSES[entry.role](
            f"{self._prefix}{entry.name}",
            entry,
            project=entry.project or self._project,
            images_of=self._project if elsewhere else None,
            node_service_account=self._node_service_accounts.get(entry.name),
            existing_id=self._existing_clusters.get(entry.name),
            deletion_protection=self.spec.protects(entry.name),
            labels=self._labels,
            opts=self._opts(entry.name, *egress),
            **place,
        )

    def _accelerator_networks(self, entry: ClusterEntry) -> AcceleratorNetworks | None:
        """Before the pools, and apart from their cluster, whose nodes they outlive."""
        pools = [pool for pool in pools_of(self.spec, entry) if pool.on(entry.name).accelerator_networks is not None]
        if not any(network.made for pool in pools for network in resolve_pool(pool, entry).networks):
            return None
        name = f"{self._prefix}{entry.name}/accelerator-networks"
        project = entry.project or self._project
        return AcceleratorNetworks(name, pools, cluster_spec=entry, project=project, opts=self._child())

    def _node_pool(self, entry: ClusterEntry, pool: NodePoolEntry) -> NodePool:
        cluster = self.clusters[entry.name]
        reservation_name = reservation_of(pool, entry)
        networks = self.accelerator_networks.get(entry.name)
        own = pool.on(entry.name).accelerator_networks is not None
        return NodePool(
            f"{self._prefix}{entry.name}/{pool.name}",
            pool,
            cluster_spec=entry,
            project=entry.project or self._project,
            cluster=cluster.cluster.name,
            service_account=cluster.node_service_account,
            private_nodes=cluster.private_nodes,
            deletion_protection=self.spec.protects(entry.name),
            labels=self._labels,
            opts=pulumi.ResourceOptions(
                parent=cluster,
                depends_on=[
                    *(self.capacity.named(reservation_name) if self.capacity and reservation_name else []),
                    *([networks] if networks and own else []),
                ],
                deleted_with=cluster.deleted_with,
            ),
        )

    def _team_identities(self, name: str) -> dict[str, TeamIdentity]:
        """Accounts of teams; they are allowed to pods once the project has a Workload Identity pool."""
        after = [self.clusters[pool_maker].cluster for pool_maker in pool_makers(self.spec)]
        return {
            team: TeamIdentity(f"{name}/{team}", project=self._project, after=after, **arguments, opts=self._child())
            for team, arguments in team_arguments(self.spec).items()
        }

    def _cloud_parts(self, name: str) -> dict[str, Component]:
        own = self.network.network.id if isinstance(self.network, Network) else None
        surroundings = Surroundings(
            self.team_service_accounts,
            network=own or (self.network.self_link if self.network else ""),
            own_network=own is not None,
            pool_makers=[self.clusters[pool_maker].cluster for pool_maker in pool_makers(self.spec)],
        )
        return {
            part.name: _OF_CLOUD_PARTS.get(part.name, partial(declare_part, part))(
                f"{name}/{part.name}", project=self._project, **arguments, opts=self._child()
            )
            for part in CLOUD_PARTS
            if (arguments := part.arguments(self.spec, surroundings))
        }

    def _part(self, component: type[_Part]) -> _Part | None:
        return next((part for part in self.parts.values() if isinstance(part, component)), None)

    def _fill(self) -> None:
        """What is inside the clusters: the manager's last, since it connects to the workers."""
        self.contents = {}
        for entry in sorted(self.spec.clusters, key=lambda entry: entry.role == "manager"):
            workers = {name: member for name, member in self.contents.items() if entry.role == "manager"}
            self.contents[entry.name] = ClusterContents(
                self.spec,
                self._connection(entry.name),
                workers,
                team_secrets=self._team_secrets,
                controller_image=self._controller_image,
                addresses={
                    **account_addresses(self.spec, self._project, self.team_identities),
                    **(self.storage.addresses if self.storage else {}),
                },
                after=[self.manager_identity] if self.manager_identity else [],
                project=self._project,
            )

    def _connection(self, name: str) -> ClusterConnection:
        cluster, pulumi_name = self._every_cluster[name], f"{self._prefix}{name}"
        if isinstance(cluster, PlainCluster):
            return ClusterConnection(
                name,
                pulumi_name=pulumi_name,
                component=cluster,
                cluster=None,
                provider=cluster.provider,
                endpoint=cluster.endpoint,
                ca_certificate=cluster.ca_certificate,
                own_authority=True,
                tls_server_name=cluster.tls_server_name,
                proxy_url=cluster.proxy_url,
            )
        return ClusterConnection(
            name,
            pulumi_name=pulumi_name,
            component=cluster,
            cluster=cluster.deleted_with,
            provider=cluster.provider,
            endpoint=cluster.internal_endpoint,
            ca_certificate=cluster.ca_certificate,
            kubernetes_version=cluster.cluster.master_version,
        )

    def _dashboards(self, name: str) -> Dashboards | None:
        spec = self.spec.observability
        if not (spec.dashboard or spec.alerts.enabled):
            return None
        return Dashboards(name, spec, project=self._project, **dashboard_arguments(self.spec), opts=self._child())


def _parts_begin(name: str) -> str:
    """The prefix of the Pulumi names of a fleet's parts; tests put that of an earlier release in its place."""
    return f"{name}/"
