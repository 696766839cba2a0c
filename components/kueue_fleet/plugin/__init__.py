"""The components for Pulumi programs in other languages: YAML, TypeScript and whatever else Pulumi speaks.

Inputs and their documentation are derived from constructors and the fleet file's models (`arguments`, `package`), so
there is no second list of fields to keep; `provider` declares the component. Programs in Python import the library
instead.
"""

from kueue_fleet.plugin.arguments import arguments_of, read_arguments
from kueue_fleet.plugin.package import package_schema
from kueue_fleet.plugin.provider import FleetPlugin, main

__all__ = ["FleetPlugin", "arguments_of", "main", "package_schema", "read_arguments"]
