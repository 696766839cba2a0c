"""Admission checks: Kueue's own ProvisioningRequest check, and checks that another controller answers.

The MultiKueue check is in `kueue_fleet.kueue_components.multikueue`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import pulumi

from kueue_admission.api import AdmissionCheckSpec
from kueue_admission.api.manifests import admission_check_manifest
from kueue_admission.kernel import Problem, SpecError, syntax
from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER
from kueue_admission.kernel.suggest import misspelt
from kueue_fleet.component import judge
from kueue_fleet.fleet_file import AdmissionCheckEntry
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.kueue_components.applied_objects import KubernetesObject
from kueue_fleet.kueue_components.asked import Asked, Key, asked_for
from kueue_fleet.kueue_components.component import Component, StatusComponent, declare_object
from kueue_fleet.objects.render import render_admission_check, render_provisioning_request_config

OWN_CONTROLLERS = frozenset({MULTIKUEUE_CONTROLLER, PROVISIONING_CONTROLLER})
"""Controllers that are part of Kueue, which is there when the check is made."""


class AdmissionCheck(StatusComponent[AdmissionCheckSpec]):
    """An AdmissionCheck."""

    kind = "AdmissionCheck"
    model = AdmissionCheckSpec
    render = admission_check_manifest
    name_syntax = syntax.admission_check_name

    expect_active: bool = False
    """Whether the check was waited for; queues that use one that was not may stay inactive for now."""

    def __init__(
        self,
        name: str,
        spec: AdmissionCheckSpec | Manifest,
        *,
        object_name: str | None = None,
        expect_active: bool | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the check.

        By default it waits only for a check that Kueue itself answers: another controller may be installed later.
        The check's controller is immutable, and Kueue keeps a deleted check until no queue uses it. Replacing a check
        would therefore hang: the update is refused, with the advice to use a new name.
        """
        declaration = asked_for(type(self), spec, name, object_name, opts)
        judge(_unanswered(declaration), opts)
        own = declaration.manifest["spec"]["controllerName"] in OWN_CONTROLLERS
        self.expect_active = own if expect_active is None else expect_active
        self._declare(name, declaration, opts, expect_active=self.expect_active)


def _unanswered(asked: Asked) -> Iterator[Problem]:
    """What no controller of Kueue answers. Source: kueue@v0.19.2 pkg/util/admissioncheck (ConfigFromRef)."""
    spec = asked.manifest["spec"]
    controller = spec["controllerName"]
    if controller in OWN_CONTROLLERS and not spec.get("parameters"):
        wrong = f"is missing, and {controller} reads there what to do"
        fix = "name its config, or use the component ProvisioningRequestCheck or MultiKueue"
        yield NEEDED.at(f"{asked.where}.parameters", wrong, fix)
    path = f"{asked.where}.controllerName"
    yield from misspelt(path, controller, OWN_CONTROLLERS, "is not a controller of Kueue", 0.7)


class ProvisioningRequestCheck(Component):
    """A check that asks for capacity before a job starts, with its ProvisioningRequestConfig."""

    kind: ClassVar[str] = "AdmissionCheck"
    """Kind of what others refer to."""
    config: KubernetesObject
    """The ProvisioningRequestConfig."""
    check: AdmissionCheck
    """The AdmissionCheck."""
    object_name: str
    """Name of the AdmissionCheck."""
    expect_active: bool = True
    """The check is always waited for."""

    @property
    def name(self) -> pulumi.Output[str]:
        """Name of the AdmissionCheck, once it is there."""
        return self.check.name

    @property
    def status(self) -> pulumi.Output[Any]:
        """Status of the AdmissionCheck when it was last made, changed or read."""
        return self.check.status

    @property
    def declares(self) -> dict[Key, pulumi.Resource]:
        """The check."""
        return {(self.kind, self.object_name): self}

    def __init__(self, name: str, spec: AdmissionCheckEntry, *, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the check and its config; both have their names from the entry.

        Raises:
            SpecError: the entry is not a ProvisioningRequest check, or breaks rules.
        """
        configs = render_provisioning_request_config(spec)
        if not configs:
            wrong = "there is no provisioningRequest"
            raise SpecError([COMPONENT.at(f"AdmissionCheck {spec.name}", wrong, "use AdmissionCheck for other checks")])
        judge(check_alone("admissionChecks", spec), opts)
        super().__init__(name, opts)
        self.config = declare_object(self, name, configs[0])
        self.check = AdmissionCheck(
            name,
            render_admission_check(spec),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.config], deleted_with=self.deleted_with),
        )
        self.object_name = self.check.object_name
        self._give_out()
