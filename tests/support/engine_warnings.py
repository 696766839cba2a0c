"""A log of Pulumi's engine that keeps what a stand-in warns of."""

from __future__ import annotations

from kueue_rehearsal.standins.plugin_server import EngineLog


class Warnings(EngineLog):
    """Writes nowhere."""

    def __init__(self) -> None:
        super().__init__(None)
        self.warnings: list[str] = []

    def warning(self, urn: str, message: str) -> None:
        self.warnings.append(message)
