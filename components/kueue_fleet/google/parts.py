"""The parts of a fleet in Google Cloud beside its clusters, one row each, for commands and Pulumi alike.

What a fleet's network, clusters and reserved capacity are is in `google.resources`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.cost import CostLine
from kueue_fleet.fleet_file.model.storage_places import storage_places
from kueue_fleet.fleet_file.projects import other_projects
from kueue_fleet.fleet_file.worker_tokens import manager_accounts
from kueue_fleet.gke.prices import Prices
from kueue_fleet.google.identities import grafana_identity, manager_identity, member_access
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.storage import storage, storage_costs


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What parts refer to: keys and references of what is rendered, resources and outputs in a Pulumi program."""

    accounts: Mapping[str, Any]
    """Address of each team's Google account, by team."""
    network: Any
    """The clusters' network, `projects/P/global/networks/N`; empty: there is none."""
    own_network: bool
    """Whether the fleet makes that network."""
    pool_makers: Sequence[Any]
    """A cluster of each project, with which its Workload Identity pool is there; the fleet's own is the first."""


@dataclass(frozen=True, slots=True)
class CloudPart:
    """Resources in Google Cloud that are declared together."""

    name: str
    """What Pulumi calls it, below the fleet's name; of a section of the fleet file the section's name."""
    arguments: Callable[[FleetSpec, Surroundings], Mapping[str, Any]]
    """What `resources`, and the component if there is one, take beside name and project; empty: the fleet has none."""
    resources: Callable[..., Iterable[CloudResource]]
    """Its resources."""
    costs: Callable[[FleetSpec, Prices], Iterable[CostLine]] = lambda fleet, prices: ()
    """What they cost, as far as that follows from the file."""

    def on(self, fleet: FleetSpec, project: Any, surroundings: Surroundings) -> Iterator[CloudResource]:
        """The resources of a fleet."""
        if arguments := self.arguments(fleet, surroundings):
            yield from self.resources(f"{fleet.name}/{self.name}", project=project, **arguments)

    def data(self, fleet: FleetSpec) -> dict[str, tuple[str, str]]:
        """What holds data, and is protected for it: by key, the path of its entry in the file, and what it is."""
        protected_resources = (
            resource for resource in self.on(fleet, fleet.project, NO_SURROUNDINGS) if resource.protect is not None
        )
        data_by_key = {}
        for resource in protected_resources:
            entry, *_, place = resource.name.removeprefix(f"{fleet.name}/{self.name}/").split("/")
            kind = resource.key.partition("/")[0].lower()
            data_by_key[resource.key] = f"{self.name}[{entry}]", f"{kind} {entry} in {place}"
        return data_by_key


NO_SURROUNDINGS: Final = Surroundings({}, "", own_network=False, pool_makers=())
"""Where only the parts themselves are asked for."""


def labels_of(fleet: FleetSpec) -> dict[str, str]:
    """The labels of everything that takes some."""
    return {PRODUCT: fleet.name, **fleet.labels}


def _storage_arguments(fleet: FleetSpec, surroundings: Surroundings) -> dict[str, Any]:
    if not fleet.storage:
        return {}
    return {
        "spec": fleet,
        "accounts": surroundings.accounts,
        "network": surroundings.network,
        "peering": surroundings.own_network,
    }


def team_storage(
    name: str, *, project: Any, spec: FleetSpec, accounts: Mapping[str, Any], network: Any, peering: bool
) -> list[CloudResource]:
    """The data of teams; the arguments are those of `TeamStorage`."""
    return storage(
        name,
        project=project,
        fleet=spec.name,
        places=[place for entry in spec.storage for place in storage_places(spec, entry)],
        accounts=accounts,
        network=network,
        shared_vpc=spec.network_project != spec.project,
        peering=peering,
        labels=labels_of(spec),
        deletion_protection=spec.deletion_protection,
    )


def _member_arguments(fleet: FleetSpec, surroundings: Surroundings) -> dict[str, Any]:
    members = list(dict.fromkeys(member for team in fleet.teams for member in team.members))
    return {"fleet": fleet.name, "members": members, "elsewhere": other_projects(fleet)} if members else {}


def _manager_arguments(fleet: FleetSpec, surroundings: Surroundings) -> dict[str, Any]:
    accounts = manager_accounts(fleet)
    if not accounts:
        return {}
    after = surroundings.pool_makers
    return {"fleet": fleet.name, "accounts": accounts, "after": after, "elsewhere": other_projects(fleet)}


def grafana_arguments(fleet: FleetSpec, surroundings: Surroundings) -> dict[str, Any]:
    """The arguments of the identity of the fleet's Grafana; none where it installs none."""
    if not fleet.observability.installs_grafana:
        return {}
    namespace = fleet.observability.grafana.namespace
    return {"fleet": fleet.name, "namespace": namespace, "after": surroundings.pool_makers[:1]}


CLOUD_PARTS: Final = (
    CloudPart("storage", _storage_arguments, team_storage, storage_costs),
    CloudPart("members", _member_arguments, member_access),
    CloudPart("manager", _manager_arguments, manager_identity),
    CloudPart("grafana", grafana_arguments, grafana_identity),
)
"""All parts, in the order in which they are made."""


def data_on(fleet: FleetSpec) -> dict[str, tuple[str, str]]:
    """What holds data of all parts: by key, the path of its entry in the file, and what it is."""
    return {key: what for part in CLOUD_PARTS for key, what in part.data(fleet).items()}
