"""The data of teams as a component; what it declares is in `google.storage`."""

from collections.abc import Mapping
from typing import Any

import pulumi

from kueue_fleet.component import Component
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.storage import Filestore, Lustre
from kueue_fleet.fleet_file.model.storage_places import storage_places
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.google.parts import team_storage


class TeamStorage(Component):
    """Buckets, file servers and disks of teams, and who may use the buckets."""

    resources: "dict[str, Any]"
    """What is made, by kind and Pulumi name: `Bucket/lab/storage/datasets/europe-west4`."""
    addresses: dict[str, pulumi.Output[str]]
    """Addresses of the file servers that are made, by what the objects in clusters have in their stead."""

    def __init__(
        self,
        name: str,
        spec: FleetSpec,
        *,
        project: pulumi.Input[str],
        network: pulumi.Input[str],
        accounts: "Mapping[str, pulumi.Input[str]] | None" = None,
        peering: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare what the fleet's `storage` asks for.

        `network` is the clusters' network, `projects/P/global/networks/N`; `accounts` has the address of each team's
        Google account, which buckets let in. With `peering` the network is connected with Google's services where
        Managed Lustre needs that; without, somebody did so.
        """
        super().__init__(name, opts)
        rendered_resources = team_storage(
            name, spec=spec, project=project, accounts=accounts or {}, network=network, peering=peering
        )
        self.resources = declare(self, rendered_resources)
        self.addresses = {}
        for place in (place for entry in spec.storage for place in storage_places(spec, entry)):
            at = f"{name}/{place.entry.name}/{place.location}"
            if place.made and isinstance(place.entry.volume, Lustre):
                point = self.resources[f"Instance/{at}"].mount_point
                self.addresses[place.address] = point.apply(lambda text: str(text).partition("@")[0])
            elif place.made and isinstance(place.entry.volume, Filestore):
                networks = self.resources[f"Instance/{at}"].networks
                self.addresses[place.address] = networks.apply(lambda found: str(found[0].ip_addresses[0]))
        self._give_out()
