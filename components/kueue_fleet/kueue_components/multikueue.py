"""The manager's side of MultiKueue: for each worker a kubeconfig Secret or a ClusterProfile, and a MultiKueueCluster;
then the configs and the admission checks that queues refer to.

Objects of one worker depend on that worker alone, so that adding a worker changes only what lists the workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pulumi
import yaml

from kueue_admission.kernel import Problem, SpecError
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain
from kueue_fleet.component import judge
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import DispatchGroup, dispatch_groups
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.fleet_file.worker_tokens import kubeconfig_secret_name, token_credentials
from kueue_fleet.kueue_components.admission_checks import AdmissionCheck
from kueue_fleet.kueue_components.applied_objects import KubernetesObject, provider_of
from kueue_fleet.kueue_components.asked import Key
from kueue_fleet.kueue_components.component import Component, declare_object
from kueue_fleet.kueue_components.credentials import WorkerAccess, WorkerGrant, kubeconfig_secret
from kueue_fleet.objects.cluster_profiles import cluster_profile, profile_status
from kueue_fleet.objects.render import multikueue_cluster, render_multikueue_check, render_multikueue_config

CONNECTED = 'jsonpath={.status.conditions[?(@.type=="Active")].status}=True'
"""What the provider waits for. Not `condition=Active`, which wants the condition to be of the latest generation: Kueue
leaves the condition as it is where a worker stays connected with other credentials, so an update would never end.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/multikueuecluster.go (updateStatus)."""


class MultiKueue(Component):
    """Everything on the manager that dispatches its jobs to the workers."""

    clusters: dict[str, KubernetesObject]
    """MultiKueueClusters by worker."""
    configs: dict[str, KubernetesObject]
    """MultiKueueConfigs by name."""
    checks: dict[str, AdmissionCheck]
    """AdmissionChecks by name."""

    def __init__(
        self,
        name: str,
        spec: FleetSpec | None = None,
        *,
        workers: Mapping[DnsSubdomain, WorkerAccess | WorkerGrant] | None = None,
        checks: Mapping[DnsSubdomain, Sequence[DnsSubdomain]] | None = None,
        kueue_namespace: DnsLabel = "kueue-system",
        kubeconfigs: Mapping[str, pulumi.Input[str]] | None = None,
        workers_ready: Mapping[DnsSubdomain, Sequence[pulumi.Resource]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the manager's side.

        `workers` are the `WorkerAccess` components, by the worker's name; or what one of another program gave out, as a
        `WorkerGrant`. `checks` are AdmissionChecks by name, each with the workers that it dispatches to, most preferred
        first; by default one, called multikueue, with all of them. `kueue_namespace` is Kueue's on the manager.

        `workers_ready` names what must stand on a worker before the manager connects to it, its queues above all. The
        provider in `opts` is the manager's. How jobs are dispatched is in the values of the manager's `KueueInstall`.

        A fleet gives its `spec` and `kubeconfigs` instead, the workers' by their names.

        Raises:
            SpecError: a worker has no kubeconfig, a check names one that is not among them, or what is given is for a
                fleet and for workers.
        """
        groups: Sequence[DispatchGroup]
        if spec is not None and workers is None:
            grants = _of_fleet(name, spec, kubeconfigs or {})
            groups, kueue_namespace = dispatch_groups(spec), spec.kueue.namespace
        elif workers and spec is None:
            grants = dict(workers)
            checks = {"multikueue": tuple(grants)} if checks is None else checks
            if not checks:
                wrong = "there are none, so no queue can dispatch to the workers"
                raise SpecError([COMPONENT.at(f"MultiKueue {name}.checks", wrong, "name one, or leave them out")])
            groups = [DispatchGroup(check, check, tuple(worker_list), ()) for check, worker_list in checks.items()]
            listed_workers = {f"checks[{check}]": worker_list for check, worker_list in checks.items()}
            unknown = [
                COMPONENT.at(f"MultiKueue {name}.{path}", f"{worker} is not among the workers", "add it, or remove it")
                for path, named in (*listed_workers.items(), ("workers_ready", workers_ready or {}))
                for worker in named
                if worker not in grants
            ]
            if unknown:
                raise SpecError(unknown)
            others = {
                worker: grant._cluster_name
                for worker, grant in grants.items()
                if isinstance(grant, WorkerAccess) and grant._cluster_name != worker
            }
            judge(
                (
                    COMPONENT.at(
                        f"MultiKueue {name}.workers[{worker}]",
                        f"has the access to the cluster {cluster}",
                        f"call it {cluster}, or give the access to {worker}",
                        "warning",
                    )
                    for worker, cluster in others.items()
                ),
                opts,
            )
        else:
            raise SpecError([COMPONENT.at(f"MultiKueue {name}", "there are no workers", "give workers={...}")])
        super().__init__(name, opts)
        judge(self._on_manager(name, grants), opts)
        self.clusters = {
            worker: self._cluster(name, worker, grant, kueue_namespace, (workers_ready or {}).get(worker, ()))
            for worker, grant in grants.items()
        }
        self.configs = {}
        self.checks = {}
        for group in groups:
            config = declare_object(
                self,
                f"{name}/{group.config_name}",
                render_multikueue_config(group),
                depends_on=[self.clusters[worker] for worker in group.workers],
            )
            self.configs[group.config_name] = config
            self.checks[group.check_name] = AdmissionCheck(
                f"{name}/{group.check_name}",
                render_multikueue_check(group),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[config], deleted_with=self.deleted_with),
            )
        self._give_out()

    @property
    def worker_names(self) -> list[str]:
        """The workers."""
        return list(self.clusters)

    @property
    def admission_checks(self) -> dict[str, pulumi.Output[str]]:
        """Names of the AdmissionChecks, once they are there."""
        return {name: check.name for name, check in self.checks.items()}

    @property
    def declares(self) -> dict[Key, pulumi.Resource]:
        """The checks."""
        return {key: resource for check in self.checks.values() for key, resource in check.declares.items()}

    def _on_manager(self, name: str, grants: "Mapping[str, WorkerAccess | WorkerGrant]") -> Iterator[Problem]:
        """What has the manager's provider: Kueue dispatches to other clusters alone."""
        for worker, grant in grants.items():
            own = provider_of(grant) if isinstance(grant, WorkerAccess) else None
            if own is not None and own is provider_of(self):
                wrong = "its access has the manager's provider, and a manager is no worker of its own"
                fix = "give the access the provider of its cluster"
                yield COMPONENT.at(f"MultiKueue {name}.workers[{worker}]", wrong, fix, "warning")

    def _cluster(
        self,
        name: str,
        worker: str,
        grant: WorkerAccess | WorkerGrant,
        namespace: str,
        ready: Sequence[pulumi.Resource],
    ) -> KubernetesObject:
        needed_resources = [grant, *ready] if isinstance(grant, WorkerAccess) else list(ready)
        where = f"{name}.workers[{worker}]"
        kubeconfig = pulumi.Output.from_input(grant.kubeconfig)
        if grant.rotation is None:
            secret = None
            status = kubeconfig.apply(partial(_profile_status, where))
            profile = {**cluster_profile(worker, namespace), "status": status}
            way = declare_object(self, f"{name}/{worker}", profile)
        else:
            secret = kubeconfig_secret_name(worker, grant.rotation)
            kubeconfig_data = kubeconfig.apply(partial(_kubeconfig, where))
            way = kubeconfig_secret(self, f"{name}/{worker}", secret, namespace, kubeconfig_data)
        cluster_manifest = multikueue_cluster(worker, secret)
        return declare_object(
            self, f"{name}/{worker}", cluster_manifest, depends_on=[way, *needed_resources], wait_for=CONNECTED
        )


