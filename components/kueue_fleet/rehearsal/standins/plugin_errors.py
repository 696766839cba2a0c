"""What can go wrong in a plugin's operation; on its own, so that using it imports no gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PluginError(Exception):
    """An operation failed; the text is for the user and names what to do."""


class InitializationError(PluginError):
    """The resource exists, but did not become what was asked; its state is stored and the next update retries.

    Source: ErrorResourceInitFailed in pulumi's provider.proto.
    """

    def __init__(self, message: str, resource_id: str, properties: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.properties = properties
