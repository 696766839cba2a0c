"""Objects as a cluster prints them, with types: Workloads, Jobs, Pods, Nodes, and what all kinds have.

A view takes what it is asked for out of the plain data, each time; see the package for why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Generic, Self, TypeVar, overload

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields, seconds_of

T = TypeVar("T")
_JOB_ENDS: Final = ("Complete", "Completed", "Failed")


class _Once(Generic[T]):
    """An attribute that is read when it is first asked for, and kept.

    As functools.cached_property, which takes a lock before Python 3.12 that costs more than what is read here.
    """

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    @overload
    def __get__(self, thing: None, kind: type) -> Self: ...
    @overload
    def __get__(self, thing: object, kind: type) -> T: ...
    def __get__(self, thing: object | None, kind: type) -> Self | T:
        if thing is None:
            return self
        value = thing.__dict__[self._read.__name__] = self._read(thing)
        return value


class Owner:
    """An object that owns another one; texts are empty where they are not known."""

    __slots__ = ("fields",)

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.fields.text("kind")

    @property
    def name(self) -> str:
        """Its name."""
        return self.fields.text("name")

    @property
    def uid(self) -> str:
        """Its uid."""
        return self.fields.text("uid")

    @property
    def api_version(self) -> str:
        """Its API, such as `batch/v1`."""
        return self.fields.text("apiVersion")

    @property
    def controls(self) -> bool:
        """Whether it made the other one."""
        return self.fields.flag("controller")


class Printed:
    """An object of any kind. What is missing is empty or None.

    So is what has another type than its field, unless the view was made of `Fields` with a list of problems: that is
    for files that people write.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Of what a cluster wrote."""
        return cls(Fields(manifest, "", []))

    @_Once
    def metadata(self) -> Fields:
        """Its metadata."""
        return self.fields.child("metadata")

    @_Once
    def spec(self) -> Fields:
        """What it is to be."""
        return self.fields.child("spec")

    @_Once
    def status(self) -> Fields:
        """What the cluster says of it."""
        return self.fields.child("status")

    @property
    def kind(self) -> str:
        """Its kind; lists of one kind leave it out."""
        return self.fields.text("kind")

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.text("name")

    @_Once
    def namespace(self) -> str:
        """Its namespace; `default` where it has none."""
        return self.metadata.text("namespace", "default")

    @_Once
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str:
        """The API server's name for it; empty where it was not created yet."""
        return self.metadata.text("uid")

    @property
    def labels(self) -> Fields:
        """Its labels."""
        return self.metadata.child("labels")

    @property
    def annotations(self) -> Fields:
        """Its annotations."""
        return self.metadata.child("annotations")

    @_Once
    def created(self) -> float | None:
        """When it was created; times are seconds since 1970."""
        return self.metadata.seconds("creationTimestamp")

    @property
    def deleted_at(self) -> float | None:
        """When it was deleted, if it is on its way out."""
        return self.metadata.seconds("deletionTimestamp")

    @property
    def owners(self) -> Sequence[Owner]:
        """The objects that own it."""
        return [Owner(owner_reference) for owner_reference in self.metadata.children("ownerReferences")]

    @_Once
    def job_name(self) -> str:
        """The name of its first owner, for what belongs to a job; its own where it has none."""
        owner = next(self.metadata.children("ownerReferences"), None)
        return self.name if owner is None else owner.text("name")

    @_Once
    def conditions(self) -> Mapping[str, Manifest]:
        """Its conditions by type, as they are printed; of several of one type the last."""
        try:
            return {condition["type"]: condition for condition in self.fields.data["status"]["conditions"]}
        except (KeyError, TypeError):
            return {condition.text("type"): condition.data for condition in self.status.children("conditions")}

    def is_true(self, condition: str) -> bool:
        """Whether a condition is True."""
        printed_condition = self.conditions.get(condition)
        status = None if printed_condition is None else printed_condition.get("status")
        return (
            status == "True"
            if type(status) is str or printed_condition is None
            else self._text(condition, "status") == "True"
        )

    def since(self, condition: str) -> float | None:
        """When a condition became True, 0.0 if it does not say so; None: it is not True."""
        return (self.changed_at(condition) or 0.0) if self.is_true(condition) else None

    def changed_at(self, condition: str) -> float | None:
        """When the status of a condition changed last; None if it does not say so, or is not there."""
        printed_condition = self.conditions.get(condition)
        if printed_condition is None:
            return None
        value = printed_condition.get("lastTransitionTime")
        try:
            return seconds_of(value) if value else None
        except ValueError:
            return self._fields(printed_condition).seconds("lastTransitionTime")

    def reason(self, condition: str) -> str:
        """The reason of a condition; empty if it is not there."""
        return self._text(condition, "reason")

    def message(self, condition: str) -> str:
        """The message of a condition; empty if it is not there."""
        return self._text(condition, "message")

    def _text(self, condition: str, name: str) -> str:
        printed_condition = self.conditions.get(condition)
        if printed_condition is None:
            return ""
        value = printed_condition.get(name)
        return value if type(value) is str else self._fields(printed_condition).text(name)

    def _fields(self, condition: Manifest) -> Fields:
        """One of its conditions, with its path."""
        return next(candidate for candidate in self.status.children("conditions") if candidate.data is condition)


