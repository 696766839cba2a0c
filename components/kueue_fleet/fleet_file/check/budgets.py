"""Budgets that hold jobs back: who does it, what is counted, and what is left to jobs.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go (IsFlavorAllowedForVariant: the feature gate).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.names import ACCELERATOR_RESOURCES
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.fallback import without_gate
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.per_cluster import interruptible_flavors, local_queues
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.rules.teams import BUDGET, BUDGET_COUNT
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.settings.budgets import TeamBudget


@entry_check("teams")
def _enforced(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    fleet, budget, path = scope.fleet, team.budget, f"{scope.path(team)}.budget"
    names = {
        spec.cluster_queue for namespace, _, spec in local_queues(fleet) if fleet.team_of.get(namespace) == team.name
    }
    if budget is not None:
        yield from _without_price(scope, budget, f"{path}.usd", names)
    if budget is None or budget.enforce is None:
        return
    if fleet.controller is None:
        wrong = "set, but only the fleet's controller holds jobs back"
        yield BUDGET.at(f"{path}.enforce", wrong, "add the section controller, or remove it")
    queues = [queue for queue in fleet.cluster_queues if queue.name in names]
    for queue in queues:
        away = [name for name in fleet.clusters_of(queue) if name != fleet.controller_cluster]
        if fleet.controller_cluster and away and not fleet.is_dispatched(queue.name):
            wrong = f"set, but the controller is not on {', '.join(away)}, where jobs are submitted to {queue.name}"
            yield BUDGET.at(f"{path}.enforce", wrong, "name the queue in multiKueue.queues, or remove it")
        if budget.enforce == "interruptibleOnly" and not interruptible_flavors(fleet, queue):
            wrong = f"interruptibleOnly, but queue {queue.name} has no flavor of Spot or flexStart nodes alone"
            yield BUDGET_COUNT.at(f"{path}.enforce", f"{wrong}, so its jobs wait", "add one, or write wait")
        if budget.enforce == "interruptibleOnly" and queue.concurrent_admission_policy is not None:
            wrong = "is set, and a budget of interruptibleOnly says which flavors jobs may have"
            yield BUDGET.at(f"{scope.path(queue)}.concurrentAdmissionPolicy", wrong, "remove one of the two")
    for gate in without_gate(scope) if budget.enforce == "interruptibleOnly" else ():
        yield BUDGET.at(gate, f"false, and the budget of team {team.name} needs this feature gate", "remove it")


def _without_price(scope: Scope, budget: TeamBudget, path: str, names: set[str]) -> Iterator[Problem]:
    """Hours that the controller cannot count in USD."""
    from kueue_fleet.fleet_file.cost import Unpriced, accelerator_hour  # Few fleets have such budgets.

    fleet, prices = scope.fleet, list_prices()
    queues = (queue for queue in fleet.cluster_queues if queue.name in names)
    groups = [group for queue in queues for group in queue.resource_groups]
    priced_groups = (group for group in groups if not set(ACCELERATOR_RESOURCES).isdisjoint(group.covered_resources))
    flavors = sorted({flavor.name for group in priced_groups for flavor in group.flavors})
    places = (
        (name, job_cluster)
        for name in flavors
        for job_cluster in fleet.job_clusters
        if name in fleet.flavors_on(job_cluster)
    )
    costs = ((name, accelerator_hour(fleet, place, name, prices)) for name, place in places)
    unpriced_names = dict.fromkeys(name for name, cost in costs if isinstance(cost, Unpriced))
    if budget.usd is not None and unpriced_names:
        then = "hold no job back" if budget.enforce else "do not count"
        wrong = f"hours of {', '.join(unpriced_names)} have no price, so they {then}"
        yield BUDGET_COUNT.at(path, wrong, "set gpuHours too")
