"""Entries of several forms, which their `type` tells apart."""

from typing import Any

from pydantic import GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import CoreSchema

from kueue_admission.kernel.base import RuledModel


class Tagged(RuledModel):
    """One of several models that files tell apart by `type`, which a program leaves out."""

    @model_serializer(mode="wrap")
    def _with_type(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"type": type(self).model_fields["type"].default, **serialize(self)}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: "CoreSchema", handler: GetJsonSchemaHandler) -> dict[str, Any]:
        resolved_schema = handler.resolve_ref_schema(handler(schema))
        del resolved_schema["properties"]["type"]["default"]
        resolved_schema["required"] = ["type", *resolved_schema.get("required", ())]
        return resolved_schema