class WorkloadState(StrEnum):
    """How far a Workload is."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


class PrintedWorkload(Printed):
    """A Workload. Source: kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go."""

    @_Once
    def queue(self) -> str:
        """The LocalQueue that it names."""
        return self.spec.text("queueName")

    @property
    def local_queue(self) -> str:
        """Namespace and name of the LocalQueue."""
        return f"{self.namespace}/{self.queue}"

    @_Once
    def parent(self) -> str:
        """Namespace and name of its parent, if it is a variant, for one flavor; empty: it belongs to a job.

        Source: kueue@v0.19.2 pkg/workload/concurrentadmission/concurrentadmission.go (GetParentWorkloadName).
        """
        owners = self.metadata.children("ownerReferences")
        name = next((owner.text("name") for owner in owners if owner.text("kind") == "Workload"), "")
        return f"{self.namespace}/{name}" if name else ""

    @property
    def is_active(self) -> bool:
        """Whether it may have quota."""
        return self.spec.flag("active", default=True)

    @_Once
    def pod_sets(self) -> Sequence[Fields]:
        """Its pod sets, as they are submitted."""
        return list(self.spec.children("podSets"))

    @property
    def owner(self) -> Owner | None:
        """Its job: the owner that controls it, else the first."""
        owners = self.owners
        return next((owner for owner in owners if owner.controls), owners[0] if owners else None)

    @_Once
    def state(self) -> WorkloadState:
        """How far it is, whether it was evicted or not."""
        states = (WorkloadState.FINISHED, WorkloadState.ADMITTED, WorkloadState.QUOTA_RESERVED)
        return next(filter(self.is_true, states), WorkloadState.PENDING)

    @property
    def left_at(self) -> float | None:
        """When it was evicted or deleted; from then on Kueue is to give its quota back."""
        eviction_time = self.since("Evicted")
        return self.deleted_at if eviction_time is None else eviction_time

    @property
    def admission(self) -> Fields:
        """The quota that it has; without fields where it has none."""
        return self.status.child("admission")

    @property
    def cluster_queue(self) -> str:
        """The ClusterQueue whose quota it has; empty: none."""
        return self.admission.text("clusterQueue")

    @property
    def assignments(self) -> Sequence[Fields]:
        """The flavors and the quota of each of its pod sets."""
        return list(self.admission.children("podSetAssignments"))

    @property
    def held(self) -> dict[str, Quantity]:
        """What it has quota for, by resource."""
        quantities: dict[str, Quantity] = {}
        for assignment in self.assignments:
            for resource, amount in assignment.quantities("resourceUsage").items():
                quantities[resource] = quantities.get(resource, Quantity(0)) + amount
        return quantities

    @_Once
    def checks(self) -> Sequence[Fields]:
        """The state of each of its admission checks."""
        return list(self.status.children("admissionChecks"))

    @property
    def cluster_name(self) -> str:
        """The worker that has admitted it; empty: none has."""
        return self.status.text("clusterName")

    @property
    def nominated(self) -> tuple[str, ...]:
        """The workers that it is offered to."""
        return self.status.texts("nominatedClusterNames")

    @property
    def refusal(self) -> tuple[str, str] | None:
        """Reason and message of QuotaReserved of one without quota; None where that only repeats why it was evicted."""
        if "QuotaReserved" not in self.conditions or self.is_true("QuotaReserved"):
            return None
        message = self.message("QuotaReserved")
        repeats = "Evicted" in self.conditions and message == self.message("Evicted")
        return None if repeats else (self.reason("QuotaReserved"), message)


class PrintedJob(Printed):
    """A Job, or a job of another kind with the same fields, such as a JobSet."""

    @property
    def is_suspended(self) -> bool:
        """Whether it may have no pods."""
        return self.spec.flag("suspend")

    @property
    def ended_at(self) -> float | None:
        """When it was over, well or not."""
        return next((at for condition in _JOB_ENDS if (at := self.since(condition)) is not None), None)


class PrintedNode(Printed):
    """A Node."""

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet is; one without that condition counts as ready."""
        return "Ready" not in self.conditions or self.is_true("Ready")

    @property
    def allocatable(self) -> dict[str, Quantity]:
        """What its pods can have, by resource."""
        return self.status.quantities("allocatable")
