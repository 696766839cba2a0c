"""What the controller knows of the manager: Workloads, namespaces, connections to workers, admission checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kueue_admission.decide.model import Configuration
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER
from kueue_admission.read.pod_resources import Limits
from kueue_admission.read.printed import Printed
from kueue_admission.read.workloads import Context
from kueue_fleet.controller.configured_quota import GRACE_SECONDS, KUEUE
from kueue_fleet.controller.records import PodSets, Record, read_record
from kueue_fleet.controller.requests import Requests
from kueue_fleet.dispatch import REGIONS_LABEL, WaitingTimes
from kueue_fleet.kube.answers import Json, version_number
from kueue_fleet.kube.api import NAMESPACES, PROVISIONING_REQUESTS, Api
from kueue_fleet.kube.watching import Watch, are_followed
from kueue_fleet.settings.dispatch import Dispatch

GONE_ANNOTATION: Final = "kueue-fleet.dev/gone-workers"
"""On the controller's namespace: workers, joined by commas, of which an operator says that nothing runs there."""
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class CheckObject:
    """An AdmissionCheck: who answers it, its MultiKueueConfig if that is Kueue's dispatch, and its state."""

    controller: str
    parameters: str
    active: bool | None
    version: str


class ManagerState:
    """The manager. `on_change` gets the keys of workloads that something happened to, None for all of them.

    `namespace` is the controller's own, on which operators say which workers are gone (`GONE_ANNOTATION`); `limits` are
    the teams' LimitRanges by namespace; `asks`: its own queues ask for nodes, by ProvisioningRequests.
    """

    def __init__(
        self,
        configuration: Configuration,
        settings: Dispatch,
        on_change: Callable[[str | None], None],
        namespace: str = "",
        limits: Mapping[str, Limits] | None = None,
        *,
        asks: bool = False,
    ) -> None:
        self._settings = settings
        self._asks = asks
        self.requests = Requests()
        self._namespace = namespace
        self.gone: frozenset[str] = frozenset()
        self.watches: list[Watch] = []
        self.records: dict[str, Record] = {}
        self.waiting = WaitingTimes()
        self.checks: dict[str, CheckObject] = {}
        self.on_check: Callable[[str], None] = lambda _: None
        self._pod_sets = PodSets()
        self._context = Context(rules=configuration.resource_rules, limits=limits or {})
        self._on_change = on_change
        self._namespaces: dict[str, str | None] = {}
        self._components: dict[str, set[str]] = {}
        self._versions: dict[str, int] = {}
        self._connected: dict[str, tuple[bool, str]] = {}
        self._configs: dict[str, tuple[str, ...]] = {}
        self._postponed: set[str] = set()

    def watch(self, api: Api) -> list[Watch]:
        """The watches that keep this up to date, to be run; those of Workloads last."""
        listeners = {
            NAMESPACES: self.take_namespace,
            f"{KUEUE}/multikueueclusters": self.take_cluster,
            f"{KUEUE}/multikueueconfigs": self.take_config,
            f"{KUEUE}/admissionchecks": self.take_check,
            f"{KUEUE}/workloads": self.take_workload,
            **({PROVISIONING_REQUESTS: self.take_request} if self._asks else {}),
        }
        self.watches = [
            Watch(
                api,
                path,
                listener,
                on_connection=self._take_connection,
                on_list=self.take_list if path.endswith("/workloads") else None,
                # Where a job may run is decided by labels of namespaces, whose versions are in no write.
                grace=0.0 if path == NAMESPACES else GRACE_SECONDS,
                optional=path == PROVISIONING_REQUESTS,
            )
            for path, listener in listeners.items()
        ]
        return self.watches

    def take_list(self, version: int, reset: bool) -> None:
        """Workloads are listed again: what is older than the list counts less than what it says.

        What is newer is the answer to a write of ours, which the watch will report again; not so after a `reset`.
        """
        newer = {key: known_version for key, known_version in self._versions.items() if known_version > version}
        self._versions = {} if reset else newer

    @property
    def followed(self) -> bool:
        """Whether everything of the manager is known as it is now; else nothing is decided."""
        return are_followed(self.watches)

    def postpone(self, key: str) -> None:
        """Report a change of this workload once the manager is followed again."""
        self._postponed.add(key)

    def _take_connection(self) -> None:
        self._on_change(None)
        if self.followed:
            postponed_keys, self._postponed = self._postponed, set()
            for key in postponed_keys:
                self._on_change(key)

    def take_workload(self, key: str, item: Json | None) -> None:
        """A Workload is new, changed or gone; what is older than what is known is ignored."""
        if item is None:
            self._keep_component(self.records.pop(key, None), None)
            self._versions.pop(key, None)
            self.waiting.gone(key)
            self._on_change(key)
            return
        known_record, uid = self.records.get(key), item["metadata"].get("uid")
        version = version_number(item["metadata"].get("resourceVersion"))
        if known_record is not None and known_record.uid == uid and version <= self._versions.get(key, 0):
            return
        self._versions[key] = version
        record = read_record(item, self._context, self._pod_sets)
        self.records[key] = record
        self._keep_component(known_record, record)
        self._note_waiting(record)
        self._on_change(key)

    def _keep_component(self, before: Record | None, now: Record | None) -> None:
        """Remember which Workloads are parts of one job."""
        if before is not None and before.component_of:
            self._components.get(before.component_of, set()).discard(before.key)
            if not self._components.get(before.component_of, True):
                del self._components[before.component_of]
        if now is not None and now.component_of:
            self._components.setdefault(now.component_of, set()).add(now.key)

    def cluster_of_components(self, record: Record) -> str:
        """The worker that has another part of the same job: Kueue sends all parts there; empty if none has.

        Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (nominateAndSynchronizeWorkers).
        """
        others = self._components.get(record.component_of, ()) if record.component_of else ()
        cluster_names = {self.records[key].cluster_name for key in others if key != record.key}
        return min(filter(None, cluster_names), default="")

    def take_request(self, key: str, item: Json | None) -> None:
        """A ProvisioningRequest of the manager's own is new, changed or gone."""
        if owner := self.requests.take(key, item):
            self._on_change(owner)

    def take_answer(self, record: Record, item: Json) -> None:
        """What the server made of a write to a Workload; no news if that is gone, or another one by now.

        The watch may be ahead of the answer, and would not report again what it has reported as gone.
        """
        known_record = self.records.get(record.key)
        if known_record is not None and known_record.uid == record.uid:
            self.take_workload(record.key, item)

    def _note_waiting(self, record: Record) -> None:
        """Learn from where the workload waits or was admitted, and from where it was not admitted."""
        report, key, queue = record.report, record.key, record.cluster_queue
        if report is None or record.reserved_at is None or report.since < record.reserved_at:
            # Ours is about this reservation or about none: any other time in it would be taken for a wait.
            self.waiting.gone(key)
            return
        if record.admitted_at is not None and record.cluster_name:
            self.waiting.gone(key)
            for index, cluster in enumerate(report.said.nominated):
                note = self.waiting.admitted if cluster == record.cluster_name else self.waiting.passed
                seconds = record.admitted_at - self._asked_at(report.since, index)
                if seconds >= 0:
                    note(key, cluster, queue, record.admitted_at, seconds)
        elif record.holds_quota and record.nominated:
            self.waiting.waits_only(key, record.nominated)
            for cluster, entry in record.given_up.items():
                if cluster not in record.nominated and entry.last >= report.since:
                    self.waiting.passed(key, cluster, queue, entry.last, entry.last - report.since)
            for index, cluster in enumerate(record.nominated):
                self.waiting.waits(key, cluster, queue, self._asked_at(report.since, index))
        else:
            self.waiting.gone(key)

    def _asked_at(self, start_time: float, index: int) -> float:
        """When a cluster was nominated, by its place in the list."""
        return start_time + index // self._settings.step * self._settings.widen_after.seconds

    def take_namespace(self, key: str, item: Json | None) -> None:
        """A namespace is new, changed or gone."""
        namespace = Printed.of({} if item is None else item)
        if key == self._namespace:
            text = namespace.annotations.text(GONE_ANNOTATION)
            gone = frozenset(filter(None, (name.strip() for name in text.split(","))))
            if gone != self.gone:
                self.gone = gone
                self._on_change(None)
        value = namespace.labels.text(REGIONS_LABEL) if REGIONS_LABEL in namespace.labels else None
        if item is None:
            has_changed = self._namespaces.pop(key, _MISSING) is not _MISSING
        else:
            has_changed = self._namespaces.get(key, _MISSING) != value
            self._namespaces[key] = value
        if has_changed:
            self._on_change(None)

    def take_cluster(self, key: str, item: Json | None) -> None:
        """A MultiKueueCluster is new, changed or gone."""
        state_there: tuple[bool, str] | None = None
        if item is not None:
            cluster = Printed.of(item)
            is_known = "Active" in cluster.conditions
            connection_text = cluster.message("Active") if is_known else "Kueue has not connected to it yet"
            state_there = (cluster.is_true("Active"), connection_text)
        if state_there != self._connected.get(key):
            if state_there is None:
                self._connected.pop(key, None)
            else:
                self._connected[key] = state_there
            self._on_change(None)

    def take_config(self, key: str, item: Json | None) -> None:
        """A MultiKueueConfig is new, changed or gone."""
        clusters = () if item is None else Printed.of(item).spec.texts("clusters")
        if clusters != self._configs.get(key):
            self._configs[key] = clusters
            self._on_change(None)

    def take_check(self, key: str, item: Json | None) -> None:
        """An AdmissionCheck is new, changed or gone."""
        before = self.checks.get(key)
        if item is None:
            self.checks.pop(key, None)
            return
        check = Printed.of(item)
        check_object = self.checks[key] = CheckObject(
            controller=check.spec.text("controllerName"),
            parameters=check.spec.child("parameters").text("name"),
            active=check.is_true("Active") if "Active" in check.conditions else None,
            version=check.metadata.text("resourceVersion"),
        )
        self.on_check(key)
        if before is None or (before.controller, before.parameters) != (
            check_object.controller,
            check_object.parameters,
        ):
            self._on_change(None)

    def connection(self, worker: str) -> tuple[bool, str]:
        """Whether Kueue is connected to a worker, and what it says."""
        return self._connected.get(worker, (False, "there is no MultiKueueCluster of this name"))

    def knows_namespace(self, namespace: str) -> bool:
        """Whether a namespace was seen: two watches have no order, and a Workload can come before its namespace."""
        return namespace in self._namespaces

    def namespace_regions(self, namespace: str) -> str | None:
        """The value of the label of a namespace; None if it has none. Raises KeyError for one that was not seen."""
        return self._namespaces[namespace]

    def dispatch_check(self, record: Record) -> str | None:
        """The MultiKueue check of a workload."""
        for name in record.checks:
            known_check = self.checks.get(name)
            if known_check is not None and known_check.controller == MULTIKUEUE_CONTROLLER:
                return name
        return None

    def clusters_of(self, check: str) -> tuple[str, ...]:
        """The workers of a MultiKueue check, most preferred first."""
        return self._configs.get(self.checks[check].parameters, ())
