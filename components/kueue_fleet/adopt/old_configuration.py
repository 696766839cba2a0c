"""Kueue's Configuration in v1beta1, as Kueue 0.19.2 reads it.

Source: kueue@v0.19.2 apis/config/v1beta1/configuration_conversion.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.kueue_installation import CONFIGURATION_API

OLD_API: Final = "config.kueue.x-k8s.io/v1beta1"
"""Its apiVersion."""
_STRATEGIES: Final = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
_POD_OPTIONS: Final = "integrations.podOptions"
_IGNORED: Final = ("queueVisibility", _POD_OPTIONS)
"""Fields that v1beta2 does not have, and Kueue passes over."""


def as_v1beta2(old: Object) -> tuple[Data, str | None]:
    """The Configuration in v1beta2, and which of its fields Kueue 0.19.2 passes over; None for none."""
    data = {**old, "apiVersion": CONFIGURATION_API, "integrations": dict(old.get("integrations") or {})}
    ignored = [name for name in _IGNORED if _pop(data, name) is not None]
    for section, defaults in (
        ("fairSharing", {"preemptionStrategies": _STRATEGIES}),
        ("waitForPodsReady", {"timeout": "5m", "blockAdmission": True}),
    ):
        given = data.pop(section, None)
        if isinstance(given, Mapping) and given.get("enable"):
            data[section] = {**defaults, **{name: value for name, value in given.items() if name != "enable"}}
    if not data["integrations"]:
        del data["integrations"]
    lost = f"{listed(ignored)} left out: Kueue 0.19 passes over what v1beta1 has there" if ignored else None
    if _POD_OPTIONS in ignored:
        lost = f"{lost}; managedJobsNamespaceSelector says which pods it manages"
    return data, lost


def _pop(data: Data, path: str) -> Any:
    *above, name = path.split(".")
    for part in above:
        data = data[part]
    return data.pop(name, None)
