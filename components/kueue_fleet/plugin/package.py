"""The Pulumi package schema: every public component with its inputs and outputs, and the fleet file's models as types.

The schema as plain data, from which Pulumi generates SDKs and against which it checks YAML. Source of the format:
https://www.pulumi.com/docs/iac/using-pulumi/extending-pulumi/schema/.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import pulumi
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

import kueue_fleet
from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.component import Schema, data_of
from kueue_fleet.fleet_file.form import models_in
from kueue_fleet.fleet_file.schema import describe, field_docs
from kueue_fleet.in_programs import Described
from kueue_fleet.plugin.arguments import INPUT_MARK, arguments_of, inputs_of
from kueue_fleet.plugin.descriptions import ARGUMENTS, describe_argument

PACKAGE: Final = PRODUCT
"""Name of the package, and first part of every token."""
TYPES_MODULE: Final = "spec"
"""Module of the models' tokens: some have the name of a component."""

_DEFINITION: Final = "#/$defs/"
_TYPES: Final = "#/types/"
_ANY: Final[Mapping[str, Any]] = {"$ref": "pulumi.json#/Any"}
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


def components() -> dict[str, type[pulumi.ComponentResource]]:
    """The public components by name."""
    public = ((name, getattr(kueue_fleet, name)) for name in kueue_fleet.__all__)
    return {
        name: component
        for name, component in public
        if isinstance(component, type) and issubclass(component, pulumi.ComponentResource)
    }


@cache
def package_schema() -> Schema:
    """The schema of the package, of the version that is installed."""
    arguments = {name: arguments_of(component) for name, component in components().items()}
    _, schema = models_json_schema([(model, "validation") for model in arguments.values()], by_alias=True)
    definitions: dict[str, Schema] = schema["$defs"]
    seen_models: set[type[BaseModel]] = set()
    for root in arguments.values():
        for model in models_in(root, seen_models):
            describe(model, definitions[model.__name__])
    roots = {model.__name__ for model in arguments.values()}
    types: dict[str, Schema] = {}
    for name, definition in definitions.items():
        if name not in roots:
            types[_type_token(name)] = _object_type(name, definition, types)
    resources = {
        f"{PACKAGE}:index:{name}": _resource(name, component, definitions[arguments[name].__name__], types)
        for name, component in components().items()
    }
    return {
        "name": PACKAGE,
        "version": version(PACKAGE),
        "displayName": PACKAGE,
        "description": "GPU batch fleets on GKE with Kueue.",
        "license": "Apache-2.0",
        "resources": resources,
        "types": dict(sorted(types.items())),
        "language": {name: {"respectSchemaVersion": True} for name in ("csharp", "go", "java", "nodejs", "python")},
    }


def _type_token(name: str) -> str:
    return f"{PACKAGE}:{TYPES_MODULE}:{name}"


def _object_type(name: str, definition: Schema, types: dict[str, Schema]) -> Schema:
    properties = definition.get("properties", {})
    schema: Schema = {
        "type": "object",
        "description": definition.get("description", ""),
        "properties": {key: _property(name, key, value, types) for key, value in properties.items()},
    }
    if definition.get("required"):
        schema["required"] = sorted(definition["required"])
    return schema


def _property(owner: str, key: str, schema: Schema, types: dict[str, Schema]) -> Schema:
    property_type = _type(f"{owner}{key[0].upper()}{key[1:]}", schema, types)
    property_type["description"] = schema.get("description") or ARGUMENTS.get(key, "")
    if "const" in schema:
        property_type["const"] = schema["const"]
    if not property_type["description"]:
        del property_type["description"]
    if schema.get("deprecated"):
        property_type["deprecationMessage"] = property_type["description"]
    return property_type


def _type(name: str, schema: Schema, types: dict[str, Schema]) -> Schema:
    """The type of a value; `name` is for an enumeration, which needs one."""
    plain: Schema = {} if schema.get(INPUT_MARK) else {"plain": True}
    choices = [choice for choice in schema.get("anyOf") or schema.get("oneOf") or () if choice.get("type") != "null"]
    if len(choices) == 1:
        return _type(name, {**choices[0], INPUT_MARK: schema.get(INPUT_MARK)}, types)
    if choices:
        type_schema: Schema = {"oneOf": [_type(name, choice, types) for choice in choices], **plain}
        if "discriminator" in schema:
            discriminator = schema["discriminator"]
            type_schema["discriminator"] = {
                "propertyName": discriminator["propertyName"],
                "mapping": {tag: f"{_TYPES}{_type_token(_name(ref))}" for tag, ref in discriminator["mapping"].items()},
            }
        return type_schema
    if "$ref" in schema:
        return {"$ref": f"{_TYPES}{_type_token(_name(schema['$ref']))}", **plain}
    if "enum" in schema:
        token = _type_token(name)
        types[token] = {"type": "string", "enum": [{"value": value} for value in schema["enum"]]}
        return {"$ref": f"{_TYPES}{token}", **plain}
    kind = schema.get("type")
    if kind == "array":
        return {"type": "array", "items": _type(name, schema.get("items", {}), types), **plain}
    if kind == "object":
        values = schema.get("additionalProperties", {})
        inner = _type(name, values, types) if isinstance(values, dict) and values else {**_ANY, **plain}
        return {"type": "object", "additionalProperties": inner, **plain}
    return {"type": kind, **plain} if kind in _SCALARS else {**_ANY, **plain}


def _name(reference: str) -> str:
    return reference.removeprefix(_DEFINITION)


def _resource(
    name: str, component: type[pulumi.ComponentResource], definition: Schema, types: dict[str, Schema]
) -> Schema:
    inputs: Schema = {}
    unpacked_type = inputs_of(component)
    own = {to_camel(field): text for field, text in field_docs(unpacked_type).items()} if unpacked_type else {}
    for key, schema in definition.get("properties", {}).items():
        inputs[key] = _type(f"{name}{key[0].upper()}{key[1:]}", schema, types)
        model = types.get(inputs[key].get("$ref", "")[len(_TYPES) :])
        inputs[key]["description"] = own.get(key) or describe_argument(name, key, model)
    outputs = {key: {"description": doc, **schema} for key, (_, doc, schema) in outputs_of(component).items()}
    return {
        "isComponent": True,
        "description": inspect.cleandoc(_docstring(component)),
        "inputProperties": inputs,
        "requiredInputs": sorted(definition.get("required", ())),
        "properties": outputs,
    }


def _docstring(component: type[Any]) -> str:
    """The docstring of a component without its attributes, which a schema has as outputs."""
    doc = vars(component).get("__doc__")
    return doc.written if isinstance(doc, Described) else doc or ""


def outputs_of(component: type[Any]) -> dict[str, tuple[str, str, Schema]]:
    """What a component gives out, by its name in camelCase: the attribute, its meaning and its type."""
    return {to_camel(name): (name, _meaning(base, name), schema) for name, (base, schema) in data_of(component).items()}


def _meaning(base: type[Any], name: str) -> str:
    """The docstring of an attribute or property."""
    attribute = vars(base).get(name)
    return (
        inspect.cleandoc(attribute.__doc__ or "") if isinstance(attribute, property) else field_docs(base).get(name, "")
    )
