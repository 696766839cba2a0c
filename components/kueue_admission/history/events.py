"""What happened to a Workload, read from what its cluster prints of it: the same events each time it is read.

A Workload keeps the last transition of each condition and counts its evictions; what happened in between is
not in it. Source: kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go, pkg/workload/workload.go
(SetQuotaReservation resets Evicted), pkg/workload/evict/evict.go (counts in the same write as the condition).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kueue_admission.decide.errors import AdmissionError
from kueue_admission.history.schema import Event, Kind
from kueue_admission.kernel.manifest import Manifest, inside, is_object
from kueue_admission.kernel.names import (
    ALLOWED_FLAVORS_ANNOTATION,
    ORIGIN_LABEL,
    PRIORITY_LABEL,
    REGIONS_LABEL,
    RUN_DURATION_ANNOTATION,
    RUN_SECONDS_ANNOTATION,
)
from kueue_admission.read.printed import Printed, PrintedNode, PrintedWorkload
from kueue_admission.read.workloads import Context, parse_workload

KEPT: Final = (
    PRIORITY_LABEL,
    REGIONS_LABEL,
    ALLOWED_FLAVORS_ANNOTATION,
    RUN_DURATION_ANNOTATION,
    "kueue.x-k8s.io/priority-boost",
)
"""Labels and annotations that are always kept, as decisions depend on them."""
NO_CAPACITY: Final = ("ResourcePoolExhausted", "CapacityIsNotFound")
"""Reasons for which a ProvisioningRequest is not provisioned, or failed, where there are no machines: of GKE, and of
Kubernetes' cluster autoscaler (cluster-autoscaler/provisioningrequest/conditions)."""
LONGEST_TEXT: Final = 65_536
"""Characters of pod sets, and a sixteenth of a label: what is longer is left out."""
_POD: Final = ("nodeSelector", "tolerations", "overhead", "runtimeClassName", "resources", "resourceClaims")
_CONTAINER: Final = ("resources", "restartPolicy")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Place:
    """Where objects were seen: the cluster, its region, the team of each namespace, and labels that are kept too.

    `pool_label` and `spot_label` are the labels of nodes with their pool, and with `true` for Spot.
    """

    cluster: str = ""
    region: str = ""
    team_of: Mapping[str, str] = field(default_factory=dict)
    labels: Collection[str] = ()
    pool_label: str = ""
    spot_label: str = ""
    context: Context = field(default_factory=Context)


def workload_events(workload: PrintedWorkload, place: Place) -> Iterator[Event]:
    """All that is known to have happened to a Workload, in no order. `key` is its uid, kind and time of transition.

    Nothing of a variant: what happens to it happens to the Workload of its job.
    """
    if workload.created is None or workload.parent:
        return
    owner = workload.owner
    uid = workload.uid or f"{place.cluster}/{workload.key}@{workload.created:.0f}"
    about: dict[str, Any] = {
        "cluster": place.cluster,
        "region": place.region,
        "namespace": workload.namespace,
        "workload": workload.name,
        "uid": uid,
        "job": "" if owner is None else f"{owner.kind}/{owner.name}",
        "team": place.team_of.get(workload.namespace, ""),
        "copy": ORIGIN_LABEL in workload.labels,
        "queue": workload.queue,
    }

    def event(kind: Kind, time: float, what: str = "", **more: Any) -> Event:
        key = f"{uid}/{kind}/{what}/{time:.0f}" if what else f"{uid}/{kind}/{time:.0f}"
        return Event(**{"kind": kind, "time": time, "key": key, **about, **more})

    yield event(Kind.ARRIVED, workload.created, **_arrival(workload, place))
    flavors = tuple(
        dict.fromkeys(name for assignment in workload.assignments for _, name in assignment.pairs("flavors"))
    )
    common: dict[str, Any] = {"cluster_queue": workload.cluster_queue, "flavors": flavors}
    reservation_time, admission_time = workload.since("QuotaReserved"), workload.since("Admitted")
    if reservation_time:
        yield event(Kind.RESERVED, reservation_time, **common)
        for worker in {*workload.nominated, workload.cluster_name} - {""}:
            yield event(Kind.NOMINATED, reservation_time, worker, worker=worker)
    for check in workload.checks:
        since = check.seconds("lastTransitionTime")
        if since:
            name, state = check.text("name"), check.text("state")
            yield event(Kind.CHECK, since, f"{name}/{state}", check=name, reason=state, **common)
    if admission_time:
        yield event(Kind.ADMITTED, admission_time, worker=workload.cluster_name, **common)
    ready = workload.changed_at("PodsReady")
    if ready and workload.is_true("PodsReady"):
        yield event(Kind.STARTED, ready, **common)
    elif ready and workload.reason("PodsReady") == "WaitForRecovery":
        yield event(Kind.INTERRUPTED, ready, **common)
    yield from _evictions(workload, partial(event, Kind.EVICTED))
    if end_time := workload.since("Finished"):
        yield event(Kind.ENDED, end_time, reason=workload.reason("Finished"), **common)


