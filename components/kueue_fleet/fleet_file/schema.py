"""The JSON schema of fleet files, so that editors complete and check them.

Rules across fields are beyond a schema; `parse` has them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.form import models_in
from kueue_fleet.fleet_file.former_names import former_names
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.fleet_file.parse import PULUMI_KEY, REHEARSAL_KEY

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of JSON schema that is written."""


def json_schema() -> dict[str, Any]:
    """JSON schema of a bare fleet file, or of a Pulumi.<env>.yaml with a fleet in its config."""
    definitions: dict[str, Any] = {}
    documented_models: dict[str, type[BaseModel]] = {}
    for root in (FleetSpec, RehearsalSection):
        schema = root.model_json_schema(by_alias=True)
        definitions |= schema.pop("$defs")
        definitions[root.__name__] = schema
        documented_models |= {model.__name__: model for model in models_in(root, set())}
    for name, definition in definitions.items():
        if name in documented_models:
            describe(documented_models[name], definition)
    stack = {
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": [PULUMI_KEY],
                "properties": {
                    PULUMI_KEY: {"$ref": "#/$defs/FleetSpec"},
                    REHEARSAL_KEY: {"$ref": "#/$defs/RehearsalSection"},
                },
            }
        },
    }
    return {
        "$schema": DRAFT,
        "title": PRODUCT,
        "description": "A GPU batch fleet, bare or in the config of a Pulumi stack.",
        "if": {"type": "object", "required": ["config"]},
        "then": stack,
        "else": {"$ref": "#/$defs/FleetSpec"},
        "$defs": definitions,
    }


def describe(model: type[BaseModel], definition: dict[str, Any]) -> None:
    """Put the docstrings below the fields of `model` and its bases into the schema, and old names of fields."""
    definition.pop("title", None)
    for property_schema in definition.get("properties", {}).values():
        property_schema.pop("title", None)
        if property_schema.get("default", "") is None:
            del property_schema["default"]
    definition["description"] = inspect.cleandoc(model.__doc__ or "")
    for base in reversed(model.__mro__):
        if not (isinstance(base, type) and issubclass(base, BaseModel)) or base is BaseModel:
            continue
        for name, text in field_docs(base).items():
            field = model.model_fields.get(name)
            property_schema = definition.get("properties", {}).get(field.alias or name) if field is not None else None
            if property_schema is not None:
                property_schema["description"] = text
    for former, name in former_names(model).items():
        definition["properties"][former] = {
            **definition["properties"][name],
            "description": f"Old name of `{name}`, which the next release does not have.",
            "deprecated": True,
        }


def field_docs(model: type[Any]) -> dict[str, str]:
    """The string below each annotated field in the source of the class `model`."""
    docs = {}
    for statement, after in pairwise(_class_bodies(model.__module__).get(model.__name__, [])):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            docs[statement.target.id] = inspect.cleandoc(after.value.value)
    return docs


@cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of each class of a module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