def _of_fleet(
    name: str, spec: FleetSpec, kubeconfigs: Mapping[str, pulumi.Input[str]]
) -> dict[str, WorkerAccess | WorkerGrant]:
    """The workers of a fleet, by name."""
    credentials = token_credentials(spec)
    rotation = credentials.rotation if credentials else None
    missing_workers = [worker for worker in spec.worker_names if worker not in kubeconfigs]
    if missing_workers:
        wrong = f"worker {missing_workers[0]} has no kubeconfig"
        raise SpecError([COMPONENT.at(f"MultiKueue {name}", wrong, "add it to kubeconfigs")])
    return {worker: WorkerGrant(kubeconfigs[worker], rotation) for worker in spec.worker_names}


def _kubeconfig(where: str, text: str) -> str:
    """TEXT, with a warning if it is not a kubeconfig; never names a value. What releases before took goes on."""
    if _one_cluster(text) is None:
        wrong, fix = "is not a kubeconfig of one cluster", "give what WorkerAccess has as kubeconfig"
        pulumi.log.warn(COMPONENT.at(f"MultiKueue {where}", wrong, fix).coded)
    return text


def _one_cluster(kubeconfig: str) -> Any:
    """The cluster of a kubeconfig that has one."""
    try:
        [entry] = yaml.safe_load(kubeconfig)["clusters"]
        return entry["cluster"]
    except (yaml.YAMLError, ValueError, LookupError, TypeError):
        return None


def _profile_status(where: str, kubeconfig: str) -> dict[str, Any]:
    cluster = _one_cluster(kubeconfig)
    if cluster is None:
        fix = "a worker without tokens needs one of WorkerAccess, or one like that"
        raise pulumi.RunError(COMPONENT.at(f"MultiKueue {where}", "is not a kubeconfig of one cluster", fix).coded)
    return profile_status(cluster)
