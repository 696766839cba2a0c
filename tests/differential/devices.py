"""What a cluster has for pods that ask for devices, and what claims ask of them; for the setting `devices`.

Every scenario of a control plane has the same DeviceClasses and ResourceSlices: Kueue counts devices by class, and
knows nobody who has one.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_A, _B = "a.example.com", "b.example.com"
EXTENDED: Final = {name: f"example.com/{name}" for name in ("dev-a", "dev-b", "dev-y")}
"""The extended resource for which each class stands; that of `dev-y`, which is not mapped, counts under this name."""
CLASSES: Final[list[Json]] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {
            "extendedResourceName": resource,
            "selectors": [{"cel": {"expression": f'device.driver == "{_B if name == "dev-b" else _A}"'}}],
        },
    }
    for name, resource in EXTENDED.items()
]
_DEVICES: Final[dict[str, list[Json]]] = {
    _A: [
        {
            "attributes": {"model": {"string": "Fast-1"}, "release": {"version": "1.2.0"}, "cores": {"int": 16}},
            "capacity": {"memory": {"value": "80Gi"}},
        },
        {
            "attributes": {"model": {"string": "Fast-2"}, "release": {"version": "1.10.0-rc.1"}, "cores": {"int": 8}},
            "capacity": {"memory": {"value": "40Gi"}},
        },
        {
            "attributes": {"model": {"string": "slow"}, "release": {"version": "1.10.0"}, "cores": {"int": -7}},
            "capacity": {"memory": {"value": "40960Mi"}},
        },
    ],
    _B: [
        {"attributes": {"shared": {"bool": True}, f"{_A}/link": {"string": "x"}}},
        {"attributes": {"cores": {"int": 8}}},
    ],
}
SLICES: Final[list[Json]] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": driver},
        "spec": {
            "driver": driver,
            "allNodes": True,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}", **device} for number, device in enumerate(devices)],
        },
    }
    for driver, devices in _DEVICES.items()
]

OBJECTS: Final = {"deviceclasses": CLASSES, "resourceslices": SLICES}
"""By the name of their kind in paths of the API."""

_EXPRESSIONS: Final = (
    ("dev-a", 1, 'device.attributes["a.example.com"].model == "slow"'),
    ("dev-a", 2, 'device.attributes["a.example.com"].model.startsWith("Fast")'),
    ("dev-a", 3, 'device.attributes["a.example.com"].model.startsWith("Fast")'),
    ("dev-a", 1, 'device.attributes["a.example.com"].model.lowerAscii().matches("^f.*1$")'),
    ("dev-a", 2, 'device.attributes["a.example.com"].model.matches("a[rs]t")'),
    ("dev-a", 2, 'device.attributes["a.example.com"].model.contains("low") || device.attributes["a.example.com"].no'),
    ("dev-a", 3, 'device.capacity["a.example.com"].memory.compareTo(quantity("40Gi")) >= 0'),
    ("dev-a", 2, 'device.capacity["a.example.com"].memory.isGreaterThan(quantity("40Gi"))'),
    ("dev-a", 2, 'device.capacity["a.example.com"].memory == quantity("40Gi")'),
    ("dev-a", 2, 'device.attributes["a.example.com"].release.isLessThan(semver("1.10.0"))'),
    ("dev-a", 1, 'device.attributes["a.example.com"].release.compareTo(semver("1.10.0-rc.2")) > 0'),
    ("dev-a", 2, 'device.attributes["a.example.com"].release.minor() == 10'),
    ("dev-a", 1, 'device.attributes["a.example.com"].cores / 2 == -3'),
    ("dev-a", 1, 'device.attributes["a.example.com"].cores % 4 == -3'),
    ("dev-a", 2, 'device.attributes["a.example.com"].cores + 2 * 4 > 10 + 3'),
    ("dev-a", 1, '-device.attributes["a.example.com"].cores >= 7'),
    ("dev-a", 2, 'device.attributes["a.example.com"].cores in [16, -7, 99]'),
    ("dev-a", 1, 'device.attributes["a.example.com"].model < "Fast-2"'),
    ("dev-a", 1, 'size(device.attributes["a.example.com"].model) == 4'),
    ("dev-a", 1, 'device.attributes["a.example.com"].model == 4'),
    ("dev-a", 1, 'device.attributes["a.example.com"].model > 4'),
    ("dev-a", 1, 'cel.bind(a, device.attributes["a.example.com"], a.model == "slow" && a.cores < 0)'),
    ("dev-a", 3, 'device.attributes["other.example.com"].model == "x"'),
    ("dev-a", 3, '!("x" in device.attributes["c.example.com"]) && !("memory" in device.attributes["a.example.com"])'),
    ("dev-a", 3, '("a" + "b" == \'ab\') && true != false && !(1 > 2)'),
    ("dev-b", 1, 'device.attributes["b.example.com"].shared'),
    ("dev-b", 2, 'device.attributes["b.example.com"].shared'),
    ("dev-b", 2, 'has(device.attributes["b.example.com"].shared) ? true : device.attributes["b.example.com"].cores>7'),
    ("dev-b", 1, 'device.attributes["b.example.com"].cores == 8 || device.attributes["a.example.com"].link == "x"'),
    ("dev-b", 1, '"cores" in device.attributes["b.example.com"] && device.driver.endsWith("example.com")'),
    ("dev-b", 1, '!device.attributes["b.example.com"].cores'),
    ("dev-z", 1, "true"),
)  # fmt: skip
TEMPLATES: Final[Json] = {
    "one": {"dev-a": 1},
    "two": {"dev-a": 2},
    "both": {"dev-a": 1, "dev-b": 2},
    "other": {"dev-z": 1},
    **{f"cel-{number}": {name: [count, text]} for number, (name, count, text) in enumerate(_EXPRESSIONS)},
}
"""ResourceClaimTemplates in the notation of `decide.expand`."""
