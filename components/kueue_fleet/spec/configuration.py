"""Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2), field by field.

In: the `kueue.configuration` of the fleet or of one cluster. Out: a frozen model of what was written; what was left out
stays out, so that Kueue's own defaults hold. The rules across fields are in `configuration_rules`; merging the fleet's
with a cluster's is in `install`.

Source: kueue@v0.19.2 apis/config/v1beta2/{configuration_types,defaults}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kueue_fleet.spec.base import DnsLabel, Flag, Int32, LabelKey, Number, SpecModel, Text, Whole
from kueue_fleet.spec.duration import Duration
from kueue_fleet.spec.quantity import Quantity
from kueue_fleet.spec.wire.selector import LabelSelector

Port = Annotated[Whole, Field(ge=1, le=65535)]


class WebhookServer(SpecModel):
    """The webhook server."""

    port: Port | None = None
    """Default 9443."""
    host: Text | None = None
    """Address to listen on; default all."""
    cert_dir: Text | None = None
    """Folder of tls.crt and tls.key; default /tmp/k8s-webhook-server/serving-certs."""


class LeaderElection(SpecModel):
    """Leader election between the replicas of Kueue."""

    leader_elect: Flag | None = None
    lease_duration: Duration | None = None
    renew_deadline: Duration | None = None
    retry_period: Duration | None = None
    resource_lock: Text | None = None
    resource_name: Text | None = None
    """Default c1f6bfd2.kueue.x-k8s.io."""
    resource_namespace: Text | None = None


class CustomMetricLabel(SpecModel):
    """A label or annotation that becomes a label of Kueue's metrics (alpha, feature gate CustomMetricLabels)."""

    name: Text
    """The metric's label without the prefix `custom_`."""
    source_label_key: Text | None = None
    source_annotation_key: Text | None = None
    source_kind: Text | None = None
    """Cohort, LocalQueue, ClusterQueue (default) or Workload."""
    tracked_values: tuple[Text, ...] = ()
    """Values that are told apart; for Workload 1 to 12, else at most 16, none: all."""


class LocalQueueMetrics(SpecModel):
    """Metrics per LocalQueue."""

    enable: Flag | None = None
    local_queue_selector: LabelSelector | None = None


class Metrics(SpecModel):
    """What Kueue reports."""

    bind_address: Text | None = None
    """Default :8443; 0: off."""
    enable_cluster_queue_resources: Flag | None = None
    """Also quota and usage per queue, flavor and resource; default false."""
    custom_labels: tuple[CustomMetricLabel, ...] | None = None
    local_queue_metrics: LocalQueueMetrics | None = None


class Health(SpecModel):
    """Probes."""

    health_probe_bind_address: Text | None = None
    """Default :8081."""
    readiness_endpoint_name: Text | None = None
    liveness_endpoint_name: Text | None = None


class Controller(SpecModel):
    """Kueue's controllers."""

    group_kind_concurrency: Mapping[Text, Annotated[Whole, Field(ge=1)]] | None = None
    """Parallel reconciles by `Kind.group`."""
    cache_sync_timeout: Annotated[Whole, Field(ge=0, le=2**63 - 1)] | None = None
    """In nanoseconds: Kueue reads this field as a bare number; default 2 minutes."""


class TlsOptions(SpecModel):
    """TLS of all of Kueue's servers."""

    min_version: Text | None = None
    cipher_suites: tuple[Text, ...] | None = None
    curve_preferences: tuple[Int32, ...] | None = None


class InternalCertManagement(SpecModel):
    """Certificates that Kueue makes for itself."""

    enable: Flag | None = None
    """Default true."""
    webhook_service_name: Text | None = None
    webhook_secret_name: Text | None = None


