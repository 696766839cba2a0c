"""A custom compute class of GKE: which nodes GKE makes for a flavor, most preferred first.

Names and shapes are those of the object, `cloud.google.com/v1` ComputeClass; a class has the name of its flavor.

Source: https://cloud.google.com/kubernetes-engine/docs/reference/crds/computeclass; as code,
https://github.com/kcl-lang/modules, gke/v1/cloud_google_com_v1_compute_class.k, made from the definition.
"""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from kueue_admission.api import ResourceFlavorSpec, Toleration
from kueue_admission.kernel.base import AtLeastOne, Count, Flag, RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED, OUT_OF_RANGE
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.gcp_names import ProjectId, ResourceName, Zone
from kueue_fleet.gke.labels import COMPUTE_CLASS, SPOT
from kueue_fleet.gke.machines import MachineType, machine_type
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS

CLASS_API: Final = "cloud.google.com/v1"
"""`apiVersion` of a ComputeClass."""


class ClassGpu(SpecModel):
    """GPUs of a node."""

    type: Text
    """Such as nvidia-l4."""
    count: AtLeastOne
    """GPUs on each node."""
    driver_version: Literal["default", "latest"] | None = None
    """Driver that GKE installs; default: GKE's."""


class ClassReservation(SpecModel):
    """A specific reservation."""

    name: ResourceName = Field(kw_only=False)
    """Name of the reservation."""
    project: ProjectId | None = None
    """Project that shares it; default: the cluster's own."""
    zones: ListOfText[Zone] = ()
    """Zones of it that are used; default: all."""


class ClassReservations(SpecModel):
    """Which reservations nodes come from."""

    affinity: Literal["Specific", "AnyBestEffort", "None"]
    """Specific: those in `specific`; AnyBestEffort: any that fits, and on-demand nodes where there is none; None: no
    reservation."""
    specific: ListOf[ClassReservation] = ()
    """The reservations, with Specific."""


class ClassFlexStart(SpecModel):
    """Whether nodes are of DWS flex-start."""

    enabled: Flag = Field(kw_only=False)
    """Whether they are."""


class ClassLocation(SpecModel):
    """Where nodes are."""

    zones: Annotated[ListOfText[Zone], Field(min_length=1)]
    """The zones."""


class ClassPriority(RuledModel):
    """One kind of node: a machine, and how it is obtained: reserved, of flex-start, Spot, else on demand."""

    machine_type: Text | None = None
    """Such as g2-standard-24; or `machineFamily`, or `gpu`, which leave the choice to GKE."""
    machine_family: Text | None = None
    """Such as g2."""
    min_cores: Count | None = None
    """Least CPUs of a node."""
    min_memory_gb: Count | None = None
    """Least memory of a node, in GB."""
    gpu: ClassGpu | None = None
    """GPUs of a node; default: those that the machine type comes with."""
    spot: Flag = False
    """Whether nodes are Spot VMs; default false."""
    flex_start: ClassFlexStart | None = None
    """DWS flex-start; default: not."""
    max_run_duration_seconds: AtLeastOne | None = None
    """How long a node lives, with flex-start at most seven days; default: without an end, of flex-start seven days."""
    reservations: ClassReservations | None = None
    """Reservations that nodes come from; default: none."""
    location: ClassLocation | None = None
    """Zones; default: the cluster's."""

    @property
    def machine(self) -> MachineType | None:
        """What the machine type has, as far as one is named and known."""
        return machine_type(self.machine_type) if self.machine_type is not None else None

    @property
    def is_flex_start(self) -> bool:
        """Whether nodes are of DWS flex-start."""
        return self.flex_start is not None and self.flex_start.enabled

    @property
    def option(self) -> str:
        """How nodes are obtained, as `capacity.type` says it; of AnyBestEffort the way without a reservation."""
        has_reservations = self.reservations is not None and self.reservations.affinity == "Specific"
        return (
            "reserved"
            if has_reservations
            else "flexStart"
            if self.is_flex_start
            else "spot"
            if self.spot
            else "onDemand"
        )

    @property
    def accelerator(self) -> str | None:
        """The kind of GPU or TPU of its nodes; None: none, or not known."""
        if self.gpu is not None:
            return self.gpu.type
        return self.machine.accelerator if self.machine is not None else None

    def own_problems(self) -> Iterator[Problem]:
        """Settings that exclude each other; GPUs that the machine does not have."""
        ways = {"spot": self.spot, "flexStart": self.is_flex_start}
        specific = self.reservations is not None and self.reservations.affinity != "None"
        for field in [name for name, is_used in ways.items() if is_used and specific]:
            yield EXCLUDED.at(field, "set, but reservations says where nodes come from", "keep one of the two")
        if all(ways.values()):
            yield EXCLUDED.at("flexStart", "set, but spot is too", "write two priorities, one for each")
        yield from self._reservations()
        yield from self._gpu()
        seconds = self.max_run_duration_seconds or 0
        if self.is_flex_start and seconds > FLEX_START_MAX_SECONDS:
            wrong = f"{seconds}, but a flex-start node lives at most {FLEX_START_MAX_SECONDS}, seven days"
            yield OUT_OF_RANGE.at("maxRunDurationSeconds", wrong, f"write {FLEX_START_MAX_SECONDS} or less")

    def _reservations(self) -> Iterator[Problem]:
        """Source: https://github.com/google/skills at 1af7795, gke-compute-classes (zones with Specific)."""
        reservations = self.reservations
        if reservations is None:
            return
        if reservations.affinity == "Specific" and not reservations.specific:
            yield NEEDED.at("reservations.specific", "none, but affinity is Specific", "name a reservation")
        if reservations.affinity != "Specific" and reservations.specific:
            wrong = f"set, but affinity is {reservations.affinity}"
            yield EXCLUDED.at("reservations.specific", wrong, "remove it, or set affinity to Specific")
        if reservations.affinity == "Specific" and self.location is not None:
            wrong = "set, but GKE refuses it beside a specific reservation"
            yield EXCLUDED.at("location", wrong, "name the zones in reservations.specific")

    def _gpu(self) -> Iterator[Problem]:
        if self.machine_type is not None and self.machine_family is not None:
            yield EXCLUDED.at("machineFamily", "set, but machineType says it", "keep one of the two")
        if (self.machine_type, self.machine_family, self.gpu) == (None, None, None):
            yield NEEDED.at("machineType", "not set", "write machineType, machineFamily or gpu")
        machine, gpu = self.machine, self.gpu
        if machine is None or gpu is None or machine.accelerator is None:
            return
        if (gpu.type, gpu.count) != (machine.accelerator, machine.gpus):
            wrong = f"{gpu.count} {gpu.type}, but {machine.name} has {machine.gpus} {machine.accelerator}"
            yield EXCLUDED.at("gpu", wrong, "write what the machine type has, or remove gpu")