def _evictions(workload: PrintedWorkload, event: Any) -> Iterator[Event]:
    """One for each reason and count; a count that was skipped is that of evictions which were not seen."""
    change_time, current = (
        workload.changed_at("Evicted"),
        workload.reason("Evicted") if workload.is_true("Evicted") else "",
    )
    eviction_stats = list(workload.status.child("schedulingStats").children("evictions"))
    for condition in eviction_stats:
        reason, cause, count = condition.text("reason"), condition.text("underlyingCause"), condition.integer("count")
        alone = sum(other.text("reason") == reason for other in eviction_stats) == 1
        eviction: Event = event(
            change_time or workload.created, reason=reason, count=count, exact=reason == current and alone
        )
        # By its number, not its time: the condition has another time as soon as the Workload has quota again.
        yield replace(eviction, key=f"{eviction.uid}/{Kind.EVICTED}/{reason}/{cause}/{count}")
    if change_time and current and not any(condition.text("reason") == current for condition in eviction_stats):
        yield event(change_time, current, reason=current)


def _arrival(workload: PrintedWorkload, place: Place) -> dict[str, Any]:
    """What is submitted: no image, command, variable or volume of its pods is kept."""
    pod_sets = [_pod_set(pod_set.data) for pod_set in workload.pod_sets]
    text = json.dumps(pod_sets, separators=(",", ":"))
    labels = {**workload.labels.data, **workload.annotations.data}
    label_names = {*KEPT, *place.labels}
    labels_recorded = {
        name: labels[name] for name in sorted(label_names & set(labels)) if isinstance(labels[name], str)
    }
    reference = workload.spec.child("priorityClassRef")
    return {
        "priority": workload.spec.integer("priority"),
        "priority_class": reference.text("name") or workload.spec.text("priorityClassName"),
        "requests": _requests(workload, place.context),
        "pod_sets": text if len(text) <= LONGEST_TEXT else "",
        "labels": {name: value for name, value in labels_recorded.items() if len(value) <= LONGEST_TEXT // 16},
    }


def _requests(workload: PrintedWorkload, context: Context) -> dict[str, float]:
    try:
        amounts = parse_workload(workload, context).requests
    except AdmissionError:
        return {}  # Of a kind that admission here does not know; it is recorded as far as it is read.
    return {name: amount / 1000 if name == "cpu" else float(amount) for name, amount in amounts}


def _pod_set(data: Manifest) -> dict[str, Any]:
    spec = inside(data, "template", "spec")
    fields: dict[str, Any] = {name: spec[name] for name in _POD if name in spec}
    for group in ("containers", "initContainers"):
        group_spec = spec.get(group)
        containers = [pod_set for pod_set in group_spec if is_object(pod_set)] if isinstance(group_spec, list) else []
        if containers:
            fields[group] = [
                {name: container[name] for name in _CONTAINER if name in container} for container in containers
            ]
    if required_terms := inside(spec, "affinity", "nodeAffinity").get(_REQUIRED):
        fields["affinity"] = {"nodeAffinity": {_REQUIRED: required_terms}}
    template: dict[str, Any] = {"spec": fields}
    if seconds := inside(data, "template", "metadata", "annotations").get(RUN_SECONDS_ANNOTATION):
        template["metadata"] = {"annotations": {RUN_SECONDS_ANNOTATION: seconds}}
    own = {name: data[name] for name in ("name", "count", "minCount", "topologyRequest") if name in data}
    return {**own, "template": template}


def gone(about: Event, now: float) -> Event:
    """A Workload or node, of which `about` is an event, is no longer there; noticed now."""
    kind = Kind.NODE_GONE if about.kind is Kind.NODE_ADDED else Kind.DELETED
    names = (
        "cluster",
        "region",
        "namespace",
        "workload",
        "uid",
        "job",
        "team",
        "copy",
        "queue",
        "pool",
        "machine_type",
    )
    same = {name: getattr(about, name) for name in (*names, "spot")}
    return Event(kind=kind, time=now, key=f"{about.uid}/{kind}", exact=False, **same)


def node_events(node: PrintedNode, place: Place) -> Iterator[Event]:
    """That a node of a pool came."""
    pool = node.labels.text(place.pool_label)
    if node.created is not None and pool:
        yield Event(
            kind=Kind.NODE_ADDED,
            time=node.created,
            key=f"{node.uid}/{Kind.NODE_ADDED}",
            cluster=place.cluster,
            region=place.region,
            workload=node.name,
            uid=node.uid,
            pool=pool,
            machine_type=node.labels.text("node.kubernetes.io/instance-type"),
            spot=node.labels.text(place.spot_label) == "true",
        )


def request_events(request: Printed, place: Place) -> Iterator[Event]:
    """That a ProvisioningRequest of a Workload found no capacity: once, whether it waits on or failed.

    A condition that changes its reason alone keeps its time, so only that of a failure is exact.
    """
    owner = next((owner for owner in request.owners if owner.kind == "Workload"), None)
    for condition, status in (("Provisioned", "False"), ("Failed", "True")):
        since, condition_data = request.changed_at(condition), request.conditions.get(condition, {})
        if (
            owner is None
            or since is None
            or condition_data.get("status") != status
            or condition_data.get("reason") not in NO_CAPACITY
        ):
            continue
        name = request.name.removeprefix(f"{owner.name}-")
        yield Event(
            kind=Kind.STOCK_OUT,
            time=since,
            key=f"{request.uid}/{Kind.STOCK_OUT}",
            exact=condition == "Failed",
            cluster=place.cluster,
            region=place.region,
            namespace=request.namespace,
            workload=owner.name,
            uid=request.uid,
            team=place.team_of.get(request.namespace, ""),
            check=name.rpartition("-")[0] if name != request.name else "",
            reason=request.reason(condition),
            pool=request.status.child("provisioningClassDetails").text("NodePoolName"),
        )
        return
