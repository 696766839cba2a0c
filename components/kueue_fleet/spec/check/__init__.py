"""Rules between the entries of a fleet: what Kueue would only say at run time, and what nobody would say.

In: a fleet. Out: every problem, errors and warnings, with the path in the file. One module per part of the file;
`scope` is what they share. Rules about one entry alone are in the entry's model (`wire`, `entries`, `clusters`) and
are run from here, so that the parser gets all of them in one list.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.spec.check.accounts import check_accounts
from kueue_fleet.spec.check.capacity import check_manager_quotas
from kueue_fleet.spec.check.clusters import check_clusters
from kueue_fleet.spec.check.cohorts import check_cohorts
from kueue_fleet.spec.check.dispatch import check_dispatch
from kueue_fleet.spec.check.flavor_pools import check_flavor_pools
from kueue_fleet.spec.check.flavors import check_admission_checks, check_flavors
from kueue_fleet.spec.check.names import check_names
from kueue_fleet.spec.check.networks import check_network
from kueue_fleet.spec.check.pool_quotas import check_pool_quotas
from kueue_fleet.spec.check.pools import check_pools
from kueue_fleet.spec.check.priorities import check_priorities
from kueue_fleet.spec.check.queued_pools import check_queued_pools
from kueue_fleet.spec.check.queues import check_queues
from kueue_fleet.spec.check.reservations import check_reservations
from kueue_fleet.spec.check.scope import SECTIONS, Scope
from kueue_fleet.spec.check.settings import check_settings
from kueue_fleet.spec.check.tenants import check_tenants
from kueue_fleet.spec.check.waiting_copies import check_waiting_copies
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.problem import Problem

_RULES = (
    check_names,
    check_clusters,
    check_network,
    check_pools,
    check_reservations,
    check_flavors,
    check_flavor_pools,
    check_pool_quotas,
    check_queued_pools,
    check_admission_checks,
    check_cohorts,
    check_queues,
    check_waiting_copies,
    check_manager_quotas,
    check_priorities,
    check_tenants,
    check_accounts,
    check_settings,
    check_dispatch,
)


def check_fleet(fleet: FleetSpec) -> list[Problem]:
    """Every problem of `fleet`, errors and warnings, in the order of the file."""
    return check_scope(Scope(fleet))


def check_scope(scope: Scope) -> list[Problem]:
    """Every problem of the scope's fleet but those about what could not be read, in the order of the file."""
    found = [*_entry_problems(scope), *(problem for rule in _RULES for problem in rule(scope))]
    return scope.in_file_order(problem for problem in dict.fromkeys(found) if not scope.is_about_unread(problem))


def _entry_problems(scope: Scope) -> Iterator[Problem]:
    """What the entries say about themselves."""
    for section in SECTIONS:
        for entry in scope.entries(section):
            for problem in entry.own_problems():
                yield problem.at(scope.path(entry))
    for path, part in (
        ("network", scope.fleet.network),
        ("multiKueue", scope.fleet.multi_kueue),
        ("admissionController", scope.fleet.admission_controller),
        ("observability", scope.fleet.observability),
    ):
        for problem in part.own_problems() if part is not None else ():
            yield problem.at(path)
