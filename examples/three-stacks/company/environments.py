"""What each environment has, and the fleet that follows from it."""

from dataclasses import dataclass
from typing import Final

import kueue_fleet as kf


@dataclass(frozen=True)
class Environment:
    """What differs between the stacks."""

    regions: tuple[str, ...]
    """Where its GPUs are; in more than one region, a manager dispatches to a worker in each."""
    gpus: int
    """Quota of L4 GPUs in each region."""
    teams: tuple[str, ...]
    """Who submits jobs."""
    protected: bool = False
    """Whether Pulumi refuses to delete its clusters."""


ENVIRONMENTS: Final = {
    "dev": Environment(("us-central1",), gpus=4, teams=("speech",)),
    "staging": Environment(("us-central1", "europe-west4"), gpus=8, teams=("speech",)),
    "prod": Environment(("us-central1", "europe-west4"), gpus=64, teams=("speech", "search"), protected=True),
}
"""The environments, by the name of their stack."""


def fleet_of(stack: str, project: str) -> kf.FleetSpec:
    """The fleet of a stack, in its project."""
    environment = ENVIRONMENTS[stack]
    gpus = environment.gpus
    quota = kf.Quota(gpu=gpus, cpu=12 * gpus, memory=f"{48 * gpus}Gi", ephemeral_storage=f"{100 * gpus}Gi")
    queues = [kf.TeamQueue("gpus", cluster_queue="shared")]
    first, *others = environment.regions
    clusters: list[kf.ClusterEntry] = [kf.Standalone(f"gpus-{first}", first)]
    multi_kueue = None
    if others:
        workers = {f"gpus-{region}": region for region in environment.regions}
        clusters = [kf.Manager("manager", first), *(kf.Worker(name, region) for name, region in workers.items())]
        token = kf.ServiceAccountToken("2026-11", rotate_by="2027-02-01")
        multi_kueue = kf.MultiKueueArgs(token, workers=[*workers])
    return kf.FleetSpec(
        f"company-{stack}",
        project,
        deletion_protection=environment.protected,
        clusters=clusters,
        flavors=[kf.Flavor("l4", gpu="nvidia-l4")],
        cluster_queues=[kf.Queue("shared", {"l4": quota})],
        multi_kueue=multi_kueue,
        teams=[kf.TeamEntry(team, local_queues=queues) for team in environment.teams],
    )