class RequeuingStrategy(SpecModel):
    """When a workload whose pods were not ready in time is tried again."""

    timestamp: Text | None = None
    """Eviction (default) or Creation: which time orders it among the waiting."""
    backoff_limit_count: Int32 | None = None
    """Tries before it is deactivated; absent: endless."""
    backoff_base_seconds: Int32 | None = None
    """First wait; default 60."""
    backoff_max_seconds: Int32 | None = None
    """Longest wait; default 3600."""


class WaitForPodsReady(SpecModel):
    """Eviction of workloads whose pods do not all become ready. On by default since Kueue 0.19, after 30 minutes."""

    timeout: Duration | None = None
    """Default 30m."""
    block_admission: Flag | None = None
    """Admit one workload after the other; default false."""
    requeuing_strategy: RequeuingStrategy | None = None
    recovery_timeout: Duration | None = None
    """The same for pods that fail later; default `timeout`; 0s: off."""


class ClientConnection(SpecModel):
    """Kueue's requests to the API server."""

    qps: Number | None = None
    """Default 300; negative: unlimited."""
    burst: Int32 | None = None
    """Default 500."""


class Integrations(SpecModel):
    """Kinds of job that Kueue manages."""

    frameworks: tuple[Text, ...] | None = None
    """Default batch/job, and jobset.x-k8s.io/jobset where the fleet installs JobSet."""
    external_frameworks: tuple[Text, ...] | None = None
    """`Kind.version.group` of kinds that other controllers integrate."""
    label_keys_to_copy: tuple[Text, ...] | None = None
    """Labels copied from the job to its Workload."""


class ExternalFramework(SpecModel):
    """A kind of job dispatched by the generic MultiKueue adapter."""

    name: Text
    """`Kind.version.group`."""


class ExecEnvVar(SpecModel):
    """An environment variable of an exec plugin."""

    name: Text
    value: Text = ""


class ExecConfig(SpecModel):
    """An exec plugin that prints credentials."""

    command: Text = ""
    args: tuple[Text, ...] | None = None
    env: tuple[ExecEnvVar, ...] | None = None
    api_version: Text = ""
    install_hint: Text | None = None
    provide_cluster_info: Flag | None = None
    interactive_mode: Text = ""


class ClusterProfileProvider(SpecModel):
    """A provider of access by ClusterProfile."""

    name: Text = ""
    exec_config: ExecConfig = Field(default_factory=ExecConfig)


class ClusterProfileConfiguration(SpecModel):
    """Access to workers by ClusterProfile (alpha, feature gate MultiKueueClusterProfile)."""

    access_providers: tuple[ClusterProfileProvider, ...] | None = None
    credentials_providers: tuple[ClusterProfileProvider, ...] | None = None
    """Deprecated: use accessProviders."""


class IncrementalDispatcherConfig(SpecModel):
    """The incremental dispatcher."""

    step_size: Int32 | None = None
    """Workers added per round; default 3."""


class MultiKueueConfiguration(SpecModel):
    """The manager's MultiKueue controller. The fleet's `multiKueue` section sets the first five."""

    gc_interval: Duration | None = None
    origin: Text | None = None
    worker_lost_timeout: Duration | None = None
    dispatcher_name: Text | None = None
    incremental_dispatcher_config: IncrementalDispatcherConfig | None = None
    external_frameworks: tuple[ExternalFramework, ...] | None = None
    cluster_profile: ClusterProfileConfiguration | None = None


class FairSharingConfiguration(SpecModel):
    """Fair sharing between queues and cohorts; on where this section is present."""

    preemption_strategies: tuple[Text, ...] | None = None
    """[LessThanOrEqualToFinalShare], [LessThanInitialShare], or both in that order."""


class AdmissionFairSharing(SpecModel):
    """Order of the LocalQueues of a queue by their past usage."""

    usage_half_life_time: Duration | None = None
    """After which past usage counts half; 0s: past usage does not count."""
    usage_sampling_interval: Duration | None = None
    """Default 5m."""
    resource_weights: Mapping[LabelKey, Number] | None = None
    """Weight of each resource in the usage; default 1."""


