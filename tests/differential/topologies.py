"""Random topologies, nodes in them, and what workloads ask of them; for the setting `topology`."""

from __future__ import annotations

import random
from typing import Any, Final

Json = dict[str, Any]

BLOCK, RACK, HOST = "cloud.example.com/block", "cloud.example.com/rack", "kubernetes.io/hostname"
TOPOLOGY: Final = "t"
BROKEN: Final = {"key": "broken", "effect": "NoSchedule"}
"""The taint of a node that is given up."""
_LEVELS: Final = ([HOST], [RACK, HOST], [RACK, HOST], [BLOCK, RACK, HOST], [BLOCK, RACK], [RACK])


def topology(rng: random.Random, *, hosts: bool = False) -> list[str]:
    """The levels of a topology, the widest first; with `hosts`, down to single nodes."""
    return list(rng.choice([levels for levels in _LEVELS if levels[-1] == HOST] if hosts else _LEVELS))


def nodes(rng: random.Random, flavors: list[str], *, many: bool = False) -> Json:
    """Some nodes, each of one flavor (label `kind`); now and then one is tainted, cordoned or not ready."""
    result: Json = {}
    for number in range(rng.randint(6, 14) if many else rng.randint(2, 7)):
        name = f"n{number}"
        block = rng.randint(1, 2)
        labels = {BLOCK: f"b{block}", RACK: f"b{block}r{rng.randint(1, 2)}", HOST: name, "kind": rng.choice(flavors)}
        node: Json = {"labels": labels, "allocatable": {"cpu": str(rng.choice([1, 2, 3, 4, 8])), "pods": "20"}}
        if rng.random() < 0.08:
            node["taints"] = [{"key": "t", "value": "v", "effect": "NoSchedule"}]
        elif rng.random() < 0.05:
            node["unschedulable"] = True
        elif rng.random() < 0.05:
            node["ready"] = False
        result[name] = node
    return result


def preferred(rng: random.Random) -> Json:
    """Nodes that a pod prefers."""
    key, value = rng.choice([("disk", "ssd"), ("disk", "hdd"), (RACK, "b1r1"), (RACK, "b2r2"), (BLOCK, "b2")])
    term = {"matchExpressions": [{"key": key, "operator": rng.choice(["In", "In", "NotIn"]), "values": [value]}]}
    return {"weight": rng.choice([1, 10, 90]), "preference": term}


def request(rng: random.Random, levels: list[str], count: int) -> Json | None:
    """What a pod set asks of the topology; None for nothing."""
    kind = rng.choice(["required", "required", "preferred", "preferred", "unconstrained", "slices", None])
    level = rng.choice(levels)
    if kind is None:
        return None
    if kind == "unconstrained":
        return {"unconstrained": True}
    if kind != "slices":
        return {kind: level}
    sizes = [size for size in (1, 2, 3) if count % size == 0]
    inner = rng.choice(levels[levels.index(level) :])
    asked = {rng.choice(["required", "preferred"]): level}
    return {**asked, "podSetSliceRequiredTopology": inner, "podSetSliceSize": rng.choice(sizes)}
