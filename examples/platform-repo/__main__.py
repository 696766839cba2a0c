"""The company's fleet, and a space in it for each team."""

import pulumi
from company.team_space import TeamSpace, TeamSpaceSpec

import kueue_fleet as kf

config = pulumi.Config()
fleet = kf.Fleet.from_config()

(cluster,) = fleet.clusters.values()
queues = fleet.contents[cluster.cluster_name].cluster_queues
for entry in config.require_object("spaces"):
    space = TeamSpaceSpec.model_validate(entry)
    # Whatever goes into the cluster goes with it; the queues are made before, and deleted after, their entrances.
    in_cluster = pulumi.ResourceOptions(provider=cluster.provider, deleted_with=cluster.cluster)
    TeamSpace(space.name, space, cluster_queues=queues, opts=in_cluster)

pulumi.export("kubeconfig", fleet.kubeconfig)
