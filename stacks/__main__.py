"""The Pulumi program: the fleet that the stack's config `kueue-fleet:fleet` describes, with outputs for other programs.

A fleet that breaks a rule ends the program with the list of its problems.
"""

import gc
import json
from typing import Final

import pulumi

import kueue_fleet as kf

_NEW_OBJECTS: Final = 50_000
"""After so many new objects Python looks for garbage. Of what a program declares nearly nothing is; with Python's own
number, 700, a fifth of the CPU of a large fleet goes into looking."""


def main() -> None:
    """Declare the fleet and export its outputs."""
    gc.set_threshold(_NEW_OBJECTS)
    fleet = kf.Fleet.from_config()
    spec = fleet.spec
    pulumi.export("fleet", spec.name)
    pulumi.export("manager", spec.manager.name if spec.manager else None)
    pulumi.export(
        "clusters",
        {
            name: {"identifier": cluster.identifier, "role": cluster.role, "endpoint": cluster.endpoint}
            for name, cluster in fleet.clusters.items()
        },
    )
    pulumi.export("kubeconfig", fleet.kubeconfig)
    # For other stacks: pulumi.StackReference(...).require_output("queues")
    if fleet.network_link is not None:
        pulumi.export("network", fleet.network_link)
        pulumi.export("subnetworks", fleet.subnetwork_links)
    pulumi.export("nodeServiceAccounts", fleet.node_service_accounts)
    pulumi.export("teamServiceAccounts", fleet.team_service_accounts)
    pulumi.export("queues", fleet.queues)
    if fleet.dashboard_url is not None:
        pulumi.export("dashboardUrl", fleet.dashboard_url)
    if spec.observability.dashboard:
        # For a Grafana of one's own: pulumi stack output grafanaDashboard > dashboard.json
        controller = spec.controller is not None
        board = kf.grafana_dashboard(f"{spec.name}: GPU batch fleet", spec.name, controller=controller)
        pulumi.export("grafanaDashboard", json.dumps(board))


main()
