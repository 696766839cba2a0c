"""Everything that a fleet has inside one cluster, put in order.

What exists on which cluster, and every object, is decided by `objects`. Everything uses the cluster's own provider,
hangs below the cluster, and goes with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pulumi

from kueue_fleet.fleet_file import FleetSpec, cohorts_on, kueue_helm_values
from kueue_fleet.kueue.admission_checks import AdmissionCheck, ProvisioningRequestCheck
from kueue_fleet.kueue.admission_controller import AdmissionController
from kueue_fleet.kueue.credentials import WorkerAccess
from kueue_fleet.kueue.flavors import Cohort, ResourceFlavor, Topology
from kueue_fleet.kueue.gpu_drivers import GpuDrivers
from kueue_fleet.kueue.install import GrafanaInstall, JobSetInstall, KueueInstall
from kueue_fleet.kueue.monitoring import ManagedMonitoring
from kueue_fleet.kueue.multikueue import MultiKueue
from kueue_fleet.kueue.priorities import PriorityClass, WorkloadPriorityClass
from kueue_fleet.kueue.queues import ClusterQueue, LocalQueue
from kueue_fleet.kueue.run_duration import RunDurationPolicy
from kueue_fleet.kueue.team import Namespaces, Team
from kueue_fleet.kueue_api import Manifest
from kueue_fleet.kueue_api.manifests import TEAM_LABEL
from kueue_fleet.objects import (
    render_admission_check,
    render_assignment_check,
    render_cluster_queue,
    render_cohort,
    render_manager_flavor,
    render_namespaces,
    render_resource_flavor,
    render_worker_access,
)
from kueue_fleet.objects.controller import render_controller, render_controller_worker_access
from kueue_fleet.objects.drivers import render_driver_installer
from kueue_fleet.objects.monitoring import render_grafana, render_managed_monitoring
from kueue_fleet.objects.run_duration_policy import render_run_duration_policy
from kueue_fleet.objects.teams import render_team_objects

_T = TypeVar("_T")


@dataclass(frozen=True)
class ClusterConnection:
    """How to work in a cluster that is there, or will be."""

    name: str
    """The cluster's name in the fleet."""
    pulumi_name: str
    """How Pulumi names of its contents begin."""
    component: pulumi.Resource
    """What its contents hang below."""
    cluster: pulumi.Resource
    """What its contents go with when it is deleted."""
    provider: pulumi.ProviderResource
    """Provider for this cluster alone."""
    endpoint: pulumi.Output[str]
    """Address of its API server for the fleet's other clusters, without a scheme."""
    ca_certificate: pulumi.Output[str | None]
    """Authority that signs the certificate there, base64 PEM; None: a public one."""
    kubernetes_version: "pulumi.Output[str] | None" = None
    """Version of its API server; None: not known, which counts as new."""


