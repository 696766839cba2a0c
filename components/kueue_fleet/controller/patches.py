"""What is written: bodies of server-side apply, and events.

Each field manager states all that it owns in every body, or the server would remove the rest. The resource version
is in each body too: what was decided about an object that changed meanwhile is refused, and decided again.
`status.nominatedClusterNames` is under a manager of our own, which Kueue's MutatingAdmissionPolicy
clear-nominated-cluster-names, or its gate WorkloadRequestUseMergePatch, makes possible.
Source: kueue@v0.19.2 config/components/map/manifests.yaml, pkg/workload/patching/patching.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import ALLOWED_FLAVORS_ANNOTATION, FALLBACK_CHECK, KUEUE_API
from kueue_admission.read.dispatch_report import (
    DATA_CONDITION,
    DISPATCH_CONDITION,
    WAITING_CONDITION,
    DispatchData,
    GivenUp,
    describe_report,
    write_data,
)
from kueue_fleet.controller.configured_quota import KUEUE
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import CheckDecision, Copy, Decision, report_of
from kueue_fleet.dispatch.assignment import ASSIGNED_CONDITION, assignment_reason
from kueue_fleet.dispatch.budgets import OVER_BUDGET_CONDITION
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION, PROVISIONING_TIMEOUT, RETRIES_USED, describe_given_up
from kueue_fleet.kube.answers import Json
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK

DISPATCH_MANAGER: Final = "kueue-fleet-dispatcher"
"""Field manager of nominations."""
CHECK_MANAGER: Final = "kueue-fleet-checks"
"""Field manager of the states of admission checks."""
REJECT_MANAGER: Final = "kueue-fleet-rejections"
"""Field manager of MultiKueue checks that are Rejected or Retry: the dispatcher's next body would remove the check."""
FALLBACK_MANAGER: Final = FALLBACK_CHECK
"""Field manager of the flavors that a Workload may have, and of the check by which it is taken back from one."""
ASSIGNMENT_MANAGER: Final = ASSIGNMENT_CHECK
"""Field manager of assignments, on the manager and on the workers."""
ASK_AGAIN_MANAGER: Final = "kueue-fleet-ask-again"
"""Field manager of what is said about ProvisioningRequests of the controller's own cluster."""
RESET_MANAGER: Final = "kueue-fleet-reset"
"""Field manager of checks that are Pending again."""
WAITING_MANAGER: Final = "kueue-fleet-waiting"
"""Field manager of what is said about a Workload that waits."""
_EVENT_TEXT: Final = 1024


def status_path(key: str) -> str:
    """Where the status of the Workload `namespace/name` is."""
    return f"{workload_path(key)}/status"


def workload_path(key: str) -> str:
    """Where the Workload `namespace/name` is."""
    namespace, _, name = key.partition("/")
    return f"{KUEUE}/namespaces/{namespace}/workloads/{name}"


def allowed_flavors_body(record: Record, flavors: Sequence[str]) -> Json:
    """The annotation by which Kueue gives a Workload these flavors only."""
    body = _head(record)
    body["metadata"]["annotations"] = {ALLOWED_FLAVORS_ANNOTATION: ",".join(flavors)}
    return body


def dispatch_body(record: Record, decision: Decision, given_up: Mapping[str, GivenUp], stays: str = "") -> Json:
    """The status as the dispatcher wants it; `stays` is why the workload is not taken back any more."""
    report, began, is_nominated = report_of(decision), decision.started, bool(decision.nominated)
    conditions = [
        _condition(DISPATCH_CONDITION, decision.reason.value, describe_report(report), began, is_true=is_nominated),
        _data(DispatchData(report, given_up), began),
    ]
    if given_up or stays:
        conditions.append(_given_up(given_up, stays, _last_given_up(given_up, decision.now)))
    return _body(record, {"nominatedClusterNames": list(decision.nominated), "conditions": conditions})


def _condition(kind: str, reason: str, message: str, since: float, *, is_true: bool = True) -> Json:
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(since),
    }


def _data(data: DispatchData, since: float) -> Json:
    return _condition(DATA_CONDITION, "Written", write_data(data), since)


def given_up_body(record: Record, given_up: Mapping[str, GivenUp], stays: str, now: float) -> Json:
    """The status with how often a ProvisioningRequest was made again; `stays` is why the last one is not."""
    last = _last_given_up(given_up, now)
    conditions = [_given_up(given_up, stays, last), _data(DispatchData(given_up=given_up), last)]
    return _body(record, {"conditions": conditions})


def _last_given_up(given_up: Mapping[str, GivenUp], now: float) -> float:
    return max((entry.last for entry in given_up.values()), default=now)


def _given_up(given_up: Mapping[str, GivenUp], stays: str, last: float) -> Json:
    reason = RETRIES_USED if stays else PROVISIONING_TIMEOUT
    return _condition(GIVEN_UP_CONDITION, reason, "; ".join(filter(None, (describe_given_up(given_up), stays))), last)


def assignment_body(record: Record, worker: str, why: str, now: float) -> Json:
    """The status with an assignment to a worker; an empty name: without one."""
    reason = assignment_reason(worker) if worker else "Released"
    text = f"Assigned to {worker or 'no worker'}: {why}"
    return _body(record, {"conditions": [_condition(ASSIGNED_CONDITION, reason, text, now, is_true=bool(worker))]})


