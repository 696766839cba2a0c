"""Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2): what changes admission, or what the fleet writes itself.

What was left out stays out, so that Kueue's own defaults hold. The other sections (TLS, probes, leader election,
metrics and such) are passed on as they are written. The rules across fields are in `fleet_file.check`; merging the
fleet's with a cluster's is in `install`.

Source: kueue@v0.19.2 apis/config/v1beta2/{configuration_types,defaults}.go.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ConfigDict

from kueue_admission.api.quotas import counted_classes
from kueue_admission.api.selector import LabelSelector
from kueue_admission.kernel.base import DnsLabel, Flag, Int32, LabelKey, Number, SpecModel, Text
from kueue_admission.kernel.duration import OptionalDurationField
from kueue_admission.kernel.given import NOT_GIVEN, ListOf, ListOfText
from kueue_admission.kernel.quantity import OptionalQuantityMapField

Section = Mapping[Text, Any]
"""A section that Kueue gets as it is written. Kueue checks it when it starts; a rehearsal runs the real one."""


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

    removed: ClassVar[Mapping[str, str]] = {
        "enable": "remove it: it is on unless feature gate DisableWaitForPodsReady is"
    }
    timeout: OptionalDurationField = NOT_GIVEN
    """Default 30m."""
    block_admission: Flag | None = None
    """Admit one workload after the other; default false."""
    requeuing_strategy: RequeuingStrategy | None = None
    """When an evicted workload is tried again."""
    recovery_timeout: OptionalDurationField = NOT_GIVEN
    """The same for pods that fail later; default `timeout`; 0s: off."""
    unscheduled_timeout: OptionalDurationField = NOT_GIVEN
    """The same for pods that find no node, from Kueue 0.20 on with its feature gate; default: off."""
    max_timeout_on_workload: OptionalDurationField = NOT_GIVEN
    """The longest that a Workload may set for itself, from Kueue 0.20 on."""


class Integrations(SpecModel):
    """Kinds of job that Kueue manages."""

    replaced: ClassVar[Mapping[str, str]] = {"podOptions": "managedJobsNamespaceSelector of the Configuration"}
    frameworks: ListOfText[Text] | None = None
    """Default batch/job, and jobset.x-k8s.io/jobset where the fleet installs JobSet."""
    external_frameworks: ListOfText[Text] | None = None
    """`Kind.version.group` of kinds that other controllers integrate."""
    label_keys_to_copy: ListOfText[Text] | None = None
    """Labels copied from the job to its Workload."""


class ExternalFramework(SpecModel):
    """A kind of job dispatched by the generic MultiKueue adapter."""

    name: Text
    """`Kind.version.group`."""


class IncrementalDispatcherConfig(SpecModel):
    """The incremental dispatcher."""

    step_size: Int32 | None = None
    """Workers added per round; default 3."""


class MultiKueueConfiguration(SpecModel):
    """The manager's MultiKueue controller. The fleet's `multiKueue` section sets all but `externalFrameworks`."""

    gc_interval: OptionalDurationField = NOT_GIVEN
    """From one search for orphans on the workers to the next; default 1m; 0s: never."""
    origin: Text | None = None
    """Label value on what this manager makes on workers; default multikueue."""
    worker_lost_timeout: OptionalDurationField = NOT_GIVEN
    """How long a lost worker keeps its jobs; default 15m."""
    dispatcher_name: Text | None = None
    """The dispatcher that nominates workers; default Kueue's all-at-once dispatcher."""
    incremental_dispatcher_config: IncrementalDispatcherConfig | None = None
    """Settings of the incremental dispatcher."""
    external_frameworks: ListOf[ExternalFramework] | None = None
    """Further kinds of job, dispatched by the generic MultiKueue adapter."""
    cluster_profile: Mapping[str, Any] | None = None
    """Access by ClusterProfile (alpha, feature gate MultiKueueClusterProfile)."""


class FairSharingConfiguration(SpecModel):
    """Fair sharing between queues and cohorts; on where this section is present."""

    removed: ClassVar[Mapping[str, str]] = {"enable": "remove it: the section being there turns fair sharing on"}
    preemption_strategies: ListOfText[Text] | None = None
    """[LessThanOrEqualToFinalShare], [LessThanInitialShare], or both in that order."""


