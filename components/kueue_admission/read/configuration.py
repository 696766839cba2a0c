"""Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2), as far as it decides.

Source: kueue@v0.19.2 apis/config/v1beta2/{configuration_types,defaults}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api.quotas import counted_classes
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.gates import parse_gates
from kueue_admission.decide.model import (
    DEFAULT_STRATEGIES,
    AdmissionFairSharing,
    Configuration,
    FairSharingStrategy,
    WaitForPodsReady,
)
from kueue_admission.decide.pods import ResourceRules, Transformation
from kueue_admission.read.fields import Fields
from kueue_admission.releases import DEFAULT_VERSION, Release, release

_DEFAULT: Final = release(DEFAULT_VERSION)


def parse_configuration(data: Mapping[str, Any], kueue: Release = _DEFAULT) -> Configuration:
    """What decides in a Configuration of the release `kueue`; everything else in it is ignored.

    Raises ObjectError with all problems, NotModelledError for feature gates that change admission in a way the core
    does not follow.
    """
    fields = Fields(data, "", [])
    gate_fields, resources = fields.child("featureGates"), fields.child("resources")
    gates = {str(name): gate_fields.flag(name) for name in gate_fields.data}
    fair_sharing = _strategies(fields.child("fairSharing")) if "fairSharing" in fields else None
    usage = _admission_fair_sharing(fields.child("admissionFairSharing")) if "admissionFairSharing" in fields else None
    pods_ready = _pods_ready(fields.child("waitForPodsReady"))
    prefixes, check_strategy = resources.texts("excludeResourcePrefixes"), resources.text("quotaCheckStrategy")
    transformations = tuple(map(_transformation, resources.children("transformations")))
    mappings = [mapping.data for mapping in resources.children("deviceClassMappings")]
    if fields.problems:
        raise ObjectError(fields.problems)
    if any(mapping.get("sources") for mapping in mappings):
        raise NotModelledError("devices that share counters or capacity (deviceClassMappings.sources)", "resources")
    by_default = {name: gate.on for name, gate in kueue.gates.items()}
    on, known_gates = by_default | gates, parse_gates(gates, by_default, Behaviours.of(kueue.version))
    behaviours = known_gates.behaviours
    if not gates.get("AdmissionFairSharing", True):
        usage = None
    if usage is not None and behaviours.counts_from_the_reservation:
        feature = "admission fair sharing that counts from the quota reservation, since Kueue 0.20,"
        raise NotModelledError(feature, "admissionFairSharing")
    waits = "waitForPodsReady" in fields or behaviours.waits_for_pods_ready_by_default
    return Configuration(
        fair_sharing=fair_sharing,
        admission_fair_sharing=usage,
        wait_for_pods_ready=pods_ready if waits and not gates.get("DisableWaitForPodsReady") else None,
        ignore_undeclared_resources=check_strategy == "IgnoreUndeclared" and known_gates.quota_check_strategy,
        requeue_batch=10.0 if gates.get("SchedulerLongRequeueInterval") else 1.0,
        resource_rules=ResourceRules(
            prefixes,
            transformations,
            tuple(counted_classes(mappings).items()),
            counts_devices=on.get("KueueDRAIntegration", False) or on.get("DynamicResourceAllocation", False),
            counts_extended_devices=on.get("KueueDRAIntegrationExtendedResource", False),
            selects_devices=behaviours.evaluates_device_selectors,
            refuses_devices=on.get("KueueDRARejectWorkloadsWhenDRADisabled", False),
        ),
        gates=known_gates,
    )


def _admission_fair_sharing(section: Fields) -> AdmissionFairSharing:
    return AdmissionFairSharing(
        half_life=section.length("usageHalfLifeTime", 0.0),
        sampling_interval=section.length("usageSamplingInterval", 0.0) or 300.0,
        resource_weights=section.numbers("resourceWeights"),
    )


def _strategies(section: Fields) -> tuple[FairSharingStrategy, ...]:
    try:
        return tuple(map(FairSharingStrategy, section.texts("preemptionStrategies"))) or DEFAULT_STRATEGIES
    except ValueError as error:
        section.wrong("preemptionStrategies", str(error), f"write {' or '.join(FairSharingStrategy)}")
        return DEFAULT_STRATEGIES


def _pods_ready(section: Fields) -> WaitForPodsReady:
    default, again = WaitForPodsReady(), section.child("requeuingStrategy")
    # 0 is the default too. Source: kueue@v0.19.2 apis/config/v1beta2/defaults.go.
    timeout = section.length("timeout", 0.0) or default.timeout
    return WaitForPodsReady(
        timeout=timeout,
        recovery_timeout=section.length("recoveryTimeout", timeout),
        block_admission=section.flag("blockAdmission"),
        requeue_by_eviction=again.text("timestamp") in ("", "Eviction"),
        backoff_limit=again.integer("backoffLimitCount") if "backoffLimitCount" in again else None,
        backoff_base=float(again.integer("backoffBaseSeconds", int(default.backoff_base))),
        backoff_max=float(again.integer("backoffMaxSeconds", int(default.backoff_max))),
    )


def _transformation(section: Fields) -> Transformation:
    return Transformation(
        input=section.required_text("input"),
        outputs=tuple(sorted(section.quantities("outputs").items())),
        retain=section.text("strategy") != "Replace",
        multiply_by=section.text("multiplyBy"),
    )