class ComputeClass(SpecModel):
    """How GKE obtains the nodes of a flavor: the first priority of which it gets nodes.

    Kueue sees one flavor with one quota, and not which priority a job's nodes are of.
    """

    priorities: Annotated[ListOf[ClassPriority], Field(min_length=1)] = Field(kw_only=False)
    """Kinds of nodes, most preferred first."""
    when_unsatisfiable: Literal["DoNotScaleUp", "ScaleUpAnyway"] = "DoNotScaleUp"
    """What GKE does if it gets nodes of no priority. DoNotScaleUp (default): pods wait; ScaleUpAnyway: it creates nodes
    of any kind that fits them. It is always written, since GKE's own default changed between releases."""
    node_pool_auto_creation: Flag = True
    """Whether GKE makes node pools for the class on Standard clusters; Autopilot always does. Default true."""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The kinds of GPU of its nodes, once each."""
        return tuple(dict.fromkeys(priority.accelerator for priority in self.priorities if priority.accelerator))

    @property
    def preemptible(self) -> bool:
        """Whether all of its nodes are Spot or of flex-start, which take preemptible quota."""
        return all(priority.option in ("spot", "flexStart") for priority in self.priorities)

    def spec(self, *, autopilot: bool) -> dict[str, object]:
        """The `spec` of the object."""
        creation = {} if autopilot else {"nodePoolAutoCreation": {"enabled": self.node_pool_auto_creation}}
        priorities = [
            priority.model_dump(mode="json", by_alias=True, exclude_defaults=True) for priority in self.priorities
        ]
        return {"priorities": priorities, "whenUnsatisfiable": self.when_unsatisfiable, **creation}


def class_flavor(name: str, flavor: ResourceFlavorSpec, compute_class: ComputeClass) -> ResourceFlavorSpec:
    """What a flavor of a class is: its pods select the class, and tolerate what its nodes have.

    GKE puts the class on nodes as label and taint, and has pods that select it tolerate that. The taint of Spot nodes
    they tolerate themselves. Source: https://github.com/google/skills at 1af7795, gke-compute-classes.
    """
    spot = Toleration.model_construct(key=SPOT, operator="Equal", value="true", effect="NoSchedule")
    added_taints = (spot,) if any(priority.spot for priority in compute_class.priorities) else ()
    return ResourceFlavorSpec.model_construct(
        node_labels={COMPUTE_CLASS: name},
        node_taints=(),
        tolerations=(
            *added_taints,
            *(toleration for toleration in flavor.tolerations if toleration not in added_taints),
        ),
        topology_name=flavor.topology_name,
    )
