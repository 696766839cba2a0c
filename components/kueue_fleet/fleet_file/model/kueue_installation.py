"""Kueue's Configuration and Helm values for each cluster.

Installing is the job of the components.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from functools import cache
from typing import Any, Final

import yaml

from kueue_admission.api.configuration import overlay
from kueue_admission.api.manifests import TEAM_LABEL
from kueue_admission.kernel.names import NAMESPACE_NAME_LABEL, PRODUCT, REGIONS_LABEL
from kueue_admission.releases import Release
from kueue_fleet.fleet_file.model.clusters import ClusterProfile
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.installations import KueueInstallation
from kueue_fleet.fleet_file.model.kueue_pods import spread_constraints
from kueue_fleet.fleet_file.model.per_cluster import limits_flavors
from kueue_fleet.settings.dispatch import DISPATCHER_NAME

CLUSTER_PROFILE_GATE: Final = "MultiKueueClusterProfile"
"""Feature gate for access by ClusterProfile, alpha in 0.19."""
REASONS_GATE: Final = "UnadmittedWorkloadsObservability"
"""Feature gate for more exact reasons why a Workload waits, beta since 0.19."""
CLEARING_POLICY: Final = "enableMutatingAdmissionPolicy"
"""The chart's value for Kueue's policy that clears the nominations of an external dispatcher, since 0.19.2."""
PLUGIN_FOLDER: Final = "/plugins"
"""Where Kueue finds the plugin in its container."""
PLUGIN: Final = "gcp-auth-plugin"
"""File name of the plugin, in its image and in that folder."""
JOBSET_FRAMEWORK: Final = "jobset.x-k8s.io/jobset"
"""Name of JobSet among Kueue's integrations."""


def kueue_configuration(fleet: FleetSpec, cluster: str) -> dict[str, Any]:
    """Kueue's Configuration on `cluster`: the fleet's, overlaid with the cluster's and, on the manager, MultiKueue's.

    What neither says is as in Kueue's own chart, but the frameworks: batch/job, JobSet where the fleet installs it, and
    those of its operators;
    Kueue says in its finer words why a Workload waits (UnadmittedWorkloadsObservability); and, where there are teams,
    the jobs that it manages.
    Raises KeyError for an unknown cluster.
    """
    entry = fleet.cluster(cluster)
    observability = fleet.observability
    has_metrics = observability.managed_prometheus or observability.has_grafana or entry.pod_monitors is not None
    own = overlay(fleet.kueue.configuration.wire(), entry.kueue.configuration.wire())
    release = fleet.kueue_on(cluster).release
    base = default_configuration(fleet.kueue.namespace, release, observed=has_metrics, job_sets=fleet.job_set.enabled)
    base["integrations"]["frameworks"] += fleet.operators.frameworks
    # A selector of one's own stands alone: merged, it would have to hold beside this one.
    base |= {name: value for name, value in _managed_jobs(fleet).items() if name not in own}
    if any(queue.fallback for queue in fleet.queues_on(cluster)) or limits_flavors(fleet):
        # With it, Kueue gives a Workload only the flavors that its annotation names.
        base["featureGates"]["ConcurrentAdmission"] = True
    configuration = overlay(base, own)
    if entry.role == "manager" and fleet.multi_kueue is not None:
        if isinstance(fleet.multi_kueue.credentials, ClusterProfile):
            configuration = overlay({"featureGates": {CLUSTER_PROFILE_GATE: True}}, configuration)
        configuration = overlay(configuration, {"multiKueue": _multi_kueue(fleet, release)})
        if fleet.multi_kueue.dispatcher_name == DISPATCHER_NAME:
            copied_keys = configuration["integrations"].get("labelKeysToCopy") or []
            # Where a job may run is said on the job, and decided on its Workload.
            configuration["integrations"]["labelKeysToCopy"] = list(dict.fromkeys([*copied_keys, REGIONS_LABEL]))
    plain: dict[str, Any] = whole_numbers(configuration)
    return plain


