"""What Dynamic Workload Scheduler does with ProvisioningRequests, from requests, stock and time. Deterministic, no I/O.

Source of states, reasons and durations: GKE's cluster autoscaler (github.com/GoogleCloudPlatform/cluster-autoscaler,
pkg/provisioningrequests) and https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest. The stock is
ours: the real one is not known. `dws` carries the steps out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import MAX_RUN_PARAMETER
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.printed import Printed
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.labels import (
    ARCHITECTURE,
    ARM_TAINT,
    GPU_RESOURCE,
    NODE_POOL,
    PROVISIONING,
    QUEUED,
    RESIZE_REQUEST,
    TPU_RESOURCE,
    ZONE,
    accelerator_of,
)
from kueue_rehearsal.cloud.node_planning import NodePlan, NodeSource, plan_nodes
from kueue_rehearsal.cloud.node_pools import NodePool
from kueue_rehearsal.cloud.node_sources import AutoProvisioning, PoolSource, ResourceLimits
from kueue_rehearsal.cloud.node_templates import (
    FINGERPRINT,
    FLEX_START_PROVISIONING,
    MAX_RUN_DURATION,
    TERMINATION_TIME,
    NodeTemplate,
    Place,
)
from kueue_rehearsal.cloud.pod_needs import pod_needs, tolerated
from kueue_rehearsal.node_agent.status import parse_timestamp, timestamp

STRATEGY_PARAMETER = "capacitySearchStrategy"
"""Parameter of a request: how capacity is searched."""
LONGEST_RUN_SECONDS = 7 * 24 * 3600
"""Also the default run duration."""


@dataclass(frozen=True, slots=True)
class Request:
    """A ProvisioningRequest of DWS's class."""

    key: str
    uid: str
    created: str
    parameters: Mapping[str, str]
    pod_sets: tuple[tuple[str, int], ...]
    """(name of the PodTemplate, count)"""
    conditions: Mapping[str, Manifest]
    generation: int = 1

    @property
    def resize_request(self) -> str:
        """The name of GKE's resize request: at most 20 characters of namespace and name each, and a hash of both."""
        namespace, _, name = self.key.partition("/")
        digest = hashlib.sha256(self.key.encode()).hexdigest()[:16]
        return f"gke-{namespace[:20]}-{name[:20]}-{digest}"

    def holds(self, condition: str) -> bool:
        """Whether the condition is True."""
        printed_condition = self.conditions.get(condition)
        return printed_condition is not None and printed_condition["status"] == "True"

    @property
    def is_terminal(self) -> bool:
        """Failed and CapacityRevoked are never left."""
        return self.holds("Failed") or self.holds("CapacityRevoked")


def parse_request(item: Manifest) -> Request:
    """From the API object."""
    metadata, spec = item["metadata"], item["spec"]
    return Request(
        key=f"{metadata['namespace']}/{metadata['name']}",
        uid=metadata["uid"],
        created=metadata["creationTimestamp"],
        parameters=spec.get("parameters") or {},
        pod_sets=tuple((one["podTemplateRef"]["name"], one["count"]) for one in spec["podSets"]),
        conditions=Printed.of(item).conditions,
        generation=metadata.get("generation", 1),
    )


