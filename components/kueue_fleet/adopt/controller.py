"""The fleet's own controller, where it runs: its section of the file."""

from __future__ import annotations

from typing import Final

from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.adopt.platform import Platform
from kueue_fleet.settings.dispatch import ASSIGNMENT_CONTROLLER, CHECK_CONTROLLER, DISPATCHER_NAME
from kueue_fleet.settings.tokens import CONTROLLER_NAME

_OWN_CONTROLLERS: Final = (ASSIGNMENT_CONTROLLER, CHECK_CONTROLLER)


def adopt_controller(platform: Platform, dispatcher: str | None) -> Data | None:
    """The section of the controller; None where there is none.

    It is a problem where objects mention the controller and its settings are not given.
    """
    settings = platform.controller_settings
    if settings is not None:
        section = dict(settings.get("controller") or {})
        if dispatcher != DISPATCHER_NAME:
            # The section has this only where the controller dispatches.
            section.pop("dispatch", None)
        return section
    checks = [spec for specs in platform.found("AdmissionCheck").values() for spec in specs.values()]
    if dispatcher == DISPATCHER_NAME or any(spec.get("controllerName") in _OWN_CONTROLLERS for spec in checks):
        platform.problem(
            "controller",
            "is not known: the fleet's own controller runs here, and its settings are not among the objects",
            f"add the ConfigMap {CONTROLLER_NAME} of the manager to them",
        )
    return None
