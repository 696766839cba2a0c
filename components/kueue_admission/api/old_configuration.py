"""Kueue's Configuration in v1beta1, as Kueue 0.19.2 reads it.

Source: kueue@v0.19.2 apis/config/v1beta1/configuration_conversion.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONFIGURATION_API: Final = "config.kueue.x-k8s.io/v1beta2"
"""The apiVersion of Kueue's Configuration."""
_OLD_API: Final = "config.kueue.x-k8s.io/v1beta1"
_STRATEGIES: Final = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
POD_OPTIONS: Final = "integrations.podOptions"
"""A field of v1beta1 that says which pods Kueue manages."""
_IGNORED: Final = ("queueVisibility", POD_OPTIONS)
"""Fields that v1beta2 does not have, and Kueue passes over."""


def configuration_as_v1beta2(old: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The Configuration in v1beta2, and which of its fields Kueue 0.19.2 passes over; as it is in another version."""
    if old.get("apiVersion") != _OLD_API:
        return dict(old), []
    data = {**old, "apiVersion": CONFIGURATION_API, "integrations": dict(old.get("integrations") or {})}
    ignored_names = [name for name in _IGNORED if _pop(data, name) is not None]
    for section, defaults in (
        ("fairSharing", {"preemptionStrategies": _STRATEGIES}),
        ("waitForPodsReady", {"timeout": "5m", "blockAdmission": True}),
    ):
        section_data = data.pop(section, None)
        if isinstance(section_data, Mapping) and section_data.get("enable"):
            data[section] = {**defaults, **{name: value for name, value in section_data.items() if name != "enable"}}
    if not data["integrations"]:
        del data["integrations"]
    return data, ignored_names


def _pop(data: dict[str, Any], path: str) -> Any:
    *above, name = path.split(".")
    for part in above:
        data = data[part]
    return data.pop(name, None)