def default_configuration(namespace: str, release: Release, *, observed: bool, job_sets: bool) -> dict[str, Any]:
    """The Configuration of a Kueue in `namespace` where nothing else is written: that of the release's chart.

    `observed` adds quotas and their use to the metrics; `job_sets` says whether Kueue manages JobSets.
    """
    configuration: dict[str, Any] = {}
    for name, value in release.configuration().items():
        if name == "integrations":
            # Reasons such as ExceedsMaxQuota instead of just Pending.
            configuration["featureGates"] = {REASONS_GATE: True} if REASONS_GATE in release.gates else {}
            value = {"frameworks": ["batch/job", *([JOBSET_FRAMEWORK] if job_sets else [])]}
        configuration[name] = value
        if name == "kind":
            configuration["namespace"] = namespace
    if observed:
        configuration["metrics"]["enableClusterQueueResources"] = True  # The dashboards show them.
    return configuration


def _managed_jobs(fleet: FleetSpec) -> dict[str, Any]:
    return managed_jobs(fleet.team_of.keys(), {queue.namespace for queue in fleet.local_queues})


def managed_jobs(of_teams: Set[str], with_queues: Set[str]) -> dict[str, Any]:
    """Where there are teams: jobs in the namespaces with queues wait for Kueue, even those that name no queue.

    Such a job would run at once, beside every quota. Kueue leaves jobs in all other namespaces alone, even those that
    name a queue (kueue@v0.19.2 pkg/features, ManagedJobsNamespaceSelectorAlwaysRespected); therefore the namespaces
    of `localQueues` are among them.
    """
    if not of_teams:
        return {}
    expression: dict[str, Any] = {"key": TEAM_LABEL, "operator": "Exists"}
    if with_queues - of_teams:
        expression = {"key": NAMESPACE_NAME_LABEL, "operator": "In", "values": sorted(of_teams | with_queues)}
    return {
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [expression]},
    }


def kueue_helm_values(fleet: FleetSpec, cluster: str, kubernetes_version: str | None = None) -> dict[str, Any]:
    """Values of the Kueue chart on `cluster`: the Configuration, as the text that the chart wants it in.

    Where the fleet's own controller nominates clusters, Kueue must be able to take nominations away: by Kueue's
    MutatingAdmissionPolicy where the release's chart and Kubernetes, from 1.36 on, have it; else by the feature gate
    WorkloadRequestUseMergePatch. `kubernetes_version` is the cluster's, such as `1.36.3-gke.100`; None: new enough on
    GKE. Elsewhere it may be any, and the gate works with all.
    Source: kueue@v0.19.2 site/content/en/docs/concepts/multikueue.md, charts/kueue/templates/map/manifests.yaml.
    """
    configuration = kueue_configuration(fleet, cluster)
    values: dict[str, Any] = {}
    settings = fleet.multi_kueue
    if fleet.cluster(cluster).role == "manager" and settings and settings.dispatcher_name == DISPATCHER_NAME:
        may_be_old = not kubernetes_version and fleet.cluster(cluster).outside_gke
        has_policies = not may_be_old and has_mutating_policies(kubernetes_version)
        if CLEARING_POLICY in fleet.kueue_on(cluster).release.chart_values and has_policies:
            values[CLEARING_POLICY] = True
        else:
            gates = configuration.get("featureGates", {})
            configuration["featureGates"] = {"WorkloadRequestUseMergePatch": True, **gates}
    return {**_chart_values(configuration), **kueue_pod_values(fleet.kueue_on(cluster)), **values}


def installation_helm_values(kueue: KueueInstallation) -> dict[str, Any]:
    """Values of the Kueue chart for an installation that belongs to no fleet: its own Configuration.

    What that leaves out is as in a fleet with JobSet and without metrics of quotas.
    """
    defaults = default_configuration(kueue.namespace, kueue.release, observed=False, job_sets=True)
    return {**_chart_values(whole_numbers(overlay(defaults, kueue.configuration.wire()))), **kueue_pod_values(kueue)}


