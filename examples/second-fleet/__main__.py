"""A fleet in the network of another stack's fleet, and what that stack knows of it."""

import pulumi

from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.gcp import NetworkIds

spec = parse_fleet(pulumi.Config("kueue-fleet").require_object("fleet"))
regions = {cluster.region for cluster in spec.clusters}

# Outputs of the other stack: `network` and `subnetworks`, by region. Its subnets share their range for pods.
other = pulumi.StackReference(pulumi.Config().require("networkStack"))
subnetworks = other.require_output("subnetworks")
network = NetworkIds(
    other.require_output("network"),
    {region: subnetworks.apply(lambda links, region=region: links[region]) for region in regions},
    pod_range_names=dict.fromkeys(regions, "pods"),
)

fleet = Fleet(spec.name, spec, network=network)
pulumi.export("queues", fleet.queues)
pulumi.export("kubeconfig", fleet.kubeconfig)
