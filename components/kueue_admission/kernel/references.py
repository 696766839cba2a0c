"""Fields that name another object: they take the name, or what a program declares the object with.

A name that came from a declaration keeps it, so that what declares the object that refers can wait for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol

from pydantic import GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema

from kueue_admission.kernel.base import DnsSubdomain, Text, syntax_of
from kueue_admission.kernel.form_rules import WRONG_TYPE, Fault
from kueue_admission.kernel.given import Given
from kueue_admission.kernel.syntax import admission_check_name
from kueue_admission.kernel.unknown import is_late


class Declared(Protocol):
    """What declares an object of a cluster, as components do."""

    @property
    def kind(self) -> str:
        """Kind of the object."""

    @property
    def object_name(self) -> str:
        """Name of the object."""


class ObjectName(str):
    """The name of an object, and what declares it. Copies of it are plain text."""

    declared: Declared

    def __new__(cls, declaration: Declared) -> ObjectName:
        """The name is the object's."""
        object_name = super().__new__(cls, declaration.object_name)
        object_name.declared = declaration
        return object_name

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


@dataclass(frozen=True, slots=True)
class RefersTo:
    """Metadata of a field: it names an object of this kind."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The schema of the name, behind the declaration."""
        return core_schema.no_info_wrap_validator_function(self._read, handler(source))

    def _read(self, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, ObjectName):
            value = value.declared
        name = None if is_late(value) else getattr(value, "object_name", None)
        if not isinstance(name, str):
            return read(value)
        if getattr(value, "kind", None) != self.kind:
            raise Fault(f"is given where a {self.kind} is needed", f"give a {self.kind}", WRONG_TYPE).error()
        read(name)
        return ObjectName(value)


# Any: in a subclass of a frozen model such a field would read as the type that it takes (mypy 2.4.1).
FlavorName = Given[Annotated[DnsSubdomain, RefersTo("ResourceFlavor")], Any]
"""Names a ResourceFlavor."""
FlavorNames = Given[tuple[Annotated[DnsSubdomain, RefersTo("ResourceFlavor")], ...], Any]
"""Names ResourceFlavors."""
NO_NAMES: Final[Any] = ()
"""Default of such a field. Untyped: to a type checker it is more than a plain value."""
QueueName = Given[Annotated[DnsSubdomain, RefersTo("ClusterQueue")], Any]
"""Names a ClusterQueue."""
OptionalCohortName = Given[Annotated[DnsSubdomain, RefersTo("Cohort")] | None, Any]
"""Names a Cohort, or none."""
OptionalTopologyName = Given[Annotated[DnsSubdomain, RefersTo("Topology")] | None, Any]
"""Names a Topology, or none."""
CheckName = Given[Annotated[Text, syntax_of(admission_check_name), RefersTo("AdmissionCheck")], Any]
"""Names an AdmissionCheck."""
