"""The entries of a fleet file that become objects of Kueue: a model of `api` plus a name and the clusters it is for.

What of an entry ends up on which cluster is decided in `per_cluster`; rules between entries are in `check`.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kueue_admission.api import (
    AdmissionCheckSpec,
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    ParametersReference,
    PriorityClassFields,
    ProvisioningRequestConfigSpec,
    ResourceFlavorSpec,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_admission.api.quotas import LimitRules, check_resource_groups, check_totals
from kueue_admission.kernel.base import DnsLabel, DnsSubdomain, Flag, RuledModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED
from kueue_admission.kernel.given import ListOf, ListOfText
from kueue_admission.kernel.names import MAX_RUN_PARAMETER, MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.syntax import whole_number
from kueue_fleet.fleet_file.model.compute_classes import ComputeClass
from kueue_fleet.fleet_file.model.goals import Goals
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN
from kueue_fleet.fleet_file.rules.teams import CHECK_OF_KUEUE
from kueue_fleet.settings.dispatch import FlavorPatience
from kueue_fleet.settings.quotas import FleetResourceGroup, ManagerQueue, windows_of

ClusterNames = Annotated[ListOfText[Text], Field(min_length=1)]
"""Names of clusters of the fleet. A list that is there names at least one."""


class _OfObject:
    """An entry for what is an object of Kubernetes."""

    @classmethod
    def not_here(cls, name: str) -> tuple[str, str] | None:
        """The parts of the object as kubectl takes it."""
        fix = "write name, and the fields of spec, in their place"
        return ("is of an object for kubectl", fix) if name in ("apiVersion", "kind", "metadata", "spec") else None


class FlavorEntry(_OfObject, ResourceFlavorSpec):
    """A ResourceFlavor and the clusters where it exists."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the ResourceFlavor."""
    clusters: ClusterNames | None = None
    """Default: every cluster that runs jobs, or that its node pool is on."""
    node_pool: Text | None = None
    """The node pool behind it: labels, taints and tolerations come from there, so they cannot differ from it."""
    compute_class: ComputeClass | None = None
    """Or how GKE obtains its nodes: a custom compute class of the flavor's name, which its pods select."""

    def own_problems(self) -> Iterator[Problem]:
        """The rules of Kueue's own model; what comes from a pool or a class is not written here too."""
        giver = "nodePool" if self.node_pool is not None else "computeClass" if self.compute_class is not None else None
        if giver is None:
            yield from super().own_problems()
            return
        if self.node_pool is not None and self.compute_class is not None:
            yield EXCLUDED.at("nodePool", "set, but computeClass says which nodes there are", "keep one of the two")
        for field, value in (("nodeLabels", self.node_labels), ("nodeTaints", self.node_taints)):
            if value:
                yield EXCLUDED.at(field, f"set, but {giver} gives it", f"remove it, or remove {giver}")


class TopologyEntry(_OfObject, TopologySpec):
    """A Topology and the clusters where it exists."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the Topology."""
    clusters: ClusterNames | None = None
    """Default: every cluster that runs jobs."""


class CohortEntry(_OfObject, CohortSpec):
    """A Cohort; it exists wherever a queue, or a cohort, below it does."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the Cohort."""
    resource_groups: Annotated[ListOf[FleetResourceGroup], Field(max_length=16)] = ()
    """Quota of the cohort itself, for all of its queues."""


class ClusterQueueEntry(_OfObject, ClusterQueueSpec):
    """A ClusterQueue and the clusters where it exists."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the ClusterQueue, on every cluster."""
    clusters: ClusterNames | None = None
    """Default: every cluster that runs jobs. The manager's copy of a dispatched queue is derived."""
    resource_groups: Annotated[ListOf[FleetResourceGroup], Field(max_length=16)] = ()
    """What may be used: resources that go together, with their flavors and amounts."""
    fallback: Annotated[ListOf[FlavorPatience], Field(max_length=64)] = ()
    """Flavors whose nodes may not come, such as DWS: after the patience a job releases its quota there, with MultiKueue
    on all workers, and moves to the other flavors in their order. Needs the section controller.
    """
    quota_follows: Literal["file", "capacity"] = "file"
    """file (default): the quotas of this file. capacity: less while nodes of their flavors are broken, drained, missing
    or used by others, or a calendar reservation is not open; needs the section controller, which writes them within a
    minute.
    """
    slack: Flag = False
    """Whether lost capacity of its cohort first reduces what this queue lends; default false. Its quota is the cohort's
    reserve, so no job may be submitted to it. Needs `quotaFollows: capacity`."""
    goals: Goals | None = None
    """Goals for its jobs."""
    manager: ManagerQueue | None = None
    """The manager's quotas by hand; absent: the sum of the workers'."""

    @property
    def windows(self) -> tuple[str, ...]:
        """The windows in which a quota of it is another one."""
        return windows_of(self.resource_groups)

    def own_problems(self) -> Iterator[Problem]:
        """The rules of Kueue's own model, for this queue and for what it is on the manager."""
        yield from super().own_problems()
        if self.manager is None:
            return
        groups = self.manager.resource_groups
        for problem in (*check_resource_groups(groups, LimitRules(self, "cohortName")), *check_totals(groups)):
            yield problem.at("manager")


