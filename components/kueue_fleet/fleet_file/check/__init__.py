"""Rules between the entries of a fleet: what Kueue would say only at run time, and what it never says.

One module per part of the file; `scope` is what they share. Rules about one entry alone are in the entry's model
(`fleet_file.model`, `kueue_admission.api`) and are run from here, so that the parser gets all of them in one list.

Each function that is decorated with `where_read` speaks only where all that it asks for was read, so that the
rules hold for a whole fleet and for what could be read of a file alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kueue_admission.forms.base import SpecModel, problems_in
from kueue_admission.forms.problem import Problem, as_far_as_read, as_one
from kueue_fleet.fleet_file.check.accelerator_networks import check_accelerator_networks
from kueue_fleet.fleet_file.check.budgets import check_budgets
from kueue_fleet.fleet_file.check.clusters import check_clusters
from kueue_fleet.fleet_file.check.cohorts import check_cohorts
from kueue_fleet.fleet_file.check.compute_classes import check_compute_classes
from kueue_fleet.fleet_file.check.dispatch import check_dispatch
from kueue_fleet.fleet_file.check.dynamic_slices import check_dynamic_slices
from kueue_fleet.fleet_file.check.fallback import check_fallback
from kueue_fleet.fleet_file.check.fitting_quotas import check_fitting_quotas
from kueue_fleet.fleet_file.check.flavor_pools import check_flavor_pools
from kueue_fleet.fleet_file.check.flavors import check_admission_checks, check_flavors
from kueue_fleet.fleet_file.check.fleet_page import check_fleet_page
from kueue_fleet.fleet_file.check.followed_quota import check_followed_quota
from kueue_fleet.fleet_file.check.goals import check_goals
from kueue_fleet.fleet_file.check.google_cloud import check_google_cloud
from kueue_fleet.fleet_file.check.idle_machines import check_idle_machines
from kueue_fleet.fleet_file.check.job_templates import check_job_templates
from kueue_fleet.fleet_file.check.names import check_names
from kueue_fleet.fleet_file.check.networks import check_network
from kueue_fleet.fleet_file.check.node_pools import check_pools
from kueue_fleet.fleet_file.check.plain_clusters import check_plain_clusters
from kueue_fleet.fleet_file.check.planning import check_planning
from kueue_fleet.fleet_file.check.pool_quotas import check_pool_quotas
from kueue_fleet.fleet_file.check.priorities import check_priorities
from kueue_fleet.fleet_file.check.queued_pools import check_queued_pools, check_waiting_copies
from kueue_fleet.fleet_file.check.queues import check_queues
from kueue_fleet.fleet_file.check.quota_amounts import check_manager_quotas
from kueue_fleet.fleet_file.check.quota_windows import check_quota_windows
from kueue_fleet.fleet_file.check.releases import check_releases
from kueue_fleet.fleet_file.check.reservations import check_reservations
from kueue_fleet.fleet_file.check.scope import SECTIONS, Scope
from kueue_fleet.fleet_file.check.settings import check_settings
from kueue_fleet.fleet_file.check.storage import check_storage
from kueue_fleet.fleet_file.check.team_bounds import check_team_bounds
from kueue_fleet.fleet_file.check.teams import check_accounts, check_teams
from kueue_fleet.fleet_file.model.fleet import FleetSpec

_RULES = (
    check_names,
    check_google_cloud,
    check_clusters,
    check_plain_clusters,
    check_network,
    check_pools,
    check_accelerator_networks,
    check_dynamic_slices,
    check_reservations,
    check_flavors,
    check_flavor_pools,
    check_compute_classes,
    check_pool_quotas,
    check_idle_machines,
    check_queued_pools,
    check_admission_checks,
    check_cohorts,
    check_queues,
    check_waiting_copies,
    check_fitting_quotas,
    check_fallback,
    check_followed_quota,
    check_quota_windows,
    check_manager_quotas,
    check_priorities,
    check_teams,
    check_team_bounds,
    check_accounts,
    check_job_templates,
    check_budgets,
    check_storage,
    check_goals,
    check_releases,
    check_settings,
    check_dispatch,
    check_fleet_page,
    check_planning,
)


def check_fleet(fleet: FleetSpec) -> list[Problem]:
    """Every problem of `fleet`, errors and warnings, in the order of the file."""
    return check_scope(Scope(fleet))


def check_scope(scope: Scope) -> list[Problem]:
    """Every problem of what the scope has of a fleet, in the order of the file."""
    all_problems = [*_entry_problems(scope), *(problem for check in _RULES for problem in as_far_as_read(check(scope)))]
    return scope.in_file_order(as_one(all_problems))


class FirstProblem:
    """Finds a problem at less effort than all of them, in fleets that are much alike: what found the last one comes
    first."""

    def __init__(self) -> None:
        self._order: list[Callable[[Scope], Iterator[Problem]]] = [_entry_problems, *_RULES]

    def of(self, scope: Scope, is_known: Callable[[Problem], bool]) -> Problem | None:
        """A problem that is not known already; None: there is none."""
        for index, check in enumerate(self._order):
            for problem in as_far_as_read(check(scope)):
                if not is_known(problem):
                    self._order.insert(0, self._order.pop(index))
                    return problem
        return None


def _entry_problems(scope: Scope) -> Iterator[Problem]:
    """What the entries and sections say about themselves."""
    for section in SECTIONS:
        for entry in scope.entries(section):
            yield from problems_in(entry, scope.path(entry))
    for name, field in FleetSpec.model_fields.items():
        part = scope.fleet.__dict__.get(name)
        if isinstance(part, SpecModel):
            yield from problems_in(part, field.alias or name)
