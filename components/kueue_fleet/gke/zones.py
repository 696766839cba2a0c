"""Where machine types with GPUs are offered, for those whose zones are known here.

Data. Source: the prices that Google's own API lists by zone, as collected in
https://github.com/skypilot-org/skypilot-catalog at 006059e0, catalogs/v8/gcp/vms.csv. Google adds zones, so what is not
listed is a warning, not an error; types that are not listed at all are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OFFERED: Final[Mapping[str, Mapping[str, str]]] = {
    "a2-highgpu-": {
        "asia-northeast1": "ac",
        "asia-northeast3": "ab",
        "asia-southeast1": "abc",
        "europe-west4": "ab",
        "me-west1": "ac",
        "us-central1": "abcf",
        "us-east1": "b",
        "us-west1": "b",
        "us-west3": "b",
        "us-west4": "b",
    },
    "a2-megagpu-": {"asia-southeast1": "ac", "europe-west4": "ab", "us-central1": "abcf"},
    "a2-ultragpu-": {
        "asia-southeast1": "c",
        "europe-west4": "a",
        "us-central1": "ac",
        "us-east4": "c",
        "us-east5": "ab",
    },
    "a3-highgpu-1g": {
        "asia-east1": "c",
        "asia-northeast1": "b",
        "asia-south1": "c",
        "asia-south2": "b",
        "asia-southeast1": "bc",
        "australia-southeast1": "c",
        "europe-north1": "c",
        "europe-west1": "bc",
        "europe-west3": "c",
        "europe-west4": "bc",
        "europe-west8": "c",
        "europe-west9": "c",
        "us-central1": "abc",
        "us-east4": "abc",
        "us-east5": "a",
        "us-west1": "ab",
        "us-west4": "a",
    },
}
"""Letters of the zones, by region, by the beginning of the machine type's name."""


def zones_offering(machine_type: str, region: str) -> tuple[str, ...] | None:
    """The zones of `region` where the machine type is offered; None where nothing is known about the type."""
    known = next((zones for prefix, zones in _OFFERED.items() if machine_type.startswith(prefix)), None)
    return None if known is None else tuple(f"{region}-{letter}" for letter in known.get(region, ""))


def regions_offering(machine_type: str) -> tuple[str, ...]:
    """The regions where the machine type is offered, as far as known."""
    known: Mapping[str, str] = next(
        (zones for prefix, zones in _OFFERED.items() if machine_type.startswith(prefix)), {}
    )
    return tuple(known)


_MACHINES_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "nvidia-tesla-a100": ("a2-highgpu-", "a2-megagpu-"),
    "nvidia-a100-80gb": ("a2-ultragpu-",),
}
"""For kinds of GPU whose machine types are all listed above, these."""


def regions_with(accelerator: str) -> tuple[str, ...] | None:
    """The regions where machines with the kind of GPU are offered; None where nothing is known about it."""
    prefixes = _MACHINES_WITH.get(accelerator)
    if prefixes is None:
        return None
    return tuple(dict.fromkeys(region for prefix in prefixes for region in _OFFERED[prefix]))