class AdmissionFairSharing(SpecModel):
    """Order of the LocalQueues of a queue by their past usage."""

    usage_half_life_time: OptionalDurationField = NOT_GIVEN
    """After which past usage counts half; 0s: past usage does not count."""
    usage_sampling_interval: OptionalDurationField = NOT_GIVEN
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
    outputs: OptionalQuantityMapField[LabelKey] = NOT_GIVEN
    """What one unit of the input becomes."""


class Resources(SpecModel):
    """Which resources count, and how."""

    quota_check_strategy: Text | None = None
    """BlockUndeclared (default): a job may request only resources that its queue covers; IgnoreUndeclared: any."""
    exclude_resource_prefixes: ListOfText[Text] | None = None
    """Resources that never count."""
    transformations: ListOf[ResourceTransformation] | None = None
    """Resources that become others before quota is counted."""
    device_class_mappings: ListOf[Section] | None = None
    """Names for the devices of Dynamic Resource Allocation."""

    @property
    def counted_classes(self) -> dict[str, str]:
        """See `counted_classes`."""
        return counted_classes(self.device_class_mappings or ())


class WorkloadRetention(SpecModel):
    """When Workloads are deleted."""

    after_finished: OptionalDurationField = NOT_GIVEN
    """After their end; absent: never."""
    after_deactivated_by_kueue: OptionalDurationField = NOT_GIVEN
    """After Kueue deactivated them, with the job; absent: never."""


class ObjectRetentionPolicies(SpecModel):
    """When Kueue deletes what it no longer needs."""

    workloads: WorkloadRetention | None = None
    """When Workloads are deleted; default: never."""


class KueueConfiguration(SpecModel):
    """Kueue's Configuration. `apiVersion` and `kind` are added when it is rendered."""

    removed: ClassVar[Mapping[str, str]] = {
        "queueVisibility": "remove it: the visibility API lists pending workloads on demand"
    }
    read_whole: ClassVar[bool] = True
    # Every render needs it by itself too; built later, its half of a fleet's model would be built twice.
    model_config = ConfigDict(defer_build=False)

    namespace: DnsLabel | None = None
    """Set by the fleet from `kueue.namespace`."""
    webhook: Section | None = None
    """Kueue's webhook server."""
    leader_election: Section | None = None
    """Which replica leads."""
    metrics: Section | None = None
    """What Kueue reports, and where."""
    health: Section | None = None
    """Probes."""
    pprof_bind_address: Text | None = None
    """Address of Go's profiles; default: off."""
    controller: Section | None = None
    """How Kueue's controllers work."""
    tls: Section | None = None
    """TLS of all of Kueue's servers."""
    manage_jobs_without_queue_name: Flag | None = None
    """Also manage jobs without a queue label; default false."""
    managed_jobs_namespace_selector: LabelSelector | None = None
    """Default: every namespace but kube-system and Kueue's own."""
    internal_cert_management: Section | None = None
    """Certificates that Kueue makes for itself."""
    wait_for_pods_ready: WaitForPodsReady | None = None
    """Eviction of workloads whose pods do not become ready."""
    client_connection: Section | None = None
    """How fast Kueue asks the API server."""
    integrations: Integrations | None = None
    """Kinds of job that Kueue manages."""
    multi_kueue: MultiKueueConfiguration | None = None
    """The manager's MultiKueue controller."""
    fair_sharing: FairSharingConfiguration | None = None
    """Fair sharing between queues and cohorts; default: off."""
    admission_fair_sharing: AdmissionFairSharing | None = None
    """Order of the LocalQueues of a queue by their past usage; default: off."""
    resources: Resources | None = None
    """Which resources count, and how."""
    feature_gates: Mapping[Text, Flag] | None = None
    """Overrides by name; the gates of Kueue 0.19.2 are known."""
    object_retention_policies: ObjectRetentionPolicies | None = None
    """When Kueue deletes what has ended."""
    visibility_server: Section | None = None
    """The server of pending workloads."""


def overlay(base: Any, top: Any) -> Any:
    """`base` with `top` laid over it: maps are merged key by key, everything else is replaced."""
    if not (isinstance(base, dict) and isinstance(top, dict)):
        return top
    overlaid = dict(base)
    for key, value in top.items():
        overlaid[key] = overlay(base[key], value) if key in base else value
    return overlaid
