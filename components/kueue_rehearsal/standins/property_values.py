"""Pulumi property values: from the wire's Struct to plain Python and back.

Plain values are JSON's. Three things JSON does not have are kept apart: `Secret`, `UNKNOWN` (a value that is known
only after another resource has been created) and `Asset`. Numbers arrive as doubles; those that are whole become
`int`, as a Kubernetes API server refuses `8.0` where it wants `8`.

Source of the signatures: pulumi sdk v3.250 go/common/resource/sig and resource/plugin/rpc.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from google.protobuf import struct_pb2  # type: ignore[import-untyped]

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_rehearsal.standins.plugin_errors import PluginError

SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
"""Key of a map that is a special value; what kind it is says its value."""
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  (a marker, the same in every program)
"""Marks a secret."""
ASSET_SIGNATURE: Final = "c44067f5952c0a294b673a41bacd8c17"
"""Marks an asset."""
ARCHIVE_SIGNATURE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"
"""Marks an archive."""
RESOURCE_SIGNATURE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
"""Marks a reference to a resource."""
OUTPUT_SIGNATURE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
"""Marks an output."""
UNKNOWN_STRING: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a text that a preview cannot know."""
UNKNOWN_STRINGS: Final = frozenset(
    {
        UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""Stand for values of any type that a preview cannot know."""
LARGEST_EXACT_INTEGER: Final = 2**53
"""Above it a float no longer tells whole numbers apart."""

Value: TypeAlias = Any
"""None, bool, int, float, str, list, dict, `Secret`, `UNKNOWN` or `Asset`."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must be encrypted wherever it is stored, and never shown."""

    value: Value

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file given to a resource: its text, or where it is. Exactly one is set."""

    text: str | None = None
    path: str | None = None
    uri: str | None = None


class UnsupportedValueError(PluginError):
    """A property value of a kind that no stand-in handles."""


def parse_struct(struct: struct_pb2.Struct) -> dict[str, Value]:
    """The properties in `struct`; null members are left out, as the real providers do.

    Raises UnsupportedValueError for archives and resource references.
    """
    return _parse_fields(struct.fields)


def _parse_fields(fields: Mapping[str, struct_pb2.Value]) -> dict[str, Value]:
    parsed_fields = {}
    for key, field in fields.items():
        value = parse_value(field)
        if value is not None:
            parsed_fields[key] = value
    return parsed_fields


def parse_value(value: struct_pb2.Value) -> Value:
    """One value from the wire; see `parse_struct`."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in UNKNOWN_STRINGS else value.string_value
    if kind == "number_value":
        return whole_number(value.number_value)
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [parse_value(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _parse_object(value.struct_value.fields)
    return None


def whole_number(number: float) -> int | float:
    """`number` as int where it is whole and exact, else unchanged."""
    return int(number) if number.is_integer() and abs(number) <= LARGEST_EXACT_INTEGER else number


def _parse_object(fields: Mapping[str, struct_pb2.Value]) -> Value:
    if SIGNATURE_KEY not in fields:
        return _parse_fields(fields)
    signature = fields[SIGNATURE_KEY].string_value
    if signature == SECRET_SIGNATURE:
        return Secret(parse_value(fields["value"]))
    if signature == OUTPUT_SIGNATURE:
        inner = parse_value(fields["value"]) if "value" in fields else UNKNOWN
        is_secret = "secret" in fields and fields["secret"].bool_value
        return Secret(inner) if is_secret else inner
    if signature == ASSET_SIGNATURE:
        return Asset(**{key: fields[key].string_value for key in ("text", "path", "uri") if key in fields})
    names = {ARCHIVE_SIGNATURE: "an archive", RESOURCE_SIGNATURE: "a resource reference"}
    raise UnsupportedValueError(f"the stand-in does not take {names.get(signature, signature)} as a property value")


def render_struct(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """`properties` as a wire Struct; members that are None are left out."""
    struct = struct_pb2.Struct()
    _render_fields(properties, struct)
    return struct


def _render_fields(properties: Mapping[str, Value], struct: struct_pb2.Struct) -> None:
    fields = struct.fields
    for key, value in properties.items():
        if value is not None:
            _render_value(value, fields[key])


def _render_value(value: Value, target: struct_pb2.Value) -> None:
    if value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif value is UNKNOWN:
        target.string_value = UNKNOWN_STRING
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, Secret | Asset):
        _render_signed(value, target.struct_value.fields)
    elif isinstance(value, Mapping):
        target.struct_value.SetInParent()
        _render_fields(value, target.struct_value)
    elif isinstance(value, list | tuple):
        target.list_value.SetInParent()
        for item in value:
            _render_value(item, target.list_value.values.add())
    else:
        raise UnsupportedValueError(f"a {type(value).__name__} is not a property value")


def _render_signed(value: Secret | Asset, fields: Any) -> None:
    if isinstance(value, Secret):
        fields[SIGNATURE_KEY].string_value = SECRET_SIGNATURE
        _render_value(value.value, fields["value"])
        return
    fields[SIGNATURE_KEY].string_value = ASSET_SIGNATURE
    for key in ("text", "path", "uri"):
        if (part := getattr(value, key)) is not None:
            fields[key].string_value = part


def reveal(value: Value) -> Value:
    """`value` with every `Secret` replaced by what it holds."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, dict):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has_secret(value: Value) -> bool:
    """Whether `value` is or contains a `Secret`."""
    if isinstance(value, dict):
        return any(map(has_secret, value.values()))
    return isinstance(value, Secret) or (isinstance(value, list) and any(map(has_secret, value)))


def with_secrets_of(outputs: dict[str, Value], inputs: Mapping[str, Value]) -> dict[str, Value]:
    """`outputs` with the members made secret that are secret in `inputs`.

    Objects are followed member by member; a list is made secret as a whole when any input element is, since a server
    may reorder it. The `data` and `stringData` of an object of kind Secret are always secret.
    Source: annotateSecrets in pulumi-kubernetes provider/pkg/provider/provider.go.
    """
    marked_outputs = dict(outputs)
    if marked_outputs.get("kind") == "Secret":
        for key in ("data", "stringData"):
            if key in marked_outputs and not isinstance(marked_outputs[key], Secret):
                marked_outputs[key] = Secret(marked_outputs[key])
        return marked_outputs
    for key, input_value in inputs.items():
        if key not in marked_outputs:
            continue
        value = marked_outputs[key]
        if isinstance(value, dict) and isinstance(input_value, dict):
            marked_outputs[key] = with_secrets_of(value, input_value)
        elif not isinstance(value, Secret) and has_secret(input_value):
            marked_outputs[key] = Secret(value)
    return marked_outputs
