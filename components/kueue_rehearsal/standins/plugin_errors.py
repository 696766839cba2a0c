"""What can go wrong in a plugin's operation; on its own, so that using it imports no gRPC."""

from __future__ import annotations


class PluginError(Exception):
    """An operation failed; the text is for the user and names what to do."""
