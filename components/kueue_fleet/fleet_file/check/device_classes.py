"""The rules of Kueue's device class mappings, for Dynamic Resource Allocation.

Not checked: that a CEL expression compiles.

Source: kueue@v0.19.2 pkg/config/validation.go (validateDeviceClassMappings and below).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kueue_fleet.kueue_api import syntax
from kueue_fleet.kueue_api.configuration import DeviceClassMapping, DeviceClassSource, KueueConfiguration
from kueue_fleet.kueue_api.feature_gates import is_on
from kueue_fleet.kueue_api.problem import Problem, item_label, syntax_problems

_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def device_class_problems(
    configuration: KueueConfiguration, mappings: Sequence[DeviceClassMapping]
) -> Iterator[Problem]:
    """Problems of the mappings, with paths in the Configuration."""
    base = "resources.deviceClassMappings"
    if len(mappings) > 16:
        yield Problem(base, f"{len(mappings)} mappings, at most 16 are allowed", "use fewer")
    names: set[str] = set()
    counters: dict[str, dict[str, str]] = {}
    for index, mapping in enumerate(mappings):
        at = f"{base}[{item_label(mapping.name, index)}]"
        yield from _device_name(f"{at}.name", mapping.name)
        if mapping.name in names:
            yield Problem(f"{at}.name", f"{mapping.name} is mapped twice", "write one entry for each name")
        names.add(mapping.name)
        if not 1 <= len(mapping.device_class_names) <= 8:
            yield Problem(
                f"{at}.deviceClassNames", f"{len(mapping.device_class_names)} names, 1 to 8 are allowed", "list 1 to 8"
            )
        for n, device_class in enumerate(mapping.device_class_names):
            path = f"{at}.deviceClassNames[{n}]"
            yield from _device_name(path, device_class)
            if device_class in mapping.device_class_names[:n]:
                yield Problem(path, f"{device_class} is listed twice", "list each class once")
            else:
                yield from _shared_class(counters.setdefault(device_class, {}), mapping, device_class, path)
        yield from _sources(configuration, mapping.sources or (), f"{at}.sources")


def _shared_class(used: dict[str, str], mapping: DeviceClassMapping, name: str, path: str) -> Iterator[Problem]:
    """A device class is in more than one mapping only where each counts another counter of it."""
    source = mapping.sources[0] if mapping.sources else None
    counter = source.counter.name if source is not None and source.counter is not None else ""
    others = {key: value for key, value in used.items() if value != mapping.name}
    if others and (not counter or "" in others):
        yield Problem(path, f"{name} is already mapped to {next(iter(others.values()))}", "map each class once")
    elif counter in others:
        yield Problem(path, f"counter {counter} of {name} is already counted", "count each counter once")
    else:
        used.setdefault(counter, mapping.name)


def _device_name(path: str, name: str) -> Iterator[Problem]:
    if len(name) > 253:
        yield Problem(path, f'"{name[:40]}..." is {len(name)} characters long', "use at most 253")
    else:
        yield from syntax_problems(path, name, syntax.label_key)


def _sources(configuration: KueueConfiguration, sources: Sequence[DeviceClassSource], at: str) -> Iterator[Problem]:
    for index, source in enumerate(sources):
        path = f"{at}[{index}]"
        if (source.counter is None) == (source.capacity is None):
            both = source.counter is not None
            yield Problem(
                path,
                "both counter and capacity are set" if both else "neither counter nor capacity is set",
                "set exactly one of the two",
            )
            continue
        kind, gate = (
            ("counter", "KueueDRAIntegrationPartitionableDevices")
            if source.counter is not None
            else ("capacity", "KueueDRAIntegrationConsumableCapacity")
        )
        if not is_on(gate, configuration.feature_gates):
            yield Problem(f"{path}.{kind}", f"set, but feature gate {gate} is off", f"set featureGates.{gate} to true")
            continue
        device = source.counter or source.capacity
        if device is None:
            continue
        if kind == "counter":
            yield from syntax_problems(f"{path}.counter.name", device.name, syntax.dns_label)
        else:
            yield from _qualified(f"{path}.capacity.name", device.name)
        if len(device.driver) > 63:
            yield Problem(f"{path}.{kind}.driver", f"{len(device.driver)} characters long", "use at most 63")
        else:
            yield from syntax_problems(f"{path}.{kind}.driver", device.driver, syntax.dns_subdomain)
        if device.device_selector.cel is None or not device.device_selector.cel.expression:
            yield Problem(f"{path}.{kind}.deviceSelector.cel.expression", "is missing", "write a CEL expression")
    if any(source.counter for source in sources) and any(source.capacity for source in sources):
        yield Problem(at, "counters and capacities are mixed in one mapping", "write a mapping for each")


def _qualified(path: str, name: str) -> Iterator[Problem]:
    """validateQualifiedName: an optional domain and a C identifier."""
    domain, slash, identifier = name.rpartition("/")
    good = _C_IDENTIFIER.fullmatch(identifier) and len(identifier) <= 32
    if not good or (slash and (len(domain) > 63 or syntax.dns_subdomain(domain.lower()))):
        yield Problem(
            path,
            f'"{name}" is not a qualified name',
            "write a domain, a slash and a C identifier, as in gpu.example.com/memory",
        )
