"""What the controller knows of one worker: its quota, the copies of jobs, and their ProvisioningRequests.

What was seen last of a worker that is out of reach is kept: a copy that was there may be there still.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import CheckState, Configuration, Workload
from kueue_admission.kernel.names import ORIGIN_LABEL
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_resources import Limits
from kueue_admission.read.printed import Printed, PrintedWorkload
from kueue_admission.read.workloads import Context, parse_check_state, parse_workload
from kueue_fleet.controller.configured_quota import GRACE_SECONDS, KUEUE, ConfiguredQuota
from kueue_fleet.controller.records import read_end
from kueue_fleet.controller.requests import Requests
from kueue_fleet.dispatch import Copy, Fit, FitKind, Provisioning
from kueue_fleet.kube.answers import Json
from kueue_fleet.kube.api import PROVISIONING_REQUESTS, Api, nothing
from kueue_fleet.kube.watching import Watch
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, ASSIGNMENT_CONTROLLER

log = logging.getLogger(__name__)


class WorkerState(ConfiguredQuota):
    """A worker. `on_change` gets the keys of workloads that something happened to, None for all of them.

    `origin` is the mark on the copies that the fleet's manager makes. `on_local` gets Workloads that are not
    copies and wait for the assignment check, `on_check` that the assignment check itself is to be looked at. `limits`
    are the teams' LimitRanges by namespace.
    """

    def __init__(
        self,
        name: str,
        region: str,
        configuration: Configuration,
        origin: str,
        on_change: Callable[[str | None], None],
        limits: Mapping[str, Limits] | None = None,
    ) -> None:
        super().__init__(name, configuration, on_change)
        self.region = region
        self.on_local: Callable[[str], None] = lambda _: None
        self.on_check: Callable[[], None] = nothing
        self._origin = origin
        self._context = Context(rules=self.configuration.resource_rules, limits=limits or {})
        self._copies: dict[str, Copy] = {}
        self._local: dict[str, Copy] = {}
        self._queues: dict[str, str] = {}
        self._requests = Requests()
        self._check_version = ""
        self._was_followed = False

    def watch(self, api: Api) -> list[Watch]:
        """The watches that keep this up to date, to be run."""
        follow = partial(Watch, api, on_connection=self._take_connection, grace=GRACE_SECONDS)
        self.watches = [*super().watch(api), follow(f"{KUEUE}/workloads", self.take_workload)]
        self.watches.append(follow(PROVISIONING_REQUESTS, self.take_provisioning, optional=True))
        return self.watches

    def _take_connection(self) -> None:
        """What was known of the worker counts again, or no longer: all is decided again."""
        super()._take_connection()
        if self.followed != self._was_followed:
            self._was_followed = self.followed
            self._on_change(None)

    @property
    def unknown(self) -> str:
        """Why nothing can be said of its quota; empty if that is known as it is now."""
        if not self.followed:
            return "the controller cannot follow it"
        return "" if self.quota is not None else f"the controller cannot use what is configured there: {self._problem}"

    def examine(self, workload: Workload, now: float) -> Fit:
        """What the workload would find there. What cannot be computed leaves this worker out, and no other."""
        assert self.quota is not None
        try:
            return self.quota.examine(workload, now)
        except Exception as error:
            self._leave_out(error)
            return Fit(FitKind.INACTIVE, "Misconfigured", self._problem)

    def expect(self, workload: Workload) -> None:
        """The workload was nominated for this worker: its quota is held for it, also when `quota` is made again."""
        self._expected[workload.key] = workload
        if self.quota is not None:
            self.quota.expect(workload)

    def forget(self, key: str) -> None:
        """The workload is not nominated for this worker any more."""
        self._expected.pop(key, None)
        if self.quota is not None:
            self.quota.forget(key)

    def provisioning(self, key: str) -> tuple[Provisioning, ...]:
        """The ProvisioningRequests of the copy that is there now; those of an earlier one may be gone later than it."""
        copy = self._copies.get(key)
        return self._requests.of(key, copy.uid) if copy is not None else ()

    def take_configured(self, kind: str, key: str, item: Json | None) -> None:
        """See `ConfiguredQuota`; of the assignment check, its version too."""
        if kind == "admissionchecks" and key == ASSIGNMENT_CHECK and item is not None:
            self._check_version = str(item["metadata"].get("resourceVersion", ""))
            self.on_check()
        super().take_configured(kind, key, item)

    def take_workload(self, key: str, item: Json | None) -> None:
        """A Workload is new, changed or gone. Of one that cannot be read, the quota that it has counts, and no more."""
        workload = None if item is None else self._read_workload(key, item)
        self._take_copy(key, item)
        if item is None:
            self._workloads.pop(key, None)
        else:
            self._workloads[key] = workload
        self._count(key, workload)
        self._on_change(key)

    def _take_copy(self, key: str, item: Json | None) -> None:
        self._copies.pop(key, None)
        self._local.pop(key, None)
        if item is None:
            self._queues.pop(key, None)
            return
        printed_workload = PrintedWorkload.of(item)
        self._queues[key], origin = printed_workload.queue, printed_workload.labels.text(ORIGIN_LABEL)
        if origin == self._origin:
            self._copies[key] = read_copy(printed_workload)
        if origin:
            # Copies of another manager are for that one's controller.
            return
        local = self._local[key] = read_copy(printed_workload)
        if local.waits_for_assignment:
            self.on_local(key)

    def _read_workload(self, key: str, item: Json) -> Workload | None:
        workload, problem = self._parse(key, item)
        if workload is not None:
            return workload
        fields = {"cluster": self.name, "workload": key, "error": problem[:500]}
        log.warning("workload cannot be read", extra={"fields": fields})
        return self._parse(key, _with_quota_only(item))[0] if (item.get("status") or {}).get("admission") else None

    def _parse(self, key: str, item: Json) -> tuple[Workload | None, str]:
        problems: list[Problem] = []
        try:
            workload = parse_workload(PrintedWorkload(Fields(item, f"Workload {key}", problems)), self._context)
        except AdmissionError as error:
            return None, str(error)
        return (None, str(problems[0])) if problems else (workload, "")

    def has_copy(self, key: str) -> bool:
        """Whether there is a Workload of that name, as far as was seen last."""
        return key in self._workloads

    def copy(self, key: str) -> Copy | None:
        """The copy of that name, as it was seen last."""
        copy_there = self._copies.get(key)
        if copy_there is None or copy_there.check is not None:
            return copy_there
        return replace(copy_there, guarded=self.guards(key.partition("/")[0], self._queues[key]))

    def workload(self, key: str) -> Workload | None:
        """The Workload of that name, as it was seen last; None for one that cannot be read too."""
        return self._workloads.get(key)

    def local(self, key: str) -> Copy | None:
        """The Workload of that name, if it was made on the worker itself."""
        return self._local.get(key)

    def guards(self, namespace: str, queue: str) -> bool:
        """Whether a LocalQueue admits nothing without the assignment check."""
        local = self._manifests.get(("localqueues", f"{namespace}/{queue}"))
        queue_object = local and self._manifests.get(("clusterqueues", str(local["spec"].get("clusterQueue"))))
        rules = ((queue_object or {}).get("spec", {}).get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        return any(rule.get("name") == ASSIGNMENT_CHECK and not rule.get("onFlavors") for rule in rules)

    @property
    def inactive_check(self) -> str | None:
        """The version of the assignment check, if it is not Active yet."""
        check_object = self._manifests.get(("admissionchecks", ASSIGNMENT_CHECK))
        if check_object is None or check_object["spec"].get("controllerName") != ASSIGNMENT_CONTROLLER:
            return None
        return None if Printed.of(check_object).is_true("Active") else self._check_version

    def take_provisioning(self, key: str, item: Json | None) -> None:
        """A ProvisioningRequest is new, changed or gone."""
        owner = self._requests.take(key, item)
        if owner:
            self._on_change(owner)


def _with_quota_only(item: Json) -> Json:
    """A Workload without all that the core may refuse: whatever holds quota holds it."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item["status"]
    names = ("type", "status", "reason", "lastTransitionTime")
    assigned_fields = ("name", "count", "flavors", "resourceUsage")
    return {
        "metadata": {name: metadata.get(name) for name in ("name", "namespace", "uid", "creationTimestamp")},
        "spec": {
            "queueName": spec.get("queueName"),
            "priority": spec.get("priority"),
            "podSets": [{"name": one.get("name"), "count": one.get("count")} for one in spec.get("podSets") or ()],
        },
        "status": {
            "conditions": [{name: one.get(name) for name in names} for one in status.get("conditions") or ()],
            "admission": {
                "clusterQueue": status["admission"].get("clusterQueue"),
                "podSetAssignments": [
                    {name: one.get(name) for name in assigned_fields}
                    for one in status["admission"].get("podSetAssignments") or ()
                ],
            },
        },
    }


def read_copy(printed_workload: PrintedWorkload) -> Copy:
    """The copy as its worker has it; not whether its queue has the assignment check."""
    checks = {one.name: one for one in map(parse_check_state, printed_workload.checks)}
    ours = checks.pop(ASSIGNMENT_CHECK, None)
    return Copy(
        uid=printed_workload.uid,
        version=printed_workload.metadata.text("resourceVersion"),
        reserved_at=printed_workload.since("QuotaReserved"),
        ready_since=ours.since if ours is not None and ours.state is CheckState.READY else None,
        check=None if ours is None else ours.state,
        others_ready=all(one.state is CheckState.READY for one in checks.values()),
        admitted=printed_workload.is_true("Admitted"),
        evicted_at=printed_workload.since("Evicted"),
        end=read_end(printed_workload),
        owned=any(printed_workload.owners),
        deleted="deletionTimestamp" in printed_workload.metadata,
    )
