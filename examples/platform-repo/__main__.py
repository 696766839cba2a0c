"""The company's fleet, and a space in it for each team."""

import pulumi
from company.team_space import TeamSpace, TeamSpaceSpec

from kueue_admission.forms import SpecError
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import parse_fleet

config = pulumi.Config()
try:
    spec = parse_fleet(pulumi.Config("kueue-fleet").require_object("fleet"))
except SpecError as error:
    raise pulumi.RunError(str(error)) from None
fleet = Fleet(spec.name, spec)

(cluster,) = fleet.clusters.values()
queues = fleet.contents[cluster.cluster_name].cluster_queues
for entry in config.require_object("spaces"):
    space = TeamSpaceSpec.model_validate(entry)
    # Whatever goes into the cluster goes with it; the queues are made before, and deleted after, their entrances.
    in_cluster = pulumi.ResourceOptions(provider=cluster.provider, deleted_with=cluster.cluster)
    TeamSpace(space.name, space, cluster_queues=queues, opts=in_cluster)

pulumi.export("kubeconfig", fleet.kubeconfig)
