"""A manager and workers as the controller sees them, over API servers in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from tests.kube.fake_api import FakeApi

from kueue_admission.decide.model import Configuration
from kueue_admission.read.dispatch_report import DATA_CONDITION, DISPATCH_CONDITION
from kueue_admission.read.pod_resources import namespace_limits
from kueue_fleet.controller.configured_quota import KUEUE
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.controller.reconcile import Reconciler
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION
from kueue_fleet.kube.answers import Json
from kueue_fleet.settings.configuration import ControllerConfiguration
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, ASSIGNMENT_CONTROLLER, AdmissionControllerArgs

GPU = "nvidia.com/gpu"
ORIGIN = "multikueue"
COPY = {"kueue.x-k8s.io/multikueue-origin": ORIGIN}
"""Labels of a copy that the fleet's manager made."""
NOW = 1_800_000_000.0
WORKLOADS = f"{KUEUE}/workloads"
CHECKS = f"{KUEUE}/admissionchecks"
CHECK = "kueue-fleet.dev/admission-check"
"""The controller of checks that the fleet's own controller answers."""


def when(seconds: float = 0.0) -> str:
    """So many seconds from NOW, as Kubernetes writes it."""
    return datetime.fromtimestamp(NOW + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, at: float = 0.0, *, status: bool = True, **more: str) -> Json:
    result = {"type": kind, "status": "True" if status else "False", "reason": "R", "message": ""}
    return {**result, "lastTransitionTime": when(at), **more}


def data(**content: object) -> Json:
    """What the controller has written for itself."""
    return condition(DATA_CONDITION, message=json.dumps(content))


def given_up(at: float, cluster: str = "us") -> list[Json]:
    """What it has written when the cluster had not provisioned the nodes of a job."""
    return [condition(GIVEN_UP_CONDITION, at), data(given_up={cluster: {"times": 1, "last": NOW + at}})]


def workload(name: str = "train", gpus: int = 1, **changes: Any) -> Json:
    """A Workload of the manager that has quota since NOW; `changes`: labels, annotations, status fields, conditions."""
    requests = {"requests": {GPU: gpus}}
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": when(-1)}
    metadata |= {key: changes.pop(key) for key in ("labels", "annotations", "deletionTimestamp") if key in changes}
    conditions = changes.pop("conditions", [condition("QuotaReserved")])
    checks = changes.pop("checks", {"multikueue": "Pending"})
    status = {
        "admission": {"clusterQueue": "gpu"},
        "conditions": conditions,
        "admissionChecks": [{"name": key, "state": state, "message": ""} for key, state in checks.items()],
        **changes.pop("status", {}),
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {
            "queueName": "gpu",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"resources": requests}]}}}],
            **changes,
        },
        "status": status,
    }


def waiting_copy(name: str = "train", *, ready: bool = True, check: str = "Pending", **changes: Any) -> Json:
    """The copy of a workload on a worker, where it has quota; `ready`: only the assignment is missing."""
    checks = {ASSIGNMENT_CHECK: check, "dws": "Ready" if ready else "Pending"}
    result = workload(name, labels=COPY, checks=checks, **changes)
    result["metadata"]["resourceVersion"] = "7"
    return result


def admitted_copy(name: str = "train", gpus: int = 1, **changes: Any) -> Json:
    """The copy of a workload on a worker, where it has its quota."""
    assignment = {"name": "main", "count": 1, "flavors": {GPU: "l4"}, "resourceUsage": {GPU: str(gpus)}}
    status = {"admission": {"clusterQueue": "gpu", "podSetAssignments": [assignment]}}
    conditions = [condition("QuotaReserved"), condition("Admitted")]
    return workload(name, gpus, conditions=conditions, checks={}, status=status, **changes)


