"""The data of a fleet file without defaults, and without quotas and flavors of the manager that the fleet derives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kueue_admission.api.manifests import cluster_queue_manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.problem import SpecError
from kueue_fleet.adopt.live_objects import Data
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import queue_on
from kueue_fleet.fleet_file.model.team_priorities import allowed_priority_classes
from kueue_fleet.fleet_file.parse import parse_fleet

# An empty selector is every namespace, without one, no namespace is selected; a part of Kueue's Configuration may turn
# something on by being there.
_MEANT_EMPTY: Final = ("namespaceSelector", "configuration")
_THERE: Final = ("namespaceSelector", "fleetPage")
"""What says something by being there, with nothing in it."""


def drop_defaults(data: Data) -> Data:
    """The same fleet in fewer words. What does not parse is returned as it is: `check` says why."""
    data = _without_derived_quotas(data)
    try:
        data = _without_derived_flavors(data, parse_fleet(data))
        data = _without_default_classes(data, parse_fleet(data))
        fleet = parse_fleet(data)
    except SpecError:
        return data
    short: Data = _without_empty(fleet.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))
    ordered_data = {key: short[key] for key in data if key in short}
    return ordered_data if _parses_to(ordered_data, fleet) else data


def _without_default_classes(data: Data, fleet: FleetSpec) -> Data:
    """Teams name no priority classes where they are those that a team may use by default."""
    teams = []
    for entry, team in zip(data.get("teams", ()), fleet.teams, strict=True):
        default = allowed_priority_classes(fleet, team.model_copy(update={"allowed_priority_classes": None}))
        same = set(entry.get("allowedPriorityClasses", ())) == set(default)
        teams.append({name: value for name, value in entry.items() if name != "allowedPriorityClasses" or not same})
    return {**data, "teams": teams} if teams else data


def _without_derived_flavors(data: Data, fleet: FleetSpec) -> Data:
    """Flavors that the fleet derives for its manager need no entries, unless something else names them."""
    section = fleet.controller
    priced_flavors = (
        {flavor for prices in section.prices.values() for flavor in prices} if section is not None else set()
    )
    names = set(fleet.manager_flavor_names) - priced_flavors
    flavors = [{"name": name, "clusters": [fleet.manager_name]} for name in names]
    return (
        {**data, "flavors": [flavor for flavor in data["flavors"] if flavor not in flavors]}
        if "flavors" in data
        else data
    )


def _parses_to(data: Data, fleet: FleetSpec) -> bool:
    try:
        return parse_fleet(data) == fleet
    except SpecError:
        return False


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        named_first = sorted(value.items(), key=lambda item: item[0] != "name")
        fields = {key: item if key in _MEANT_EMPTY else _without_empty(item) for key, item in named_first}
        return {key: item for key, item in fields.items() if key in _THERE or item not in ({}, [])}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _without_derived_quotas(data: Data) -> Data:
    """`manager` is only for queues whose quotas there are not the sum of the workers'."""
    queues = data.get("clusterQueues", [])
    if not any("manager" in queue for queue in queues):
        return data
    derived_data = {**data, "clusterQueues": [{k: v for k, v in queue.items() if k != "manager"} for queue in queues]}
    try:
        with_sums, by_hand = parse_fleet(derived_data), parse_fleet(data)
    except SpecError:
        return data
    return {
        **data,
        "clusterQueues": [
            short
            if "manager" in queue and _on_manager(with_sums, queue["name"]) == _on_manager(by_hand, queue["name"])
            else queue
            for queue, short in zip(queues, derived_data["clusterQueues"], strict=True)
        ],
    }


def _on_manager(fleet: FleetSpec, name: str) -> Manifest | None:
    queue = fleet.queue(name)
    if queue is None or fleet.manager is None:
        return None
    return cluster_queue_manifest(name, queue_on(fleet, queue, fleet.manager.name))