class ProvisioningRequestCheckArgs(ProvisioningRequestConfigSpec):
    """A check that asks for capacity before a job starts, with its ProvisioningRequestConfig."""

    config_name: DnsLabel | None = None
    """Name of the ProvisioningRequestConfig; default: the check's name."""

    @property
    def max_run_seconds(self) -> int | None:
        """Run time that each request asks for; None: it says none, or not in whole seconds."""
        return whole_number((self.parameters or {}).get(MAX_RUN_PARAMETER))


class AdmissionCheckEntry(_OfObject, RuledModel):
    """An AdmissionCheck and the clusters where it exists: either a ProvisioningRequest or somebody's controller."""

    removed: ClassVar[Mapping[str, str]] = {"retryDelayMinutes": "remove it: the check's controller sets the delay"}
    name: DnsSubdomain = Field(kw_only=False)
    """Name of the AdmissionCheck."""
    clusters: ClusterNames | None = None
    """Default: every cluster that runs jobs. Name the manager too where it should check before it dispatches."""
    provisioning_request: ProvisioningRequestCheckArgs | None = None
    """Ask for capacity first, by Kueue's own controller."""
    controller_name: Annotated[Text, Field(min_length=1, max_length=253)] | None = None
    """Another controller that answers the check. Immutable."""
    parameters: ParametersReference | None = None
    """A cluster-scoped object with further parameters for that controller."""

    @property
    def config_name(self) -> str:
        """Name of the ProvisioningRequestConfig."""
        return (self.provisioning_request.config_name if self.provisioning_request else None) or self.name

    @property
    def check_spec(self) -> AdmissionCheckSpec:
        """`spec` of the AdmissionCheck."""
        if self.provisioning_request is not None:
            reference = ParametersReference.model_construct(
                api_group="kueue.x-k8s.io", kind="ProvisioningRequestConfig", name=self.config_name
            )
            return AdmissionCheckSpec.model_construct(controller_name=PROVISIONING_CONTROLLER, parameters=reference)
        return AdmissionCheckSpec.model_construct(
            controller_name=self.controller_name or "", parameters=self.parameters
        )

    def own_problems(self) -> Iterator[Problem]:
        """Exactly one of the two kinds, and Kueue's own controllers by their own sections."""
        if (self.provisioning_request is None) == (self.controller_name is None):
            both = self.controller_name is not None
            yield EXCLUDED.at(
                "",
                "both provisioningRequest and controllerName are set"
                if both
                else "neither provisioningRequest nor controllerName is set",
                "set exactly one of the two",
            )
        if self.provisioning_request is not None and self.parameters is not None:
            yield EXCLUDED.at(
                "parameters",
                "set, but a provisioningRequest check refers to its own ProvisioningRequestConfig",
                "put the settings under provisioningRequest",
            )
        if self.controller_name == MULTIKUEUE_CONTROLLER:
            yield CHECK_OF_KUEUE.at(
                "controllerName",
                f"{MULTIKUEUE_CONTROLLER} is Kueue's MultiKueue controller",
                "remove this check and write the multiKueue section, which makes it",
            )
        elif self.controller_name == PROVISIONING_CONTROLLER:
            yield CHECK_OF_KUEUE.at(
                "controllerName",
                f"{PROVISIONING_CONTROLLER} is Kueue's ProvisioningRequest controller",
                "write provisioningRequest instead of controllerName",
            )


class PriorityClassEntry(_OfObject, PriorityClassFields):
    """A PriorityClass, on every cluster."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the PriorityClass."""

    def own_problems(self) -> Iterator[Problem]:
        """ValidatePriorityClass: the prefix `system-` is the system's."""
        yield from super().own_problems()
        if self.name.startswith("system-"):
            yield NAME_TAKEN.at("name", f"{self.name} begins with system-, which is reserved", "use another name")


class WorkloadPriorityClassEntry(_OfObject, WorkloadPriorityClassFields):
    """A WorkloadPriorityClass, on every cluster."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the WorkloadPriorityClass, as jobs give it."""


class LocalQueueEntry(_OfObject, LocalQueueSpec):
    """A LocalQueue outside of any team. Its namespace is created too, unless it is `default`."""

    name: DnsSubdomain = Field(kw_only=False)
    """Name of the LocalQueue, as jobs give it."""
    namespace: DnsLabel
    """Namespace that it is in."""
