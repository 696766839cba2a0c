"""The rules of those sections of Kueue's Configuration that change admission or that the fleet writes.

Kueue itself checks these when it starts, and does not start if one is broken. So it does for the values of the other
sections, of which `releases` knows the fields alone.

Source: kueue@v0.19.2 pkg/config/validation.go, the function named on each rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import Final

from kueue_admission.api.configuration import KueueConfiguration
from kueue_admission.api.job_kinds import built_in_adapters
from kueue_admission.kernel import suggest, syntax
from kueue_admission.kernel.duration import Duration
from kueue_admission.kernel.form_rules import (
    EXCLUDED,
    LISTED_TWICE,
    MISSING,
    NOT_ALLOWED,
    OUT_OF_RANGE,
    WRONG_TYPE,
    listed_twice,
)
from kueue_admission.kernel.model_problems import syntax_problems
from kueue_admission.kernel.problem import Problem
from kueue_admission.releases import Release
from kueue_fleet.fleet_file.check.releases import severity, which_have
from kueue_fleet.fleet_file.model.clusters import INCREMENTAL
from kueue_fleet.fleet_file.model.operators import framework_problems
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.rules.queues import PATIENCE
from kueue_fleet.fleet_file.rules.teams import FEATURE_GATE, FRAMEWORK, MANAGED_NAMESPACES

_NODES_COME: Final = 120
"""Seconds in which hardly any node comes that GKE has yet to make."""
_MOST_MAPPINGS: Final = 16
_MOST_CLASSES: Final = 8
_STRATEGIES: Final = (
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
    ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
)


def configuration_problems(configuration: KueueConfiguration, namespace: str, kueue: Release) -> Iterator[Problem]:
    """Every broken rule of `configuration`, for the release of `kueue` that runs in `namespace`."""
    yield from _wait_for_pods_ready(configuration, kueue)
    yield from _integrations(configuration)
    yield from _multi_kueue(configuration)
    yield from _fair_sharing(configuration)
    yield from _admission_fair_sharing(configuration)
    yield from _resources(configuration, kueue)
    yield from _device_classes(configuration)
    yield from _managed_jobs(configuration, namespace)
    yield from _retention(configuration)
    yield from _feature_gates(configuration, kueue)


def _not_negative(path: str, value: Duration | int | float | None) -> Iterator[Problem]:
    number = value.nanoseconds if isinstance(value, Duration) else value
    if number is not None and number < 0:
        yield OUT_OF_RANGE.at(path, f"{value} is negative", "write 0 or more")


def _wait_for_pods_ready(configuration: KueueConfiguration, kueue: Release) -> Iterator[Problem]:
    """validateWaitForPodsReady. A timeout of 0 becomes the default (defaults.go)."""
    settings = configuration.wait_for_pods_ready
    if settings is None or kueue.gate_is_on("DisableWaitForPodsReady", configuration.feature_gates):
        return
    at = "waitForPodsReady"
    yield from _not_negative(f"{at}.timeout", settings.timeout)
    if settings.timeout is not None and 0 < settings.timeout.seconds < _NODES_COME:
        wrong = f"{settings.timeout}, after which Kueue evicts a job, and a node that GKE has yet to make takes minutes"
        yield PATIENCE.at(f"{at}.timeout", wrong, "write 10m or more")
    yield from _not_negative(f"{at}.recoveryTimeout", settings.recovery_timeout)
    strategy = settings.requeuing_strategy
    if strategy is None:
        return
    at = f"{at}.requeuingStrategy"
    yield from _one_of(f"{at}.timestamp", strategy.timestamp, ("Eviction", "Creation"))
    yield from _not_negative(f"{at}.backoffLimitCount", strategy.backoff_limit_count)
    yield from _not_negative(f"{at}.backoffBaseSeconds", strategy.backoff_base_seconds)
    yield from _not_negative(f"{at}.backoffMaxSeconds", strategy.backoff_max_seconds)


def _one_of(path: str, value: str | None, allowed_values: Sequence[str]) -> Iterator[Problem]:
    if value is not None and value not in allowed_values:
        yield NOT_ALLOWED.at(path, f"{value} is not allowed", suggest.instead(value, allowed_values, "values"))


def _integrations(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateIntegrations."""
    settings = configuration.integrations
    if settings is None:
        return
    seen_names: set[str] = set()
    yield from framework_problems("integrations.frameworks", settings.frameworks or ())
    for index, name in enumerate(settings.frameworks or ()):
        if name in seen_names:
            yield listed_twice(f"integrations.frameworks[{index}]", name, "framework")
        seen_names.add(name)
    for index, name in enumerate(settings.external_frameworks or ()):
        yield from _kind_of_others(f"integrations.externalFrameworks[{index}]", name, seen_names)
        seen_names.add(name)


def frameworks_of(configuration: KueueConfiguration) -> Sequence[str]:
    """The kinds of job that Kueue manages: batch/job where none are named (defaults.go)."""
    return (configuration.integrations.frameworks if configuration.integrations else None) or ("batch/job",)


