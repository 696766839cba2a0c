"""Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2), as far as it decides.

Source: kueue@v0.19.2 apis/config/v1beta2/{configuration_types,defaults}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api import configuration as api
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.gates import Gates, parse_gates
from kueue_admission.decide.model import (
    DEFAULT_STRATEGIES,
    AdmissionFairSharing,
    Configuration,
    FairSharingStrategy,
    WaitForPodsReady,
)
from kueue_admission.decide.pods import ResourceRules, Transformation
from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.kernel.problem import SpecError
from kueue_admission.kernel.read_model import read_stored
from kueue_admission.releases import DEFAULT_VERSION, Release, release

_DEFAULT: Final = release(DEFAULT_VERSION)


def parse_configuration(data: Mapping[str, Any], kueue: Release = _DEFAULT) -> Configuration:
    """What decides in a Configuration of the release `kueue`; everything else in it is ignored.

    Raises ObjectError with all problems, NotModelledError for feature gates that change admission in a way the core
    does not follow.
    """
    try:
        configuration = read_stored(api.KueueConfiguration, data)
        fair_sharing = None if configuration.fair_sharing is None else _strategies(configuration.fair_sharing)
    except SpecError as error:
        raise ObjectError(error.problems) from None
    except ValueError as error:
        strategies = " or ".join(FairSharingStrategy)
        raise ObjectError([OBJECT.at("fairSharing.preemptionStrategies", str(error), f"write {strategies}")]) from None
    gates, resources = configuration.feature_gates or {}, configuration.resources or api.Resources()
    off, known_gates = gates.get("DisableWaitForPodsReady"), _gates(gates, kueue)
    wait = configuration.wait_for_pods_ready
    if wait is None and known_gates.behaviours.waits_for_pods_ready_by_default:
        wait = api.WaitForPodsReady()
    on = {**{name: gate.on for name, gate in kueue.gates.items()}, **gates}
    ignores_undeclared = resources.quota_check_strategy == "IgnoreUndeclared" and known_gates.quota_check_strategy
    return Configuration(
        fair_sharing=fair_sharing,
        admission_fair_sharing=_admission_fair_sharing(
            configuration.admission_fair_sharing, gates, known_gates.behaviours
        ),
        wait_for_pods_ready=None if off or wait is None else _pods_ready(wait),
        ignore_undeclared_resources=ignores_undeclared,
        requeue_batch=10.0 if gates.get("SchedulerLongRequeueInterval") else 1.0,
        resource_rules=ResourceRules(
            tuple(resources.exclude_resource_prefixes or ()),
            tuple(_transformation(item) for item in resources.transformations or ()),
            _device_classes(resources),
            counts_devices=on.get("KueueDRAIntegration", False) or on.get("DynamicResourceAllocation", False),
            counts_extended_devices=on.get("KueueDRAIntegrationExtendedResource", False),
            selects_devices=known_gates.behaviours.evaluates_device_selectors,
            refuses_devices=on.get("KueueDRARejectWorkloadsWhenDRADisabled", False),
        ),
        gates=known_gates,
    )


def _gates(gates: Mapping[str, bool], kueue: Release) -> Gates:
    return parse_gates(gates, {name: gate.on for name, gate in kueue.gates.items()}, Behaviours.of(kueue.version))


def _admission_fair_sharing(
    section: api.AdmissionFairSharing | None, gates: Mapping[str, bool], behaviours: Behaviours
) -> AdmissionFairSharing | None:
    if section is None or not gates.get("AdmissionFairSharing", True):
        return None
    if behaviours.counts_from_the_reservation:
        feature = "admission fair sharing that counts from the quota reservation, since Kueue 0.20,"
        raise NotModelledError(feature, "admissionFairSharing")
    half_life, interval = section.usage_half_life_time, section.usage_sampling_interval
    return AdmissionFairSharing(
        half_life=0.0 if half_life is None else half_life.seconds,
        sampling_interval=(interval.seconds if interval else 0.0) or 300.0,
        resource_weights={name: float(weight) for name, weight in (section.resource_weights or {}).items()},
    )


def _strategies(section: api.FairSharingConfiguration) -> tuple[FairSharingStrategy, ...]:
    return tuple(FairSharingStrategy(name) for name in section.preemption_strategies or ()) or DEFAULT_STRATEGIES


def _pods_ready(section: api.WaitForPodsReady) -> WaitForPodsReady:
    default, again = WaitForPodsReady(), section.requeuing_strategy or api.RequeuingStrategy()
    # 0 is the default too. Source: kueue@v0.19.2 apis/config/v1beta2/defaults.go.
    timeout = (section.timeout.seconds if section.timeout else 0.0) or default.timeout
    base, most = again.backoff_base_seconds, again.backoff_max_seconds
    return WaitForPodsReady(
        timeout=timeout,
        recovery_timeout=timeout if section.recovery_timeout is None else section.recovery_timeout.seconds,
        block_admission=bool(section.block_admission),
        requeue_by_eviction=again.timestamp in (None, "", "Eviction"),
        backoff_limit=again.backoff_limit_count,
        backoff_base=default.backoff_base if base is None else float(base),
        backoff_max=default.backoff_max if most is None else float(most),
    )


def _device_classes(section: api.Resources) -> tuple[tuple[str, str], ...]:
    """DeviceClasses with the resources as which their devices count."""
    if any(mapping.get("sources") for mapping in section.device_class_mappings or ()):
        raise NotModelledError("devices that share counters or capacity (deviceClassMappings.sources)", "resources")
    return tuple(section.counted_classes.items())


def _transformation(transformation: api.ResourceTransformation) -> Transformation:
    return Transformation(
        input=transformation.input,
        outputs=tuple(sorted((transformation.outputs or {}).items())),
        retain=transformation.strategy != "Replace",
        multiply_by=transformation.multiply_by or "",
    )