def configured(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    result = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, **metadata}}
    return {**result, "spec": spec}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Fixture:
    """A manager with two workers, each with eight GPUs in the queue `gpu`."""

    def __init__(self, *, dispatches: bool = True, limits: Json | None = None, **section: Any) -> None:
        defaults = {
            "image": "example.com/controller:1",
            "prices": {"europe-west4": {"l4": 2.0}, "us-east4": {"l4": 1.0}},
        }
        self.configuration = ControllerConfiguration.model_validate(
            {
                "fleet": "lab",
                "namespace": "system",
                "origin": ORIGIN,
                "dispatches": dispatches,
                "controller": AdmissionControllerArgs.model_validate({**defaults, **section}).wire(),
                "workers": [
                    {"name": "eu", "region": "europe-west4", "kueue": {}},
                    {"name": "us", "region": "us-east4", "kueue": {}},
                ],
                "limitRanges": limits or {},
                "teamRegions": {"team-eu": ["europe-west4"]},
                "kueue": {},
            }
        )
        self.api, self.clock, self.metrics = FakeApi(), Clock(), Metrics()
        self.touched: list[str | None] = []
        self.told: list[tuple[str, str, bool]] = []
        self.limits = namespace_limits(self.configuration.limit_ranges)
        settings = self.configuration.controller.dispatch
        self.manager = ManagerState(Configuration(), settings, self.touched.append, "system", self.limits)
        self.manager.take_namespace("ns", {"metadata": {"name": "ns"}})
        self.apis = {worker.name: FakeApi() for worker in self.configuration.workers}
        self.forget_workers()
        for name in self.workers:
            self.connect(name)
        self.manager.take_config("multikueue", configured("MultiKueueConfig", "multikueue", {"clusters": ["eu", "us"]}))
        self.take_check("multikueue", "kueue.x-k8s.io/multikueue", "multikueue")
        self.restart()

    def restart(self) -> Reconciler:
        """A reconciler with nothing in memory, as a new leader has it."""
        self.fleet = Fleet(self.manager, self.workers, self.api, self.apis, self.metrics, self._tell, self.clock)
        self.reconciler = Reconciler(self.configuration, self.fleet)
        self.reconciler.recall()
        return self.reconciler

    def forget_workers(self) -> None:
        """Workers of which nothing is known but their configuration."""
        self.workers = {
            w.name: WorkerState(w.name, w.region, Configuration(), ORIGIN, self.touched.append, self.limits)
            for w in self.configuration.workers
        }
        for worker in self.workers.values():
            self.configure(worker)

    def _tell(self, record: Record, reason: str, message: str, warning: bool) -> None:
        assert record.namespace
        self.told.append((reason, message, warning))

    @staticmethod
    def configure(worker: WorkerState, gpus: int = 8, flavors: tuple[str, ...] = ("l4",)) -> None:
        quotas = [{"name": GPU, "nominalQuota": str(gpus)}]
        groups = [{"coveredResources": [GPU], "flavors": [{"name": "l4", "resources": quotas}]}]
        assigned = {"admissionChecks": [{"name": ASSIGNMENT_CHECK}]}
        spec = {"namespaceSelector": {}, "resourceGroups": groups, "admissionChecksStrategy": assigned}
        queue = configured("ClusterQueue", "gpu", spec)
        check = configured("AdmissionCheck", ASSIGNMENT_CHECK, {"controllerName": ASSIGNMENT_CONTROLLER})
        check["status"] = {"conditions": [condition("Active")]}
        local = configured("LocalQueue", "gpu", {"clusterQueue": "gpu"}, namespace="ns")
        manifests = {
            ("clusterqueues", "gpu"): queue,
            ("admissionchecks", ASSIGNMENT_CHECK): check,
            ("localqueues", "ns/gpu"): local,
            **{("resourceflavors", name): configured("ResourceFlavor", name, {}) for name in flavors},
        }
        worker._manifests = manifests
        worker.read_configuration()

    def connect(self, name: str, *, active: bool = True, message: str = "Connected") -> None:
        result = configured("MultiKueueCluster", name, {})
        result["status"] = {"conditions": [condition("Active", status=active, message=message)]}
        self.manager.take_cluster(name, result)

    def take_check(self, name: str, controller: str, parameters: str = "") -> Json:
        result = configured("AdmissionCheck", name, {"controllerName": controller, "parameters": {"name": parameters}})
        result = self.api.put(CHECKS, result)
        self.manager.take_check(name, result)
        return result

    def take(self, item: Json) -> str:
        """The manager has this Workload; its key."""
        result = self.api.put(WORKLOADS, item)
        key = f"ns/{item['metadata']['name']}"
        self.manager.take_workload(key, result)
        return key

    async def look(self, item: Json) -> float | None:
        """Take a Workload and look at it."""
        return await self.reconciler.reconcile(self.take(item))

    def status(self, name: str = "train") -> Json:
        result: Json = self.api.lists[WORKLOADS][f"ns/{name}"]["status"]
        return result

    def nominated(self, name: str = "train") -> list[str]:
        result: list[str] = self.status(name).get("nominatedClusterNames") or []
        return result

    def check(self, name: str, of: str = "train") -> Json:
        [result] = [one for one in self.status(of)["admissionChecks"] if one["name"] == name]
        return dict(result)


def written(fixture: Fixture) -> Json:
    """What it has written for itself of `train`."""
    [result] = [one for one in fixture.status()["conditions"] if one["type"] == DATA_CONDITION]
    return dict(json.loads(result["message"]))


def gated(dispatch: Json | None = None, **rules: Any) -> Fixture:
    """With the check `fleet`, which has these rules."""
    result = Fixture(checks=[{"name": "fleet", **rules}], dispatch=dispatch or {})
    result.take_check("fleet", CHECK)
    return result


def dispatch_condition(fixture: Fixture) -> Json:
    """What the controller says of the dispatch of `train`."""
    [result] = [one for one in fixture.status()["conditions"] if one["type"] == DISPATCH_CONDITION]
    return dict(result)
