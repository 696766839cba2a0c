"""Random LimitRanges, and pods that they change or refuse; for the setting `limits`."""

from __future__ import annotations

import random
from typing import Any, Final

Json = dict[str, Any]

RUNTIME: Final = "sandboxed"
_BIG: Final = ("500m", "1", "2", "3", "4")


def limit_ranges(rng: random.Random) -> Json:
    """One LimitRange of containers, of pods or of both, or none; one that the API server takes."""
    items: list[Json] = []
    if rng.random() < 0.8:
        items.append({"type": "Container", **_bounds(rng)})
    if rng.random() < 0.35:
        bounds = _bounds(rng)
        items.append({"type": "Pod", **{key: bounds[key] for key in ("min", "max") if key in bounds}})
    if rng.random() < 0.1:
        items.append({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}})
    return {"limits": items} if items else {}


def _bounds(rng: random.Random) -> Json:
    """Some of four amounts in the order that Kubernetes asks for; the scenarios' GPUs have no name that it takes."""
    amounts = sorted((rng.choice(_BIG) for _ in range(4)), key=_BIG.index)
    names = ("min", "defaultRequest", "default", "max")
    return {name: {"cpu": amount} for name, amount in zip(names, amounts, strict=True) if rng.random() < 0.4}


def pod(rng: random.Random, resources: list[str]) -> Json:
    """The `spec` of a pod whose containers name some of their requests and limits only."""
    result: Json = {"containers": [_container(rng, resources, f"c{number}") for number in range(rng.choice([1, 1, 2]))]}
    if rng.random() < 0.25:
        result["initContainers"] = [_container(rng, resources, "i0")]
    if rng.random() < 0.3:
        result["runtimeClassName"] = RUNTIME
    return result


def _container(rng: random.Random, resources: list[str], name: str) -> Json:
    result: Json = {}
    for resource in resources:
        for kind in ("requests", "limits"):
            if rng.random() < 0.45:
                result.setdefault(kind, {})[resource] = rng.choice(_BIG if resource == "cpu" else ("1", "2"))
    return {"name": name, "resources": result}