def _kind_of_others(path: str, name: str, seen_kinds: Set[str]) -> Iterator[Problem]:
    """A kind of jobs that is not Kueue's own: its form, and that it is not listed before."""
    if name.count(".") < 2:
        yield FRAMEWORK.at(
            path, f"{name} is not of the form Kind.version.group", "write it so, as in Foo.v1.example.com"
        )
    elif name in seen_kinds:
        yield listed_twice(path, name, "kind")


def _multi_kueue(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateMultiKueue."""
    settings = configuration.multi_kueue
    if settings is None:
        return
    yield from _not_negative("multiKueue.gcInterval", settings.gc_interval)
    yield from _not_negative("multiKueue.workerLostTimeout", settings.worker_lost_timeout)
    if settings.origin is not None:
        yield from syntax_problems("multiKueue.origin", settings.origin, syntax.label_value)
    built_in = built_in_adapters(frameworks_of(configuration))
    seen_names: set[str] = set()
    for index, framework in enumerate(settings.external_frameworks or ()):
        path = f"multiKueue.externalFrameworks[{_item_label(framework.name, index)}].name"
        yield from _kind_of_others(path, framework.name, seen_names)
        if framework.name in built_in and framework.name not in seen_names:
            yield FRAMEWORK.at(path, f"Kueue dispatches {framework.name} by itself", "remove it")
        seen_names.add(framework.name)
    incremental = settings.incremental_dispatcher_config
    if incremental is not None:
        at = "multiKueue.incrementalDispatcherConfig"
        if settings.dispatcher_name != INCREMENTAL:
            yield EXCLUDED.at(
                at, f"set, but dispatcherName is {settings.dispatcher_name or 'not set'}", f"set it to {INCREMENTAL}"
            )
        if incremental.step_size is not None and incremental.step_size < 1:
            yield OUT_OF_RANGE.at(f"{at}.stepSize", f"{incremental.step_size} is less than 1", "write 1 or more")


def _fair_sharing(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateFairSharing."""
    settings = configuration.fair_sharing
    if settings is None:
        return
    path = "fairSharing.preemptionStrategies"
    choices = " or ".join(f"[{', '.join(names)}]" for names in _STRATEGIES)
    if not settings.preemption_strategies:
        yield MISSING.at(path, "is missing", f"write {choices}")
    elif settings.preemption_strategies not in _STRATEGIES:
        yield NOT_ALLOWED.at(path, f"[{', '.join(settings.preemption_strategies)}] is not allowed", f"write {choices}")


def _admission_fair_sharing(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateAdmissionFairSharing. A sampling interval of 0 becomes the default (defaults.go)."""
    settings = configuration.admission_fair_sharing
    if settings is None:
        return
    yield from _not_negative("admissionFairSharing.usageHalfLifeTime", settings.usage_half_life_time)
    yield from _not_negative("admissionFairSharing.usageSamplingInterval", settings.usage_sampling_interval)
    for name, weight in (settings.resource_weights or {}).items():
        yield from _not_negative(f"admissionFairSharing.resourceWeights[{name}]", weight)


def _resources(configuration: KueueConfiguration, kueue: Release) -> Iterator[Problem]:
    """validateQuotaCheckStrategy, validateResourceTransformations, and what Kueue leaves out before it transforms.

    Source of the last: pkg/workload/workload.go (dropExcludedResources), https://github.com/kubernetes-sigs/kueue/issues/14204.
    """
    settings = configuration.resources
    if settings is None:
        return
    strategy = settings.quota_check_strategy
    if kueue.gate_is_on("QuotaCheckStrategy", configuration.feature_gates):
        yield from _one_of("resources.quotaCheckStrategy", strategy, ("BlockUndeclared", "IgnoreUndeclared"))
        if strategy == "IgnoreUndeclared" and settings.exclude_resource_prefixes:
            yield EXCLUDED.at(
                "resources.excludeResourcePrefixes",
                f"{', '.join(settings.exclude_resource_prefixes)} given, but quotaCheckStrategy is IgnoreUndeclared",
                "remove one of the two",
            )
    elif strategy == "IgnoreUndeclared" and kueue.has_gate("QuotaCheckStrategy"):
        yield NO_EFFECT.at(
            "resources.quotaCheckStrategy",
            f"{strategy} has no effect, since the feature gate QuotaCheckStrategy of Kueue {kueue.version} is off",
            "set featureGates.QuotaCheckStrategy to true, or cover what jobs request",
        )
    seen_names: set[str] = set()
    excluded_prefixes = tuple(settings.exclude_resource_prefixes or ())
    for index, transformation in enumerate(settings.transformations or ()):
        at = f"resources.transformations[{index}]"
        yield from _one_of(f"{at}.strategy", transformation.strategy, ("Retain", "Replace"))
        if transformation.input in seen_names:
            yield LISTED_TWICE.at(
                f"{at}.input", f"{transformation.input} is transformed twice", "write one entry for each input"
            )
        seen_names.add(transformation.input)
        for field, name, lost in (
            ("input", transformation.input, "counts as nothing"),
            ("multiplyBy", transformation.multiply_by or "", "multiplies nothing"),
        ):
            if name and name.startswith(excluded_prefixes):
                wrong = f"{name} {lost}, since resources.excludeResourcePrefixes leaves it out first"
                yield NO_EFFECT.at(f"{at}.{field}", wrong, "exclude a longer prefix, or remove the transformation")


def _device_classes(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateDeviceClassMappings; `sources` is passed on unread."""
    mappings = (configuration.resources and configuration.resources.device_class_mappings) or ()
    at = "resources.deviceClassMappings"
    if len(mappings) > _MOST_MAPPINGS:
        yield OUT_OF_RANGE.at(at, f"{len(mappings)} mappings", f"write at most {_MOST_MAPPINGS}")
    names: set[str] = set()
    resources: dict[str, str] = {}
    for index, mapping in enumerate(mappings):
        here, name, classes = f"{at}[{index}]", mapping.get("name"), mapping.get("deviceClassNames")
        if not isinstance(name, str):
            yield MISSING.at(f"{here}.name", "is missing", "write the resource that queues have quota for")
        elif name in names:
            yield listed_twice(f"{here}.name", name, "resource")
        else:
            names.add(name)
            yield from syntax_problems(f"{here}.name", name, syntax.label_key)
        if not isinstance(classes, list | tuple) or not classes:
            fix = "list the DeviceClasses that count as the resource"
            if classes:
                yield WRONG_TYPE.at(f"{here}.deviceClassNames", "is not a list", fix)
            else:
                yield MISSING.at(f"{here}.deviceClassNames", "is missing or empty", fix)
            continue
        if len(classes) > _MOST_CLASSES:
            yield OUT_OF_RANGE.at(
                f"{here}.deviceClassNames", f"{len(classes)} classes", f"write at most {_MOST_CLASSES}"
            )
        for number, device_class in enumerate(map(str, classes)):
            path = f"{here}.deviceClassNames[{number}]"
            yield from syntax_problems(path, device_class, syntax.label_key)
            if device_class in resources and not mapping.get("sources"):
                yield LISTED_TWICE.at(
                    path, f"{device_class} counts as {resources[device_class]} already", "keep one of the two"
                )
            resources.setdefault(device_class, str(name))


def _managed_jobs(configuration: KueueConfiguration, namespace: str) -> Iterator[Problem]:
    """validateManagedJobsNamespaceSelector, validateNamespaceSelectorForPodIntegration."""
    selector = configuration.managed_jobs_namespace_selector
    if selector is None:
        return
    problems = list(selector.own_problems())
    for problem in problems:
        yield problem.at("managedJobsNamespaceSelector")
    for name in () if problems else ("kube-system", namespace):
        if selector.matches({"kubernetes.io/metadata.name": name}):
            yield MANAGED_NAMESPACES.at(
                "managedJobsNamespaceSelector",
                f"matches {name}, where Kueue must not manage jobs",
                f"add a matchExpression: kubernetes.io/metadata.name NotIn [kube-system, {namespace}]",
            )


def _retention(configuration: KueueConfiguration) -> Iterator[Problem]:
    """validateObjectRetentionPolicies."""
    policies = configuration.object_retention_policies
    if policies is None or policies.workloads is None:
        return
    at = "objectRetentionPolicies.workloads"
    yield from _not_negative(f"{at}.afterFinished", policies.workloads.after_finished)
    yield from _not_negative(f"{at}.afterDeactivatedByKueue", policies.workloads.after_deactivated_by_kueue)


def _feature_gates(configuration: KueueConfiguration, kueue: Release) -> Iterator[Problem]:
    """LoadAndValidateFeatureGates, validateFeatureGateDependency."""
    gates, known_gates = configuration.feature_gates or {}, kueue.gates
    for name, value in gates.items():
        path = f"featureGates[{name}]"
        if name not in known_gates:
            yield FEATURE_GATE.at(
                path,
                f"Kueue {kueue.version} has no feature gate {name}",
                which_have(partial(Release.has_gate, name=name)) or suggest.instead(name, known_gates, "gates"),
                severity(kueue),
            )
        elif known_gates[name].locked and value is not known_gates[name].on:
            gate_default = str(known_gates[name].on).lower()
            yield FEATURE_GATE.at(path, f"{name} is locked to {gate_default} in Kueue {kueue.version}", "remove it")
    for name, gate in known_gates.items():
        for other in gate.needs:
            if kueue.gate_is_on(name, gates) and not kueue.gate_is_on(other, gates):
                path = f"featureGates[{other if other in gates else name}]"
                yield FEATURE_GATE.at(
                    path, f"{name} is on, but needs {other}, which is off", f"set {other} to true or {name} to false"
                )


def _item_label(name: str, index: int) -> str:
    """How an item of a list is called in a path: by its name, or by its index where it has none or a very long one."""
    return name if 0 < len(name) <= 253 else str(index)
