"""The manager's side of MultiKueue: for each worker a kubeconfig Secret or a ClusterProfile, and a MultiKueueCluster;
then the configs and the admission checks that queues refer to.

Objects of one worker depend on that worker alone, so that adding a worker changes only what lists the workers.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import dispatch_groups
from kueue_fleet.kueue.admission_checks import AdmissionCheck
from kueue_fleet.kueue.applied_objects import KubernetesObject
from kueue_fleet.kueue.component import Component, declare_object
from kueue_fleet.kueue.credentials import kubeconfig_secret
from kueue_fleet.objects.cluster_profiles import profile_status, render_cluster_profile
from kueue_fleet.objects.render import render_multikueue_check, render_multikueue_cluster, render_multikueue_config

CONNECTED = 'jsonpath={.status.conditions[?(@.type=="Active")].status}=True'
"""What the provider waits for. Not `condition=Active`, which wants the condition to be of the latest generation: Kueue
leaves the condition as it is where a worker stays connected with other credentials, so an update would never end.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/multikueuecluster.go (updateStatus)."""


class MultiKueue(Component):
    """Everything on the manager that dispatches its jobs to the workers."""

    pulumi_type = "kueue-fleet:index:MultiKueue"

    clusters: dict[str, KubernetesObject]
    """MultiKueueClusters by worker."""
    configs: dict[str, KubernetesObject]
    """MultiKueueConfigs by name."""
    checks: dict[str, AdmissionCheck]
    """AdmissionChecks by name."""

    def __init__(
        self,
        name: str,
        spec: FleetSpec,
        *,
        kubeconfigs: Mapping[str, pulumi.Input[str]],
        workers_ready: Mapping[str, Sequence[pulumi.Resource]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the manager's side.

        `kubeconfigs` gives each worker's kubeconfig, as `WorkerAccess.kubeconfig` has it; a ClusterProfile says where
        the worker is as that does. `workers_ready` names what must stand on a worker before the manager connects to it,
        its queues above all. The provider in `opts` is the manager's.

        Raises:
            ValueError: a worker of the fleet has no kubeconfig.
        """
        super().__init__(name, opts)
        self.clusters = {}
        for worker in spec.worker_names:
            ready = list((workers_ready or {}).get(worker, ()))
            self.clusters[worker] = self._cluster(name, spec, worker, kubeconfigs.get(worker), ready)
        self.configs = {}
        self.checks = {}
        for group in dispatch_groups(spec):
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
        self.register_outputs({"workers": list(self.clusters), "admissionChecks": list(self.checks)})

    def _cluster(
        self,
        name: str,
        spec: FleetSpec,
        worker: str,
        kubeconfig: pulumi.Input[str] | None,
        ready: list[pulumi.Resource],
    ) -> KubernetesObject:
        cluster = render_multikueue_cluster(spec, worker)
        secrets: list[pulumi.Resource] = []
        if kubeconfig is None:
            raise ValueError(f"MultiKueue {name}: worker {worker} has no kubeconfig; add it to kubeconfigs")
        for profile in render_cluster_profile(spec, worker):
            status = pulumi.Output.from_input(kubeconfig).apply(_profile_status)
            secrets.append(declare_object(self, f"{name}/{worker}", {**profile, "status": status}))
        if "kubeConfig" in cluster["spec"]["clusterSource"]:
            location = cluster["spec"]["clusterSource"]["kubeConfig"]["location"]
            secrets.append(kubeconfig_secret(self, f"{name}/{worker}", location, spec.kueue.namespace, kubeconfig))
        needed = [*secrets, *ready]
        return declare_object(self, f"{name}/{worker}", cluster, depends_on=needed, wait_for=CONNECTED)


def _profile_status(kubeconfig: str) -> dict[str, Any]:
    [entry] = json.loads(kubeconfig)["clusters"]
    return profile_status(entry["cluster"])
