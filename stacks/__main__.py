"""The Pulumi program: the fleet that the stack's config `kueue-fleet:fleet` describes, with outputs for other programs.

A fleet that breaks a rule ends the program with the list of its problems.
"""

import gc
import json
from typing import Final

import pulumi

from kueue_admission.forms import SpecError
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.objects.dashboards import grafana_dashboard

_NEW_OBJECTS: Final = 50_000
"""After so many new objects Python looks for garbage. Of what a program declares nearly nothing is; with Python's own
number, 700, a fifth of the CPU of a large fleet goes into looking."""


def read_fleet(config: pulumi.Config) -> FleetSpec:
    """The checked fleet of the stack's config. Raises pulumi.RunError with every problem."""
    try:
        return parse_fleet(config.require_object("fleet"), as_published=bool(config.get_bool("asPublished")))
    except SpecError as error:
        problems = "\n".join(f"  {problem}" for problem in error.problems)
        raise pulumi.RunError(f"the fleet in {config.full_key('fleet')} cannot be used:\n{problems}") from None


def main() -> None:
    """Declare the fleet and export its outputs."""
    gc.set_threshold(_NEW_OBJECTS)
    config = pulumi.Config("kueue-fleet")
    spec = read_fleet(config)
    fleet = Fleet(
        spec.name,
        spec,
        team_secrets=config.get_secret_object("teamSecrets"),
        as_published=bool(config.get_bool("asPublished")),  # `kueue-fleet rehearse --as-published` sets it
    )
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
        controller = spec.admission_controller is not None
        board = grafana_dashboard(f"{spec.name}: GPU batch fleet", spec.name, controller=controller)
        pulumi.export("grafanaDashboard", json.dumps(board))


main()