def kueue_image_values(kueue: KueueInstallation) -> dict[str, Any]:
    """Values of the Kueue chart that name the image.

    Written out for every chart: in Kueue's module, the chart asks for a moving tag of a staging registry.
    """
    image = {"repository": kueue.image, "tag": f"v{kueue.version}", "pullPolicy": "IfNotPresent"}
    return {"controllerManager": {"manager": {"image": image}}}


def kueue_pod_values(kueue: KueueInstallation) -> dict[str, Any]:
    """Values of the Kueue chart for its pods: image, replicas, budget, resources, spread and priority."""
    budget: dict[str, Any] = {"enabled": kueue.pods_that_stay > 0}
    if kueue.pods_that_stay > 0:
        budget["minAvailable"] = kueue.pods_that_stay
    pods = {
        "replicas": kueue.replicas,
        "podDisruptionBudget": budget,
        "topologySpreadConstraints": spread_constraints(kueue.topology_spread),
        "manager": {
            "priorityClassName": kueue.priority_class_name,
            "resources": kueue.resources.container_resources(),
        },
    }
    pod_values: dict[str, Any] = overlay({"controllerManager": pods}, kueue_image_values(kueue))
    return pod_values


def _chart_values(configuration: dict[str, Any]) -> dict[str, Any]:
    return {"managerConfig": {"controllerManagerConfigYaml": _as_yaml(json.dumps(configuration))}}


@cache
def _as_yaml(text: str) -> str:
    """JSON as YAML. Writing YAML is slow, and the workers of a fleet mostly have the same Configuration."""
    yaml_text: str = yaml.safe_dump(json.loads(text), sort_keys=False, default_flow_style=False, width=1000)
    return yaml_text


def has_mutating_policies(kubernetes_version: str | None) -> bool:
    """Whether a Kubernetes has MutatingAdmissionPolicy in its stable form; None or no version at all: yes."""
    match = re.match(r"v?(\d+)\.(\d+)", kubernetes_version or "")
    return match is None or (int(match[1]), int(match[2])) >= (1, 36)


def _multi_kueue(fleet: FleetSpec, release: Release) -> dict[str, Any]:
    settings = fleet.multi_kueue
    if settings is None:
        return {}
    fields: dict[str, Any] = {"dispatcherName": settings.dispatcher_name}
    if settings.gc_interval is not None:
        fields["gcInterval"] = str(settings.gc_interval)
    if settings.origin is not None:
        fields["origin"] = settings.origin
    if settings.worker_lost_timeout is not None:
        fields["workerLostTimeout"] = str(settings.worker_lost_timeout)
    if settings.dispatcher == "Incremental" and _has(release, "incrementalDispatcherConfig"):
        step = settings.incremental.step_size if settings.incremental else 3
        fields["incrementalDispatcherConfig"] = {"stepSize": step}
    if isinstance(settings.credentials, ClusterProfile):
        provider = {"name": PRODUCT, "execConfig": exec_config(f"{PLUGIN_FOLDER}/{PLUGIN}")}
        providers = "accessProviders" if _has(release, "clusterProfile.accessProviders[]") else "credentialsProviders"
        fields["clusterProfile"] = {providers: [provider]}
    return fields


def _has(release: Release, field: str) -> bool:
    """Whether the Configuration of the release has a field of MultiKueue."""
    return release.has_field("Configuration", "v1beta2", f"multiKueue.{field}")


def exec_config(command: str) -> dict[str, Any]:
    """The plugin as an exec section, of Kueue's Configuration and of a kubeconfig; it answers in v1beta1 only.

    Source: https://github.com/GoogleCloudPlatform/gke-fleet-management/blob/main/gcp-auth-plugin/cmd/main.go.
    """
    version = "client.authentication.k8s.io/v1beta1"
    return {"apiVersion": version, "command": command, "interactiveMode": "Never", "provideClusterInfo": True}


def whole_numbers(value: Any) -> Any:
    """The same data with 300.0 as 300, as people write it: to a plugin Pulumi hands every number as a float."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