class ResourceTransformation(SpecModel):
    """Turns one resource of a pod into others before quota is counted."""

    input: Text
    """The resource; each at most once in the list."""
    strategy: Text | None = None
    """Retain (default) or Replace the input."""
    multiply_by: Text | None = None
    """A resource whose amount multiplies the outputs."""
    outputs: Mapping[LabelKey, Quantity] | None = None
    """What one unit of the input becomes."""


class CelSelector(SpecModel):
    """A CEL expression on devices."""

    expression: Text = ""


class DeviceSelector(SpecModel):
    """Which devices count."""

    cel: CelSelector | None = None


class DeviceSource(SpecModel):
    """A counter or a capacity of devices."""

    name: Text = ""
    driver: Text = ""
    device_selector: DeviceSelector = Field(default_factory=DeviceSelector)


class DeviceClassSource(SpecModel):
    """What of a device class is counted: exactly one of the two."""

    counter: DeviceSource | None = None
    capacity: DeviceSource | None = None


class DeviceClassMapping(SpecModel):
    """A resource name for device classes of Dynamic Resource Allocation."""

    name: Text
    device_class_names: tuple[Text, ...] = ()
    sources: tuple[DeviceClassSource, ...] | None = None


class Resources(SpecModel):
    """Which resources count, and how."""

    quota_check_strategy: Text | None = None
    """BlockUndeclared (default): a job may not ask for what its queue does not cover; IgnoreUndeclared: it may."""
    exclude_resource_prefixes: tuple[Text, ...] | None = None
    """Resources that never count."""
    transformations: tuple[ResourceTransformation, ...] | None = None
    device_class_mappings: tuple[DeviceClassMapping, ...] | None = None


class WorkloadRetention(SpecModel):
    """When Workloads are deleted."""

    after_finished: Duration | None = None
    """After their end; absent: never."""
    after_deactivated_by_kueue: Duration | None = None
    """After Kueue deactivated them, with the job; absent: never."""


class ObjectRetentionPolicies(SpecModel):
    """When Kueue deletes what it no longer needs."""

    workloads: WorkloadRetention | None = None


class VisibilityServer(SpecModel):
    """The server of pending workloads."""

    bind_address: Text | None = None
    """Default 0.0.0.0."""
    bind_port: Whole | None = None
    """Default 8082."""


class KueueConfiguration(SpecModel):
    """Kueue's Configuration. `apiVersion` and `kind` are added when it is rendered."""

    namespace: DnsLabel | None = None
    """Set by the fleet from `kueue.namespace`."""
    webhook: WebhookServer | None = None
    leader_election: LeaderElection | None = None
    metrics: Metrics | None = None
    health: Health | None = None
    pprof_bind_address: Text | None = None
    controller: Controller | None = None
    tls: TlsOptions | None = None
    manage_jobs_without_queue_name: Flag | None = None
    """Also manage jobs without a queue label; default false."""
    managed_jobs_namespace_selector: LabelSelector | None = None
    """Default: every namespace but kube-system and Kueue's own."""
    internal_cert_management: InternalCertManagement | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    client_connection: ClientConnection | None = None
    integrations: Integrations | None = None
    multi_kueue: MultiKueueConfiguration | None = None
    fair_sharing: FairSharingConfiguration | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources | None = None
    feature_gates: Mapping[Text, Flag] | None = None
    """Overrides by name; the gates of Kueue 0.19.2 are known."""
    object_retention_policies: ObjectRetentionPolicies | None = None
    visibility_server: VisibilityServer | None = None


def overlay(base: Any, top: Any) -> Any:
    """`base` with `top` laid over it: maps are merged key by key, everything else is replaced."""
    if not (isinstance(base, dict) and isinstance(top, dict)):
        return top
    merged = dict(base)
    for key, value in top.items():
        merged[key] = overlay(base[key], value) if key in base else value
    return merged
