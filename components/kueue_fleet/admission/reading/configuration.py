"""Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2), as far as it decides.

Source: kueue@v0.19.2 apis/config/v1beta2/{configuration_types,defaults}.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.gates import parse_gates
from kueue_fleet.admission.model import DEFAULT_STRATEGIES, Configuration, FairSharingStrategy, WaitForPodsReady
from kueue_fleet.admission.pods import ResourceRules, Transformation
from kueue_fleet.admission.reading.fields import Fields

_DURATION: Final = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def parse_configuration(data: Mapping[str, Any]) -> Configuration:
    """What decides in a Configuration; everything else in it is ignored.

    Raises ObjectError with all problems, NotModelledError for admission fair sharing and for feature gates that change
    admission in a way the core does not follow.
    """
    problems: list[str] = []
    fields = Fields(data, "", problems)
    if "admissionFairSharing" in fields:
        raise NotModelledError("admission fair sharing", "admissionFairSharing")
    gates = {name: value for name, value in fields.child("featureGates").data.items() if isinstance(value, bool)}
    resources = fields.child("resources")
    if any(resources.children("deviceClassMappings")):
        raise NotModelledError("dynamic resource allocation (deviceClassMappings)", "resources")
    found = Configuration(
        fair_sharing=_parse_fair_sharing(fields.child("fairSharing")) if "fairSharing" in fields else None,
        wait_for_pods_ready=None
        if gates.get("DisableWaitForPodsReady")
        else _parse_pods_ready(fields.child("waitForPodsReady")),
        ignore_undeclared_resources=resources.text("quotaCheckStrategy") == "IgnoreUndeclared",
        requeue_batch=10.0 if gates.get("SchedulerLongRequeueInterval") else 1.0,
        resource_rules=ResourceRules(
            resources.texts("excludeResourcePrefixes"),
            tuple(_parse_transformation(item) for item in resources.children("transformations")),
        ),
        gates=parse_gates(gates),
    )
    if problems:
        raise ObjectError(problems)
    return found


def _parse_fair_sharing(fields: Fields) -> tuple[FairSharingStrategy, ...]:
    strategies = []
    for name in fields.texts("preemptionStrategies"):
        try:
            strategies.append(FairSharingStrategy(name))
        except ValueError:
            fields.wrong("preemptionStrategies", f"has {name!r}", f"write {' or '.join(FairSharingStrategy)}")
    return tuple(strategies) or DEFAULT_STRATEGIES


def _parse_pods_ready(fields: Fields) -> WaitForPodsReady:
    default = WaitForPodsReady()
    timeout = _seconds(fields, "timeout", default.timeout)
    strategy = fields.child("requeuingStrategy")
    return WaitForPodsReady(
        timeout=timeout,
        recovery_timeout=_seconds(fields, "recoveryTimeout", timeout),
        block_admission=fields.flag("blockAdmission"),
        requeue_by_eviction=strategy.text("timestamp", "Eviction") == "Eviction",
        backoff_limit=strategy.integer("backoffLimitCount", least=0) if "backoffLimitCount" in strategy else None,
        backoff_base=float(strategy.integer("backoffBaseSeconds", 60, least=0)),
        backoff_max=float(strategy.integer("backoffMaxSeconds", 3600, least=0)),
    )


def _seconds(fields: Fields, name: str, default: float) -> float:
    """A Go duration such as `30m` or `1h30m`."""
    text = fields.text(name)
    if not text:
        return default
    match = _DURATION.fullmatch(text)
    if match is None:
        fields.wrong(name, f"{text!r} is no duration", "write one such as 30m or 1h30m")
        return default
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _parse_transformation(fields: Fields) -> Transformation:
    outputs = fields.quantities("outputs")
    return Transformation(
        input=fields.required_text("input"),
        outputs=tuple(sorted(outputs.items())),
        retain=fields.text("strategy", "Retain") != "Replace",
        multiply_by=fields.text("multiplyBy"),
    )
