"""Everything that a fleet has inside one cluster, put in order.

What exists on which cluster, and every object, is decided by `objects`. Everything uses the cluster's own provider,
hangs below the cluster, and goes with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pulumi

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec, kueue_helm_values
from kueue_fleet.fleet_file.model.accounts import grafana_account_address
from kueue_fleet.kueue_components import platform
from kueue_fleet.kueue_components.admission_checks import AdmissionCheck, ProvisioningRequestCheck
from kueue_fleet.kueue_components.admission_controller import AdmissionController
from kueue_fleet.kueue_components.applied_objects import is_kueue_object
from kueue_fleet.kueue_components.component import OrderedObjects, part_component
from kueue_fleet.kueue_components.credentials import ClusterProfiles, KueuePlugin, WorkerAccess
from kueue_fleet.kueue_components.install import (
    GrafanaInstall,
    JobSetInstall,
    KueueInstall,
    NvidiaDraDriverInstall,
    OperatorInstall,
)
from kueue_fleet.kueue_components.multikueue import MultiKueue
from kueue_fleet.kueue_components.platform import GpuDrivers
from kueue_fleet.kueue_components.queues import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    Topology,
    WorkloadPriorityClass,
)
from kueue_fleet.kueue_components.team import Namespaces, Team
from kueue_fleet.kueue_components.team_secrets import TeamSecrets
from kueue_fleet.objects import ClusterObject, objects_on
from kueue_fleet.objects.charts import charts_on
from kueue_fleet.objects.cluster_profiles import kueue_patches
from kueue_fleet.objects.parts import PARTS, ClusterPart

_Made = TypeVar("_Made", bound=pulumi.Resource)
_ALONE = {
    component_type.kind: component_type
    for component_type in (AdmissionCheck, Cohort, PriorityClass, ResourceFlavor, Topology, WorkloadPriorityClass)
}
"""Components of one object each, by its kind."""
_OF_PARTS: "dict[ClusterPart, type[OrderedObjects]]" = {
    var.part: var
    for var in vars(platform).values()
    if isinstance(var, type) and issubclass(var, OrderedObjects) and var.part is not None
}
"""The components of parts that programs can declare alone."""


@dataclass(frozen=True)
class ClusterConnection:
    """How to connect to a cluster that exists, or will exist."""

    name: str
    """The cluster's name in the fleet."""
    pulumi_name: str
    """How Pulumi names of its contents begin."""
    component: pulumi.Resource
    """What its contents hang below."""
    cluster: pulumi.Resource | None
    """What its contents go with when it is deleted; None: it stays, and they are deleted one by one."""
    provider: pulumi.ProviderResource
    """Provider for this cluster alone."""
    endpoint: pulumi.Output[str]
    """Address of its API server for the fleet's other clusters, without a scheme."""
    ca_certificate: pulumi.Output[str | None]
    """Authority that signs the certificate there, base64 PEM; None: a public one."""
    own_authority: bool = False
    """Whether, without `ca_certificate`, the cluster's own authority signs it instead of a public one."""
    tls_server_name: "pulumi.Output[str | None] | None" = None
    """Name in the certificate there; default: the host of the address."""
    proxy_url: "pulumi.Output[str | None] | None" = None
    """Proxy through which the other clusters reach it; default: none."""
    kubernetes_version: "pulumi.Output[str] | None" = None
    """Version of its API server; None: not known, which counts as new."""


