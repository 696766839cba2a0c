"""Values on the wire: what the engine sends is what it gets back, with secrets and unknowns in their places."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime import rpc

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_rehearsal.standins import property_values
from kueue_rehearsal.standins.property_values import (
    Asset,
    Secret,
    UnsupportedValueError,
    has_secret,
    parse_struct,
    render_struct,
    reveal,
    with_secrets_of,
)


def test_the_signatures_are_those_of_the_sdk() -> None:
    ours = property_values
    assert rpc._special_sig_key == ours.SIGNATURE_KEY
    assert rpc._special_secret_sig == ours.SECRET_SIGNATURE
    assert rpc._special_asset_sig == ours.ASSET_SIGNATURE
    assert rpc._special_archive_sig == ours.ARCHIVE_SIGNATURE
    assert rpc._special_resource_sig == ours.RESOURCE_SIGNATURE
    assert rpc._special_output_value_sig == ours.OUTPUT_SIGNATURE
    assert ours.UNKNOWN_STRING == rpc.UNKNOWN


def test_everything_survives_a_round_trip() -> None:
    values = {
        "text": "a",
        "number": 7,
        "fraction": 0.5,
        "yes": True,
        "list": [1, "two", None, {"three": 3}],
        "empty": {},
        "nothing": [],
        "secret": Secret({"token": "t", "list": [Secret("nested")]}),
        "unknown": UNKNOWN,
        "asset": Asset(text="hello"),
    }
    assert parse_struct(render_struct(values)) == values


def test_whole_numbers_become_integers_and_others_stay() -> None:
    struct = struct_pb2.Struct()
    struct.update({"replicas": 3.0, "weight": 1.5, "huge": 1e300})
    parsed = parse_struct(struct)
    assert isinstance(parsed["replicas"], int)
    assert parsed == {"replicas": 3, "weight": 1.5, "huge": 1e300}


def test_members_that_are_null_are_left_out() -> None:
    struct = struct_pb2.Struct()
    struct.update({"gone": None, "inner": {"gone": None, "kept": 1}})
    assert parse_struct(struct) == {"inner": {"kept": 1}}
    assert "gone" not in render_struct({"gone": None}).fields


@pytest.mark.parametrize("signature", [property_values.ARCHIVE_SIGNATURE, property_values.RESOURCE_SIGNATURE])
def test_archives_and_resource_references_are_refused(signature: str) -> None:
    struct = struct_pb2.Struct()
    struct.update({"x": {property_values.SIGNATURE_KEY: signature, "path": "p"}})
    with pytest.raises(UnsupportedValueError, match="does not take"):
        parse_struct(struct)


def test_an_output_value_is_its_value_or_unknown() -> None:
    key, signature = property_values.SIGNATURE_KEY, property_values.OUTPUT_SIGNATURE
    struct = struct_pb2.Struct()
    struct.update({"known": {key: signature, "value": "v", "secret": True}, "unknown": {key: signature}})
    assert parse_struct(struct) == {"known": Secret("v"), "unknown": UNKNOWN}


def test_secrets_are_found_however_deep() -> None:
    assert has_secret({"a": [{"b": Secret(1)}]})
    assert not has_secret({"a": [1]})
    assert reveal({"a": [Secret({"b": Secret(1)})]}) == {"a": [{"b": 1}]}


def test_a_secret_does_not_show_its_value() -> None:
    assert "hunter2" not in repr({"a": Secret("hunter2")})


def test_outputs_are_secret_where_the_inputs_are() -> None:
    outputs = {"spec": {"token": "t", "size": 1, "keys": ["a", "b"]}, "status": {"token": "t"}}
    inputs = {"spec": {"token": Secret("t"), "size": 1, "keys": [Secret("a"), "b"]}}
    assert with_secrets_of(outputs, inputs) == {
        "spec": {"token": Secret("t"), "size": 1, "keys": Secret(["a", "b"])},
        "status": {"token": "t"},
    }


def test_data_of_a_kubernetes_secret_is_always_secret() -> None:
    marked = with_secrets_of({"kind": "Secret", "data": {"a": "YQ=="}, "metadata": {"name": "s"}}, {})
    assert marked == {"kind": "Secret", "data": Secret({"a": "YQ=="}), "metadata": {"name": "s"}}