class ClusterContents:
    """What a fleet has inside one cluster; not a component of its own, its parts hang below the cluster."""

    kueue: KueueInstall
    """The Kueue installation."""
    namespaces: Namespaces | None
    """Namespaces that belong to no team, if there are any."""
    topologies: dict[str, Topology]
    flavors: dict[str, ResourceFlavor]
    cohorts: dict[str, Cohort]
    checks: dict[str, AdmissionCheck | ProvisioningRequestCheck]
    """Admission checks by name, MultiKueue's too."""
    cluster_queues: dict[str, ClusterQueue]
    teams: dict[str, Team]
    local_queues: list[LocalQueue]
    """LocalQueues outside of teams."""
    multi_kueue: MultiKueue | None = None
    """On a manager: its connection to the workers."""
    access: WorkerAccess | None = None
    """On a worker: what it grants to the manager."""
    controller_access: WorkerAccess | None = None
    """On a worker: what it grants to the fleet's own controller, if there is one."""
    controller: AdmissionController | None = None
    """On a manager: the fleet's own controller, if there is one."""
    monitoring: ManagedMonitoring | None
    """What managed Prometheus reads, if the fleet asks for it."""
    grafana: GrafanaInstall | None
    """Prometheus and Grafana in the cluster, if the fleet asks for them."""
    gpu_drivers: GpuDrivers | None
    """The driver installer, if a node pool of the cluster leaves drivers to the fleet."""
    run_duration: RunDurationPolicy | None
    """What refuses jobs that are too long for DWS, if the fleet asks DWS for capacity."""

    def __init__(
        self,
        spec: FleetSpec,
        cluster: ClusterConnection,
        workers: "Mapping[str, ClusterContents]",
    ) -> None:
        """Declare everything inside `cluster`; `workers` are the workers' contents if it is the manager."""
        self._spec = spec
        self._cluster = cluster
        self._role = spec.cluster(cluster.name).role
        self._install()
        other = [namespace for namespace in render_namespaces(spec) if not _is_of_team(namespace)]
        self.namespaces = Namespaces(self._name("namespaces"), other, opts=self._opts()) if other else None
        self._monitoring()
        self._priorities()
        self._flavors()
        self._checks(workers)
        self._queues()
        if self._role == "worker":
            self._grant()
        self._controller(workers)

    @property
    def ready(self) -> list[pulumi.Resource]:
        """What must stand before jobs can be sent here."""
        return [self.kueue.release, *self.cluster_queues.values(), *self.teams.values(), *self.local_queues]

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
        # JobSet first: its pods are not yet held up by Kueue's webhooks, and Kueue finds JobSet's API when it starts.
        before: list[pulumi.Resource] = []
        if self._spec.job_set.enabled:
            before.append(
                JobSetInstall(
                    self._name("jobset"),
                    self._spec.job_set,
                    deletion_protection=self._spec.protects(self._cluster.name),
                    opts=self._opts(),
                )
            )
        self.kueue = KueueInstall(
            self._name("kueue"),
            self._spec.kueue,
            values=self._kueue_values(),
            deletion_protection=self._spec.protects(self._cluster.name),
            opts=self._opts(*before),
        )

    def _kueue_values(self) -> "pulumi.Input[dict[str, Any]]":
        """Values of Kueue's chart. Only a dispatcher of the fleet's own makes them depend on the server's version."""
        spec, here = self._spec, self._cluster.name
        plain = kueue_helm_values(spec, here)
        if self._cluster.kubernetes_version is None or plain == kueue_helm_values(spec, here, "1.0"):
            return plain
        return self._cluster.kubernetes_version.apply(lambda version: kueue_helm_values(spec, here, version))

    def _monitoring(self) -> None:
        here = self._cluster.name
        self.monitoring = self.grafana = self.gpu_drivers = None
        managed = render_managed_monitoring(self._spec, here)
        if managed:
            self.monitoring = ManagedMonitoring(self._name("monitoring"), managed, opts=self._opts(self.kueue.release))
        settings = self._spec.observability.grafana
        if settings.enabled:
            self.grafana = GrafanaInstall(
                self._name("grafana"),
                settings,
                objects=render_grafana(self._spec),
                opts=self._opts(self.kueue.release),
            )
        for installer in render_driver_installer(self._spec, here):
            self.gpu_drivers = GpuDrivers(self._name("gpu-drivers"), installer, opts=self._opts())
        policy = render_run_duration_policy(self._spec, here)
        self.run_duration = RunDurationPolicy(self._name("run-duration"), policy, opts=self._opts()) if policy else None

    def _priorities(self) -> None:
        for pods in self._spec.priority_classes:
            PriorityClass(self._name(pods.name), pods, object_name=pods.name, opts=self._opts())
        for jobs in self._spec.workload_priority_classes:
            WorkloadPriorityClass(
                self._name(jobs.name), jobs, object_name=jobs.name, opts=self._opts(self.kueue.release)
            )

    def _flavors(self) -> None:
        here = self._cluster.name
        self.topologies = {
            entry.name: Topology(
                self._name(entry.name), entry, object_name=entry.name, opts=self._opts(self.kueue.release)
            )
            for entry in self._spec.topologies
            if here in self._spec.clusters_of(entry)
        }
        manifests = [
            render_resource_flavor(self._spec, entry, here)
            for entry in self._spec.flavors
            if here in self._spec.clusters_of(entry)
        ]
        if self._role == "manager":
            manifests += render_manager_flavor(self._spec)
        self.flavors = {}
        for flavor in manifests:
            name = _name_of(flavor)
            topology = _known(self.topologies, [flavor["spec"].get("topologyName")])
            self.flavors[name] = ResourceFlavor(
                self._name(name), flavor, opts=self._opts(self.kueue.release, *topology)
            )

    def _checks(self, workers: "Mapping[str, ClusterContents]") -> None:
        self.checks = {}
        for entry in self._spec.admission_checks:
            if self._cluster.name not in self._spec.clusters_of(entry):
                continue
            name, opts = self._name(entry.name), self._opts(self.kueue.release)
            self.checks[entry.name] = (
                ProvisioningRequestCheck(name, entry, opts=opts)
                if entry.provisioning_request
                else AdmissionCheck(name, render_admission_check(entry), opts=opts)
            )
        for check in render_assignment_check(self._spec, self._cluster.name):
            # Active once the fleet's controller runs, which needs the workers.
            name = _name_of(check)
            self.checks[name] = AdmissionCheck(self._name(name), check, opts=self._opts(self.kueue.release))
        if self._role == "manager" and self._spec.multi_kueue is not None:
            self.multi_kueue = MultiKueue(
                self._name("multikueue"),
                self._spec,
                kubeconfigs={name: made.access.kubeconfig for name, made in workers.items() if made.access},
                workers_ready={
                    name: [*made.ready, *([made.access] if made.access else [])] for name, made in workers.items()
                },
                opts=self._opts(self.kueue.release),
            )
            self.checks |= self.multi_kueue.checks

    def _queues(self) -> None:
        here = self._cluster.name
        self.cohorts = {}
        for cohort in cohorts_on(self._spec, here):
            self.cohorts[cohort.name] = Cohort(
                self._name(cohort.name),
                render_cohort(self._spec, cohort, here),
                opts=self._opts(self.kueue.release, *_known(self.cohorts, [cohort.parent_name])),
            )
        self.cluster_queues = {}
        for entry in self._spec.queues_on(here):
            queue = render_cluster_queue(self._spec, entry, here)
            checks = _known(self.checks, _checks_of(queue))
            self.cluster_queues[entry.name] = ClusterQueue(
                self._name(entry.name),
                queue,
                expect_active=all(check.expect_active for check in checks),
                opts=self._opts(
                    self.kueue.release,
                    *_known(self.flavors, _flavors_of(queue)),
                    *checks,
                    *_known(self.cohorts, [queue["spec"].get("cohortName")]),
                ),
            )
        self.teams = {
            team.name: Team(
                self._name(team.name),
                team,
                objects=render_team_objects(self._spec, team, here),
                cluster_queues=self.cluster_queues,
                opts=self._opts(self.kueue.release),
            )
            for team in self._spec.teams
        }
        places = dict(self.namespaces.objects) if self.namespaces else {}
        for team in self.teams.values():
            places |= team.namespaces
        self.local_queues = [
            LocalQueue(
                self._name(local.namespace, local.name),
                local,
                namespace=local.namespace,
                object_name=local.name,
                cluster_queue=self.cluster_queues[local.cluster_queue],
                opts=self._opts(self.kueue.release, *_known(places, [local.namespace])),
            )
            for local in self._spec.local_queues
            if local.cluster_queue in self.cluster_queues
        ]

    def _controller(self, workers: "Mapping[str, ClusterContents]") -> None:
        grants = render_controller_worker_access(self._spec, self._cluster.name)
        if grants:
            self.controller_access = self._worker_access("controller", grants, *self._places())
        objects = render_controller(self._spec, self._cluster.name)
        if objects:
            self.controller = AdmissionController(
                self._name("controller"),
                objects,
                kubeconfigs={
                    name: made.controller_access.kubeconfig
                    for name, made in workers.items()
                    if made.controller_access is not None
                },
                opts=self._opts(self.kueue.release, *self._places(), *([self.multi_kueue] if self.multi_kueue else [])),
            )

    def _places(self) -> list[pulumi.Resource]:
        """Whatever makes namespaces."""
        return [*([self.namespaces] if self.namespaces else []), *self.teams.values()]

    def _grant(self) -> None:
        grants = render_worker_access(self._spec, self._cluster.name)
        if grants:
            self.access = self._worker_access("multikueue", grants, *self._places())

    def _worker_access(self, name: str, objects: list[Manifest], *depends_on: pulumi.Resource) -> WorkerAccess:
        return WorkerAccess(
            self._name(name),
            objects,
            cluster_name=self._cluster.name,
            endpoint=self._cluster.endpoint,
            ca_certificate=self._cluster.ca_certificate,
            opts=self._opts(self.kueue.release, *depends_on),
        )


def _known(objects: Mapping[str, _T], names: Iterable[str | None]) -> list[_T]:
    """The objects of those names that the fleet makes itself."""
    return [objects[name] for name in dict.fromkeys(names) if name is not None and name in objects]


def _name_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _is_of_team(namespace: Manifest) -> bool:
    return TEAM_LABEL in namespace["metadata"].get("labels", {})


def _flavors_of(queue: Manifest) -> list[str]:
    groups: list[dict[str, Any]] = queue["spec"]["resourceGroups"]
    return [flavor["name"] for group in groups for flavor in group["flavors"]]


def _checks_of(queue: Manifest) -> list[str]:
    strategy: dict[str, Any] = queue["spec"].get("admissionChecksStrategy", {})
    return [check["name"] for check in strategy.get("admissionChecks", [])]