class ClusterContents:
    """What a fleet has inside one cluster; not a component of its own, its parts hang below the cluster."""

    kueue: KueueInstall
    """The Kueue installation."""
    namespaces: Namespaces | None
    """Namespaces that belong to no team, if there are any."""
    teams: dict[str, Team]
    multi_kueue: MultiKueue | None = None
    """On a manager: its connection to the workers."""
    kueue_plugin: KueuePlugin | None = None
    """On a manager: what gives its Kueue credentials for the workers, unless they are tokens."""
    access: WorkerAccess | None = None
    """On a worker: what it grants to the manager."""
    controller_access: WorkerAccess | None = None
    """On a worker: what it grants to the fleet's own controller, if there is one."""
    controller: AdmissionController | None = None
    """On a manager: the fleet's own controller, if there is one."""
    grafana: GrafanaInstall | None
    """Grafana, if the fleet installs it here."""
    dra_driver: NvidiaDraDriverInstall | None
    """NVIDIA's DRA driver, if the fleet has it and a node pool here is for it."""
    gpu_drivers: GpuDrivers | None
    """The driver installer, if a node pool of the cluster leaves drivers to the fleet."""
    parts: dict[str, OrderedObjects]
    """The other parts that the cluster has, such as `monitoring` and `storage`, by their names in `objects.parts`."""

    def __init__(
        self,
        spec: FleetSpec,
        cluster: ClusterConnection,
        workers: "Mapping[str, ClusterContents]",
        team_secrets: "TeamSecrets | None" = None,
        controller_image: "pulumi.Input[str] | None" = None,
        addresses: "Mapping[str, pulumi.Input[str]] | None" = None,
        after: "Sequence[pulumi.Resource]" = (),
        project: "pulumi.Input[str] | None" = None,
    ) -> None:
        """Declare everything inside `cluster`; `workers` are the workers' contents if it is the manager.

        `team_secrets` has what is in the teams' Secrets, by name and key; `controller_image` takes the place of the
        image in the file, and `addresses` that of addresses of Google accounts in the objects. `after` are the Google
        accounts that pods act as; `project` takes the place of the file's.
        """
        self._spec = spec
        self._team_secrets = team_secrets
        self._controller_image = controller_image
        self._after = after
        self._cluster = cluster
        self._addresses = addresses or {}
        self._project = project or spec.project
        self._objects = objects_on(spec, cluster.name)
        if self._addresses:
            self._objects = [
                replace(manifest, manifest=self._addressed(manifest.manifest)) for manifest in self._objects
            ]
        self._charts = {chart.section: chart for chart in charts_on(spec, cluster.name)}
        self._made: dict[str, pulumi.Resource] = {}
        self._install()
        self._platform()
        self._declare_alone("PriorityClass", "WorkloadPriorityClass", "Topology", "ResourceFlavor", "AdmissionCheck")
        self._checks(workers)
        self._declare_alone("Cohort", "ClusterQueue")
        self._teams()
        self._declare_alone("LocalQueue")
        self._access(workers)

    @property
    def ready(self) -> list[pulumi.Resource]:
        """What must stand before jobs can be sent here."""
        return [self.kueue.release, *self.cluster_queues.values(), *self.teams.values(), *self.local_queues]

    @property
    def topologies(self) -> dict[str, Topology]:
        """The Topologies by name."""
        return self._by_name(Topology)

    @property
    def flavors(self) -> dict[str, ResourceFlavor]:
        """The ResourceFlavors by name."""
        return self._by_name(ResourceFlavor)

    @property
    def cohorts(self) -> dict[str, Cohort]:
        """The Cohorts by name."""
        return self._by_name(Cohort)

    @property
    def checks(self) -> dict[str, AdmissionCheck | ProvisioningRequestCheck]:
        """Admission checks by name, MultiKueue's too."""
        return {**self._by_name(AdmissionCheck), **self._by_name(ProvisioningRequestCheck)}

    @property
    def cluster_queues(self) -> dict[str, ClusterQueue]:
        """The ClusterQueues by name."""
        return self._by_name(ClusterQueue)

    @property
    def local_queues(self) -> list[LocalQueue]:
        """LocalQueues outside of teams."""
        return [component for component in self._made.values() if isinstance(component, LocalQueue)]

    def _by_name(self, kind: type[_Made]) -> dict[str, _Made]:
        return {
            key.partition("/")[2]: component for key, component in self._made.items() if isinstance(component, kind)
        }

    def _opts(self, *depends_on: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self._cluster.component,
            provider=self._cluster.provider,
            depends_on=list(depends_on),
            deleted_with=self._cluster.cluster,
        )

    def _name(self, *parts: str) -> str:
        """A Pulumi name that no object of another cluster has: names in a cluster cannot hold a slash."""
        return "/".join((self._cluster.pulumi_name, *parts))

    def _install(self) -> None:
        # Operators first: Kueue's webhooks do not hold up their pods yet, and Kueue finds their APIs when it starts.
        before: list[pulumi.Resource] = []
        take_over = self._spec.cluster(self._cluster.name).upsert_existing_objects
        protect = self._spec.protects(self._cluster.name)
        if definition := self._part("cluster-profiles"):
            # Kueue looks for it when it starts, and never again.
            before.append(ClusterProfiles(self._name("cluster-profiles"), definition, opts=self._opts()))
        if "jobSet" in self._charts:
            before.append(
                JobSetInstall(
                    self._name("jobset"),
                    self._spec.job_set,
                    deletion_protection=protect,
                    take_ownership=take_over,
                    opts=self._opts(),
                )
            )
        before += [
            OperatorInstall(
                self._name(self._charts[operator].release),
                operator,
                spec,
                deletion_protection=protect,
                take_ownership=take_over,
                opts=self._opts(*before),
            )
            for operator, spec in self._spec.operators.installed.items()
            if operator in self._charts
        ]
        self.dra_driver = None
        driver, chart = self._spec.nvidia_dra_driver, self._charts.get("nvidiaDraDriver")
        if driver is not None and chart is not None:
            self.dra_driver = NvidiaDraDriverInstall(
                self._name("nvidia-dra-driver"),
                driver,
                values=chart.values,
                deletion_protection=protect,
                take_ownership=take_over,
                opts=self._opts(*before),
            )
        self.kueue = KueueInstall(
            self._name("kueue"),
            self._spec.kueue_on(self._cluster.name),
            values=self._kueue_values(),
            deletion_protection=protect,
            take_ownership=take_over,
            opts=self._opts(*before),
        )

    def _kueue_values(self) -> "pulumi.Input[dict[str, Any]]":
        """Values of Kueue's chart. Only a dispatcher of the fleet's own makes them depend on the server's version."""
        spec, here = self._spec, self._cluster.name
        plain = dict(self._charts["kueue"].values)
        if self._cluster.kubernetes_version is None or plain == kueue_helm_values(spec, here, "1.0"):
            return plain
        return self._cluster.kubernetes_version.apply(lambda version: kueue_helm_values(spec, here, version))

    def _addressed(self, value: Any) -> Any:
        """A manifest, or a part of it, with the addresses that the program gives."""
        if isinstance(value, dict):
            return {key: self._addressed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._addressed(item) for item in value]
        return self._addresses.get(value, value) if isinstance(value, str) else value

    def _part(self, name: str) -> list[Manifest]:
        return [manifest.manifest for manifest in self._objects if manifest.part == name]

    def _platform(self) -> None:
        """Namespaces of no team, and what is not about queues."""
        self.namespaces = self.grafana = self.gpu_drivers = None
        if others := self._part("namespaces"):
            self.namespaces = Namespaces(self._name("namespaces"), others, opts=self._opts())
            self._made |= {f"Namespace/{name}": resource for name, resource in self.namespaces.objects.items()}
        if "grafana" in self._charts:
            address = grafana_account_address(self._spec)
            self.grafana = GrafanaInstall(
                self._name("grafana"),
                self._spec.observability.grafana,
                project=self._project,
                account=self._addresses.get(address, address),
                opts=self._opts(self.kueue.release),
            )
        for installer in self._part("gpu-drivers"):
            self.gpu_drivers = GpuDrivers(self._name("gpu-drivers"), installer, opts=self._opts())
        namespace = [self.grafana.namespace_object] if self.grafana else []
        self.parts = {}
        self._together({"": [], "kueue": [self.kueue.release], "grafana": namespace})

    def _together(self, after: Mapping[str, Sequence[pulumi.Resource]]) -> None:
        """The parts that come after any of these, in one component each."""
        for part in PARTS.values():
            if part.after is not None and part.after in after and (objects := self._part(part.name)):
                component = _OF_PARTS.get(part) or part_component(part)
                opts = self._opts(*after[part.after])
                self.parts[part.name] = component(self._name(part.name), objects, opts=opts)

    def _declare_alone(self, *kinds: str) -> None:
        """The objects of these kinds that are declared alone, each after what it needs."""
        for manifest in self._objects:
            if not manifest.part and manifest.manifest["kind"] in kinds:
                self._made[manifest.key] = self._declare(manifest)

    def _declare(self, cluster_object: ClusterObject) -> pulumi.Resource:
        kind, _, path = cluster_object.key.partition("/")
        needs = [self._made[key] for key in dict.fromkeys(cluster_object.needs) if key in self._made]
        before = [self.kueue.release, *needs] if is_kueue_object(cluster_object.manifest) else needs
        name, manifest = self._name(path), cluster_object.manifest
        if kind == "ClusterQueue":
            # A check of the fleet's own controller is Active once that runs, which needs the workers.
            return ClusterQueue(name, manifest, opts=self._opts(*before))
        if kind == "LocalQueue":
            queue = next(component for component in needs if isinstance(component, ClusterQueue))
            rest = [component for component in before if component is not queue]
            return LocalQueue(name, manifest, cluster_queue=queue, opts=self._opts(*rest))
        return _ALONE[kind](name, manifest, opts=self._opts(*before))

    def _checks(self, workers: "Mapping[str, ClusterContents]") -> None:
        """Checks that come with other objects."""
        for entry in self._spec.admission_checks:
            if self._part(f"check/{entry.name}"):
                provisioning_request_check = ProvisioningRequestCheck(
                    self._name(entry.name), entry, opts=self._opts(self.kueue.release)
                )
                self._made[f"AdmissionCheck/{entry.name}"] = provisioning_request_check
        if self._part("multikueue"):
            patches = [self._addressed(kueue_patch) for kueue_patch in kueue_patches(self._spec)]
            self.kueue_plugin = (
                KueuePlugin(self._name("kueue-plugin"), patches, opts=self._opts(self.kueue.release, *self._after))
                if patches
                else None
            )
            plugin = [self.kueue_plugin] if self.kueue_plugin else []
            self.multi_kueue = MultiKueue(
                self._name("multikueue"),
                self._spec,
                kubeconfigs={name: worker.access.kubeconfig for name, worker in workers.items() if worker.access},
                workers_ready={
                    name: [*worker.ready, *([worker.access] if worker.access else [])]
                    for name, worker in workers.items()
                },
                opts=self._opts(self.kueue.release, *plugin),
            )
            self._made |= {f"AdmissionCheck/{name}": check for name, check in self.multi_kueue.checks.items()}

    def _teams(self) -> None:
        self.teams = {}
        for team in self._spec.teams:
            # The component makes LocalQueues of the team's entry.
            objects = [manifest for manifest in self._part(f"team/{team.name}") if manifest["kind"] != "LocalQueue"]
            self.teams[team.name] = Team(
                self._name(team.name),
                team,
                objects=objects,
                cluster_queues=self.cluster_queues,
                secrets=self._team_secrets if self._spec.cluster(self._cluster.name).runs_jobs else None,
                opts=self._opts(self.kueue.release),
            )
            self._made |= {
                f"Namespace/{name}": namespace_resource
                for name, namespace_resource in self.teams[team.name].namespaces.items()
            }
        self._together({"teams": list(self.teams.values())})

    def _access(self, workers: "Mapping[str, ClusterContents]") -> None:
        """On a worker, what it grants; on the manager, the fleet's own controller."""
        namespaces = [*([self.namespaces] if self.namespaces else []), *self.teams.values()]
        if grants := self._part("multikueue-access"):
            self.access = self._worker_access("multikueue", grants, *namespaces)
        if grants := self._part("controller-access"):
            self.controller_access = self._worker_access("controller", grants, *namespaces)
        if objects := self._part("controller"):
            self.controller = AdmissionController(
                self._name("controller"),
                objects,
                kubeconfigs={
                    name: worker.controller_access.kubeconfig
                    for name, worker in workers.items()
                    if worker.controller_access is not None
                },
                image=self._controller_image,
                opts=self._opts(self.kueue.release, *namespaces, *([self.multi_kueue] if self.multi_kueue else [])),
            )

    def _worker_access(self, name: str, objects: list[Manifest], *depends_on: pulumi.Resource) -> WorkerAccess:
        return WorkerAccess(
            self._name(name),
            objects,
            cluster_name=self._cluster.name,
            endpoint=self._cluster.endpoint,
            ca_certificate=self._cluster.ca_certificate,
            own_authority=self._cluster.own_authority,
            tls_server_name=self._cluster.tls_server_name,
            proxy_url=self._cluster.proxy_url,
            opts=self._opts(self.kueue.release, *depends_on),
        )