def _draw(settings: RehearsalSection, *parts: object) -> float:
    """A number in [0, 1) that depends on the seed and the parts only."""
    text = "/".join(str(part) for part in (settings.seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def stock_range(settings: RehearsalSection, region: str, accelerator: str) -> tuple[int, int]:
    """The fewest and the most GPUs that DWS could ever give out at once in the region, those in use included."""
    for place in (f"{region}/{accelerator}", region, accelerator):
        if (limits := settings.dws.stock.get(place)) is not None:
            return limits.low, limits.high
    return settings.dws.low, settings.dws.high


def stock(settings: RehearsalSection, region: str, accelerator: str, elapsed_seconds: float) -> int:
    """How many GPUs DWS could give out in the region, those in use included, `elapsed_seconds` after the rehearsal
    began."""
    low, high = stock_range(settings, region, accelerator)
    period = int(elapsed_seconds // settings.dws.interval_seconds)
    return low + int(_draw(settings, "stock", region, accelerator, period) * (high - low + 1))


def _drawn_for(request: Request, region: str) -> tuple[str, ...]:
    """A request has the same name on every worker of MultiKueue: the region makes them differ."""
    return (request.key, region) if region else (request.key,)


def wait_seconds(settings: RehearsalSection, request: Request, region: str = "") -> float:
    """How long the request waits at least, once accepted."""
    share = _draw(settings, "wait", *_drawn_for(request, region))
    return settings.dws.least_wait_seconds + share * (settings.dws.most_wait_seconds - settings.dws.least_wait_seconds)


def max_run_seconds(request: Request) -> int:
    """How long the capacity stays at most. Raises ValueError for a parameter that GKE refuses."""
    text = request.parameters.get(MAX_RUN_PARAMETER)
    if text is None:
        return LONGEST_RUN_SECONDS
    seconds = whole_number(text)
    if not seconds or seconds > LONGEST_RUN_SECONDS:
        raise ValueError(
            f"parameters.{MAX_RUN_PARAMETER}: {text!r} is not a number of seconds between 1 and "
            f"{LONGEST_RUN_SECONDS} (7 days)"
        )
    return seconds


@dataclass(frozen=True, slots=True)
class Supply:
    """Where nodes for requests come from."""

    place: Place
    autopilot: bool = True
    pools: tuple[NodePool, ...] = ()
    """The pools of a Standard cluster that have queued provisioning on."""
    limits: ResourceLimits | None = None
    """Node auto-provisioning of a Standard cluster; None where it is off."""

    def sources(self, request: Request, seconds: int, now: float) -> tuple[NodeSource, ...]:
        """The sources of the nodes of one request, which live for `seconds` at most."""
        bound = {RESIZE_REQUEST: request.resize_request}
        node_sources: list[NodeSource] = []
        for pool in self.pools:
            longest = min(seconds, pool.view.max_run_seconds or LONGEST_RUN_SECONDS)
            labels = bound | {MAX_RUN_DURATION: str(longest)}
            end = {TERMINATION_TIME: timestamp(now + longest)}
            node_sources.append(PoolSource(pool, self.place, {}, labels=labels, annotations=end, whole=True))
        if self.autopilot or self.limits is not None:
            labels = bound | {
                QUEUED: "true",
                PROVISIONING: FLEX_START_PROVISIONING,
                MAX_RUN_DURATION: str(seconds),
            }
            node_sources.append(
                AutoProvisioning(
                    self.place,
                    limits=self.limits,
                    autopilot=self.autopilot,
                    labels=labels,
                    taints=({"key": QUEUED, "value": "true", "effect": "NoSchedule"},),
                    annotations={TERMINATION_TIME: timestamp(now + seconds)},
                )
            )
        return tuple(node_sources)


def plan_request(request: Request, templates: Mapping[str, Manifest], supply: Supply, now: float) -> NodePlan:
    """The nodes for all pods of the request at once, on new machines only. Raises ValueError when it cannot be served.

    `templates` maps the name of a PodTemplate to it.
    """
    seconds = max_run_seconds(request)
    strategy = request.parameters.get(STRATEGY_PARAMETER)
    if strategy:
        raise ValueError(f"parameters.{STRATEGY_PARAMETER}: {strategy!r} is not modelled; leave it out")
    waiting = []
    for name, count in request.pod_sets:
        if name not in templates:
            raise ValueError(f'PodTemplate "{name}" not found')
        spec = templates[name]["template"]["spec"]
        for number in range(count):
            needs = pod_needs(f"{request.key}/{name}/{number:05}", f"{request.uid}/{name}/{number}", spec)
            arm = [ARCHITECTURE] if needs.node_selector.get(ARCHITECTURE) == ARM_TAINT.value else []
            waiting.append(tolerated(needs, QUEUED, GPU_RESOURCE, TPU_RESOURCE, *arm))
    sources = supply.sources(request, seconds, now)
    if not sources:
        raise ValueError("the cluster has no node pool with queued provisioning, and no node auto-provisioning")
    plan = plan_nodes(waiting, {}, {}, sources)
    if plan.refused:
        raise ValueError(next(iter(plan.refused.values())))
    if not all(node.machine.accelerators for node in plan.add):
        raise ValueError("queued provisioning is for GPUs and TPUs: every pod set must ask for one")
    return plan


def demand(templates: Sequence[NodeTemplate]) -> dict[str, int]:
    """What the nodes take: GPUs or TPU chips of each accelerator, and places in node pools."""
    total: dict[str, int] = {}
    for template in templates:
        accelerator = accelerator_of(template.labels)
        total[accelerator] = total.get(accelerator, 0) + template.machine.accelerators
        if FINGERPRINT in template.annotations:
            place = places_of(template.labels[NODE_POOL])
            total[place] = total.get(place, 0) + 1
    return total


def places_of(pool: str) -> str:
    """What the free places of a pool are called among the things that a request may wait for."""
    return f"nodes of pool {pool}"


@dataclass(frozen=True, slots=True)
class SetCondition:
    """Write a condition."""

    type: str
    status: str
    reason: str
    message: str
    details: Mapping[str, str] = field(default_factory=dict)
    """Merged into status.provisioningClassDetails."""


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """Bring up the request's nodes, all of them."""

    templates: tuple[NodeTemplate, ...]


@dataclass(frozen=True, slots=True)
class Situation:
    """What else decides about a request."""

    plan: NodePlan | str
    """The nodes it needs, or why it cannot be served."""
    available: Mapping[str, int]
    """GPUs of each accelerator that are free in the region now."""
    nodes: int
    """How many of the planned nodes exist."""
    ready_nodes: int
    region: str = ""


def next_step(
    request: Request, situation: Situation, settings: RehearsalSection, now: float
) -> SetCondition | CreateNodes | None:
    """The one thing to do about the request now, or None. `now` in seconds since the epoch."""
    if request.is_terminal:
        return None
    if not request.conditions:
        return SetCondition("Accepted", "False", "NotAccepted", "The request has not been accepted yet.")
    if isinstance(situation.plan, str):
        return SetCondition("Failed", "True", "InvalidArgument", situation.plan)
    if not request.holds("Accepted"):
        if now - _since(request, "Accepted") < settings.dws.accept_seconds:
            return None
        return SetCondition(
            "Accepted", "True", "SuccessfullyQueued", "The request is queued.", _details(request, situation.plan)
        )
    if not request.holds("Provisioned"):
        return _provision(request, situation, situation.plan, settings, now)
    return _end_of_capacity(request, situation, settings, now)


def _since(request: Request, condition: str) -> float:
    return parse_timestamp(request.conditions[condition]["lastTransitionTime"])


def _details(request: Request, plan: NodePlan) -> dict[str, str]:
    first = plan.add[0]
    return {
        "ResizeRequestName": request.resize_request,
        "NodeGroupName": f"{first.labels[NODE_POOL]}-grp",
        "NodePoolName": first.labels[NODE_POOL],
        "NodePoolAutoProvisioned": "false" if FINGERPRINT in first.annotations else "true",
        "AcceleratorType": accelerator_of(first.labels),
        "SelectedZone": first.labels[ZONE],
        "PodTemplateName": ",".join(name for name, _ in request.pod_sets),
        "ProvisioningMode": "resize_request",
    }


def _provision(
    request: Request, situation: Situation, plan: NodePlan, settings: RehearsalSection, now: float
) -> SetCondition | CreateNodes | None:
    wanted_count = len(plan.add)
    if situation.nodes:
        if situation.nodes < wanted_count:
            return CreateNodes(plan.add)
        if situation.ready_nodes < wanted_count:
            return None
        return SetCondition("Provisioned", "True", "Provisioned", "All nodes of the request are up.")
    waited = now - _since(request, "Accepted")
    if waited < wait_seconds(settings, request, situation.region):
        return None
    fail_percent = settings.dws.fail_percent_in.get(situation.region, settings.dws.fail_percent)
    if _draw(settings, "fail", *_drawn_for(request, situation.region)) * 100 < fail_percent:
        return SetCondition("Failed", "True", "ResourcePoolExhausted", "The zone has no capacity for the request.")
    short = {name: amount for name, amount in demand(plan.add).items() if situation.available.get(name, 0) < amount}
    if not short:
        return CreateNodes(plan.add)
    if request.conditions.get("Provisioned", {}).get("reason") == "ResourcePoolExhausted":
        return None
    text = ", ".join(f"{amount} {name}" for name, amount in sorted(short.items()))
    return SetCondition(
        "Provisioned", "False", "ResourcePoolExhausted", f"Waiting for capacity: {text} are not available now."
    )


def _end_of_capacity(
    request: Request, situation: Situation, settings: RehearsalSection, now: float
) -> SetCondition | None:
    """Booking ends after ten minutes, used or not; capacity goes at the end of the run duration. Both count from
    Provisioned."""
    age = now - _since(request, "Provisioned")
    drawn = _draw(settings, "revoke", *_drawn_for(request, situation.region))
    revoked_early = drawn * 100 < settings.dws.revoke_percent and age >= settings.dws.revoke_seconds
    if age >= max_run_seconds(request) or revoked_early:
        return SetCondition("CapacityRevoked", "True", "CapacityRevoked", "The request's capacity has been reclaimed.")
    if age >= settings.dws.booking_seconds and not request.holds("BookingExpired"):
        return SetCondition(
            "BookingExpired", "True", "BookingExpired", "The booking has ended; idle nodes may be removed now."
        )
    return None


def updated_status(request: Request, details: Mapping[str, str], step: SetCondition, now: float) -> dict[str, Any]:
    """The whole new status, for a merge patch. A condition's time changes only with its status."""
    conditions = [dict(one) for one in request.conditions.values() if one["type"] != step.type]
    old = request.conditions.get(step.type)
    since = old["lastTransitionTime"] if old and old["status"] == step.status else timestamp(now)
    conditions.append(
        {
            "type": step.type,
            "status": step.status,
            "reason": step.reason,
            "message": step.message,
            "lastTransitionTime": since,
            "observedGeneration": request.generation,
        }
    )
    return {"conditions": conditions, "provisioningClassDetails": {**details, **step.details}}


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node that was made for a request."""

    name: str
    resize_request: str
    active_pods: int
    ever_used: bool
    """A pod runs or has run on it."""
    empty_since: float | None


def plan_node_removals(
    nodes: Sequence[NodeUse], requests: Mapping[str, Request], settings: RehearsalSection, now: float
) -> list[str]:
    """The nodes to give back. `requests` maps the resize request's name to the request.

    A node goes when its request's capacity was revoked, whatever runs there; else only when it is empty: at once if
    the request is deleted, failed or past its booking, and after `idle_seconds` if its pods have come and gone.
    """
    gone = []
    for node in nodes:
        request = requests.get(node.resize_request)
        if request is not None and request.holds("CapacityRevoked"):
            gone.append(node.name)
        elif node.active_pods or node.empty_since is None:
            continue
        elif (
            request is None
            or request.holds("Failed")
            or request.holds("BookingExpired")
            or (node.ever_used and now - node.empty_since >= settings.dws.idle_seconds)
        ):
            gone.append(node.name)
    return gone
