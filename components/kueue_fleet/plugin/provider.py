"""The plugin's process: it answers with the schema, and declares a component when the engine asks for one.

What the library refuses is said at the component, problem by problem.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult, Provider
from pulumi.provider import main as serve

from kueue_admission.kernel import Problem, SpecError, errors_of
from kueue_fleet.component import state_of
from kueue_fleet.fleet_file import FleetSpec, check_dates, check_fleet
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.plugin.arguments import read_arguments
from kueue_fleet.plugin.package import PACKAGE, components, package_schema


class FleetPlugin(Provider):
    """The provider of the package `kueue-fleet`."""

    def __init__(self) -> None:
        schema = package_schema()
        super().__init__(schema["version"], json.dumps(schema))
        self._components = components()

    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Declare a component.

        Raises:
            InputPropertiesError: every problem of the inputs.
        """
        component = self._components.get(resource_type.removeprefix(f"{PACKAGE}:index:"))
        if component is None:
            raise _refusal(
                resource_type, [COMPONENT.at("", f"is not a component of {PACKAGE}", "see its schema for those")]
            )
        try:
            arguments = read_arguments(component, inputs)
            _warn(arguments.get("spec"))
            component_there = component(name, **arguments, opts=options)
        except SpecError as error:
            raise _refusal(resource_type, errors_of(error.problems)) from None
        except ValueError as error:
            # Of a component's constructor, whose argument is in the text.
            raise _refused(resource_type, [("", str(error))]) from None
        return ConstructResult(component_there.urn, dict(state_of(component_there)))


def _refusal(resource_type: str, problems: Iterable[Problem]) -> InputPropertiesError:
    return _refused(resource_type, ((problem.path, f"{problem.wrong}; {problem.fix}") for problem in problems))


def _refused(resource_type: str, reasons: Iterable[tuple[str, str]]) -> InputPropertiesError:
    """The engine shows each reason below the resource, at its path."""
    return InputPropertiesError(
        f"{resource_type} cannot be used", [{"property_path": path, "reason": reason} for path, reason in reasons]
    )


def _warn(spec: Any) -> None:
    """Log what is doubtful about a fleet, as the library's own program does."""
    if isinstance(spec, FleetSpec):
        today = datetime.now(UTC).date()  # noqa: TID251  (the plugin is a program)
        for problem in (*check_fleet(spec), *check_dates(spec, today)):
            pulumi.log.warn(problem.coded)


def main() -> None:
    """Serve the engine whose address is among the command-line arguments."""
    serve(FleetPlugin(), sys.argv[1:])
