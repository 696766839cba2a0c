"""A fleet in the network of another stack's fleet, and what that stack knows of it."""

import pulumi

import kueue_fleet as kf

spec = kf.spec_from_config()
regions = {cluster.region for cluster in spec.clusters}

# Outputs of the other stack: `network` and `subnetworks`, by region. Its subnets share their range for pods.
other = pulumi.StackReference(pulumi.Config().require("networkStack"))
subnetworks = other.require_output("subnetworks")
network = kf.NetworkIds(
    other.require_output("network"),
    {region: subnetworks.apply(lambda links, region=region: links[region]) for region in regions},
    pod_range_names=dict.fromkeys(regions, "pods"),
)

fleet = kf.Fleet(spec.name, spec, network=network)
pulumi.export("queues", fleet.queues)
pulumi.export("kubeconfig", fleet.kubeconfig)
