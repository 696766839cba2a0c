"""Objects as a cluster prints them, with types: Workloads, Jobs, Pods, Nodes, and what all kinds have.

A view takes what it is asked for out of the plain data, each time; see the package for why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from kueue_admission.forms.manifest import Manifest
from kueue_admission.forms.quantity import Quantity
from kueue_admission.read.fields import Fields

_OWNER: Final = ("kind", "name", "uid", "apiVersion")
_ENDED: Final = ("Succeeded", "Failed")
_JOB_ENDS: Final = ("Complete", "Completed", "Failed")


@dataclass(frozen=True, slots=True)
class Owner:
    """An object that owns another one; texts are empty where they are not known."""

    controls: bool = False
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""


class Printed:
    """An object of any kind. What is missing is empty or None.

    So is what has another type than its field, unless the view was made of `Fields` with a list of problems: that is
    for files that people write.
    """

    __slots__ = ("_conditions", "fields", "metadata", "spec", "status")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.metadata = fields.child("metadata")
        self.spec = fields.child("spec")
        self.status = fields.child("status")
        self._conditions: Mapping[str, Fields] | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Of what a cluster wrote."""
        return cls(Fields(manifest, "", []))

    @property
    def kind(self) -> str:
        """Its kind; lists of one kind leave it out."""
        return self.fields.text("kind")

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.text("name")

    @property
    def namespace(self) -> str:
        """Its namespace; `default` where it has none."""
        return self.metadata.text("namespace", "default")

    @property
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

    @property
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
        found = self.metadata.children("ownerReferences")
        return [Owner(each.flag("controller"), *(each.text(name) for name in _OWNER)) for each in found]

    @property
    def conditions(self) -> Mapping[str, Fields]:
        """Its conditions by type; of several of one type the last."""
        if self._conditions is None:
            self._conditions = {each.text("type"): each for each in self.status.children("conditions")}
        return self._conditions

    def is_true(self, condition: str) -> bool:
        """Whether a condition is True."""
        found = self.conditions.get(condition)
        return found is not None and found.text("status") == "True"

    def since(self, condition: str) -> float | None:
        """When a condition became True, 0.0 if it does not say so; None: it is not True."""
        return (self.changed_at(condition) or 0.0) if self.is_true(condition) else None

    def changed_at(self, condition: str) -> float | None:
        """When the status of a condition changed last; None if it does not say so, or is not there."""
        found = self.conditions.get(condition)
        return None if found is None else found.seconds("lastTransitionTime")

    def reason(self, condition: str) -> str:
        """The reason of a condition; empty if it is not there."""
        found = self.conditions.get(condition)
        return "" if found is None else found.text("reason")

    def message(self, condition: str) -> str:
        """The message of a condition; empty if it is not there."""
        found = self.conditions.get(condition)
        return "" if found is None else found.text("message")


class WorkloadState(StrEnum):
    """How far a Workload is."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


class PrintedWorkload(Printed):
    """A Workload. Source: kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go."""

    __slots__ = ()

    @property
    def queue(self) -> str:
        """The LocalQueue that it names."""
        return self.spec.text("queueName")

    @property
    def is_active(self) -> bool:
        """Whether it may have quota."""
        return self.spec.flag("active", default=True)

    @property
    def pod_sets(self) -> Sequence[Fields]:
        """Its pod sets, as they are submitted."""
        return list(self.spec.children("podSets"))

    @property
    def owner(self) -> Owner:
        """Its job: the owner that controls it, else the first."""
        owners = self.owners
        return next((each for each in owners if each.controls), owners[0] if owners else Owner())

    @property
    def state(self) -> WorkloadState:
        """How far it is, whether it was evicted or not."""
        states = (WorkloadState.FINISHED, WorkloadState.ADMITTED, WorkloadState.QUOTA_RESERVED)
        return next((each for each in states if self.is_true(each)), WorkloadState.PENDING)

    @property
    def left_at(self) -> float | None:
        """When it was evicted or deleted; from then on Kueue is to give its quota back."""
        evicted = self.since("Evicted")
        return self.deleted_at if evicted is None else evicted

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
        found: dict[str, Quantity] = {}
        for each in self.assignments:
            for resource, amount in each.quantities("resourceUsage").items():
                found[resource] = found.get(resource, Quantity(0)) + amount
        return found

    @property
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
    def refusal(self) -> Fields | None:
        """The condition QuotaReserved of one without quota; None where it only repeats why it was evicted."""
        found = self.conditions.get("QuotaReserved")
        if found is None or self.is_true("QuotaReserved"):
            return None
        return None if "Evicted" in self.conditions and found.text("message") == self.message("Evicted") else found


class PrintedJob(Printed):
    """A Job, or a job of another kind with the same fields, such as a JobSet."""

    __slots__ = ()

    @property
    def is_suspended(self) -> bool:
        """Whether it may have no pods."""
        return self.spec.flag("suspend")

    @property
    def ended_at(self) -> float | None:
        """When it was over, well or not."""
        return next((at for each in _JOB_ENDS if (at := self.since(each)) is not None), None)


class PrintedPod(Printed):
    """A Pod."""

    __slots__ = ()

    @property
    def phase(self) -> str:
        """Its phase."""
        return self.status.text("phase", "Pending")

    @property
    def is_over(self) -> bool:
        """Whether its containers have ended, and are not started again."""
        return self.phase in _ENDED

    @property
    def node(self) -> str:
        """The Node that it is on; empty: none yet."""
        return self.spec.text("nodeName")


class PrintedNode(Printed):
    """A Node."""

    __slots__ = ()

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet is; one that says nothing of it counts as ready."""
        return "Ready" not in self.conditions or self.is_true("Ready")

    @property
    def allocatable(self) -> dict[str, Quantity]:
        """What its pods can have, by resource."""
        return self.status.quantities("allocatable")