def waiting_body(record: Record, reason: str = "", text: str = "", since: float = 0.0) -> Json:
    """The status with why the Workload waits; without a reason it loses that condition."""
    return _body(record, {"conditions": [_condition(WAITING_CONDITION, reason, text, since)] if reason else []})


def grant_body(key: str, copy: Copy, now: float, *, why: str, ready: bool) -> Json:
    """The state of the assignment check on a worker's Workload: on this one and at this version, or it is refused."""
    namespace, _, name = key.partition("/")
    entry = {
        "name": ASSIGNMENT_CHECK,
        "state": CheckState.READY.value if ready else CheckState.PENDING.value,
        "message": why,
        "lastTransitionTime": format_time(now),
    }
    metadata = {"name": name, "namespace": namespace, "uid": copy.uid, "resourceVersion": copy.version}
    return {"apiVersion": KUEUE_API, "kind": "Workload", "metadata": metadata, "status": {"admissionChecks": [entry]}}


def check_body(record: Record, checks: Mapping[str, tuple[CheckDecision, float | None]], now: float) -> Json:
    """The states of our admission checks, with the seconds after which a retry begins. Checks that are not to change
    are in it as they are: the server would forget what is left out, and Kueue counts from the time of the change."""
    entries = []
    for name, (decision, retry) in sorted(checks.items()):
        present, message = record.checks[name], decision.message[:32000]
        same = (present.state, present.message) == (decision.state.value, message) and present.since
        entry: Json = {
            "name": name,
            "state": decision.state.value,
            "message": message,
            "lastTransitionTime": format_time(present.since if same else now),
        }
        requeue_after = present.requeue_after if same else retry
        if requeue_after is not None:
            entry["requeueAfterSeconds"] = max(1, round(requeue_after))
        entries.append(entry)
    return _body(record, {"admissionChecks": entries})


def over_budget_body(record: Record, why: str, now: float) -> Json:
    """The status with why the Workload waits for its team's budget."""
    return _body(record, {"conditions": [_condition(OVER_BUDGET_CONDITION, "OverBudget", why, now)]})


def reactivated_body(record: Record, now: float) -> Json:
    """The status without that, and queued again: Kueue does so only for what a user has deactivated.

    Source: kueue@v0.19.2 pkg/controller/core/workload_controller.go (Reconcile: no case for
    DeactivatedDueToAdmissionCheck).
    """
    why = "Its team is within the budget again, or it may go over it"
    return _body(record, {"conditions": [_condition("Requeued", "Reactivated", why, now)]})


def active_body(record: Record) -> Json:
    """A Workload that Kueue may queue again."""
    return {**_head(record), "spec": {"active": True}}


def reset_body(record: Record, names: Sequence[str], reason: str, why: str, now: float) -> Json:
    """Checks that are Pending again, and that the Workload was queued again.

    A check alone moves no Workload that Kueue has put aside; its condition Requeued does. Source: kueue@v0.19.2
    pkg/cache/queue/cluster_queue.go (PushOrUpdate).
    """
    body = check_body(record, {name: (CheckDecision(CheckState.PENDING, why), None) for name in names}, now)
    body["status"]["conditions"] = [_condition("Requeued", reason, why, now)]
    return body


def check_active_body(name: str, version: str, *, known: bool, now: float) -> Json:
    """The status of an AdmissionCheck that names this controller."""
    if known:
        condition = _condition("Active", "Active", "The fleet's controller answers this check", now)
    else:
        text = f"controller.checks of the fleet has no {name}; add it and deploy again"
        condition = _condition("Active", "NoSuchCheck", text, now, is_true=False)
    metadata, status = {"name": name, "resourceVersion": version}, {"conditions": [condition]}
    return {"apiVersion": KUEUE_API, "kind": "AdmissionCheck", "metadata": metadata, "status": status}


def event_path(record: Record) -> str:
    """Where events about a Workload go."""
    return f"/api/v1/namespaces/{record.namespace}/events"


def event_body(
    record: Record, reason: str, message: str, now: float, unique: int, *, warning: bool, of_job: bool = False
) -> Json:
    """An event about a Workload or (`of_job`) its job; `unique` tells it from others of the same moment."""
    moment = format_time(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{record.name[:200].rstrip('-.')}.{int(now * 1000):x}.{unique:x}",
            "namespace": record.namespace,
        },
        "involvedObject": {
            "apiVersion": record.owner.api_version if of_job else KUEUE_API,
            "kind": record.owner.kind if of_job else "Workload",
            "name": record.owner.name if of_job else record.name,
            "namespace": record.namespace,
            "uid": record.owner.uid if of_job else record.uid,
        },
        "reason": reason,
        "message": message if len(message) <= _EVENT_TEXT else f"{message[: _EVENT_TEXT - 3]}...",
        "type": "Warning" if warning else "Normal",
        "source": {"component": "kueue-fleet-controller"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _head(record: Record) -> Json:
    metadata = {"name": record.name, "namespace": record.namespace, "resourceVersion": str(record.version)}
    return {"apiVersion": KUEUE_API, "kind": "Workload", "metadata": metadata}


def _body(record: Record, status: Json) -> Json:
    return {**_head(record), "status": status}
