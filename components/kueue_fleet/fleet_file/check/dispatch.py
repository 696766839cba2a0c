"""The fleet's controller and the rest of the file: dispatcher, admission checks, prices, groups of regions.

Source: kueue@v0.19.2 apis/config/v1beta2/configuration_types.go (dispatcherName), and
https://kueue.sigs.k8s.io/docs/concepts/admission_check/ (a check waits for whoever its controllerName names).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel import suggest
from kueue_admission.kernel.duration import Duration
from kueue_admission.kernel.form_rules import EXCLUDED, UNKNOWN_NAME
from kueue_admission.kernel.names import BUDGET_CHECK, FALLBACK_CHECK
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.capacity import FlexStart
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry
from kueue_fleet.fleet_file.model.per_cluster import budgeted_queues
from kueue_fleet.fleet_file.rules.clusters import RUNS_NO_JOBS
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN
from kueue_fleet.fleet_file.rules.queues import PATIENCE
from kueue_fleet.fleet_file.rules.teams import OWN_CONTROLLER
from kueue_fleet.settings.dispatch import (
    ASSIGNMENT_CHECK,
    CHECK_CONTROLLER,
    DISPATCHER_NAME,
    AdmissionControllerArgs,
)

_AT = "controller"
_DAY = Duration("24h")


@fleet_check
def _dispatcher(scope: Scope) -> Iterator[Problem]:
    section, settings = scope.fleet.controller, scope.fleet.multi_kueue
    if settings is not None:
        name, wrong = settings.dispatcher_name, "is not the fleet's own controller"
        yield from suggest.misspelt("multiKueue.external.name", name, [DISPATCHER_NAME], wrong, likeness=0.9)
    ours = settings is not None and settings.dispatcher_name == DISPATCHER_NAME
    if section is not None and settings is None:
        yield from _alone(scope, section)
    elif section is None and ours:
        yield OWN_CONTROLLER.at(
            "multiKueue.external.name",
            f"{DISPATCHER_NAME} is the fleet's own controller, which is not deployed",
            "add the section controller",
        )
    elif section is not None and not ours and "dispatch" in section.model_fields_set:
        yield EXCLUDED.at(
            f"{_AT}.dispatch",
            "set, but another dispatcher is used",
            f"set multiKueue.dispatcher to External and multiKueue.external.name to {DISPATCHER_NAME}, or remove it",
        )


@where_read
def _alone(scope: Scope, section: AdmissionControllerArgs) -> Iterator[Problem]:
    """On a standalone cluster it has something to do."""
    queues = scope.fleet.cluster_queues
    works = any(queue.fallback or queue.quota_follows == "capacity" or queue.windows for queue in queues)
    if not section.checks and not works and not budgeted_queues(scope.fleet) and section.history is None:
        does = "checks, fallback, quotaFollows, during, enforced budget or history"
        what = f"set, but there is no multiKueue section, and no {does}"
        fix = "remove it, add workers and multiKueue, or set fallback in a queue"
        yield OWN_CONTROLLER.at(_AT, what, fix, "warning")


@entry_check("admissionChecks")
def _answered(scope: Scope, entry: AdmissionCheckEntry) -> Iterator[Problem]:
    """A check of our controller that it knows nothing of is one that Kueue would wait for indefinitely."""
    section, manager = scope.fleet.controller, scope.fleet.manager_name or scope.fleet.controller_cluster
    if entry.name in (ASSIGNMENT_CHECK, BUDGET_CHECK, FALLBACK_CHECK):
        yield NAME_TAKEN.at(f"{scope.path(entry)}.name", "is the fleet's own check of that name", "use another name")
    if entry.controller_name != CHECK_CONTROLLER:
        return
    if section is None or entry.name not in [check.name for check in section.checks]:
        yield OWN_CONTROLLER.at(
            f"{scope.path(entry)}.controllerName",
            f"{CHECK_CONTROLLER}, but controller.checks has no {entry.name}",
            f"add {{name: {entry.name}}} there",
        )
    if scope.fleet.clusters_of(entry) != (manager,):
        yield OWN_CONTROLLER.at(
            f"{scope.path(entry)}.clusters",
            "names other clusters than the manager, where no controller answers this check",
            f"set it to [{manager}]" if manager else "remove the check",
        )


@entry_check("controller")
def _checks(scope: Scope, section: AdmissionControllerArgs) -> Iterator[Problem]:
    for check in section.checks:
        path = f"{_AT}.checks[{check.name}].name"
        entry = scope.fleet.check(check.name)
        if entry is None:
            yield from scope.unknown("admissionChecks", check.name, path)
        elif entry.controller_name != CHECK_CONTROLLER:
            yield OWN_CONTROLLER.at(
                path, f"{check.name} is answered by another controller", f"set its controllerName to {CHECK_CONTROLLER}"
            )


@entry_check("controller")
def _prices(scope: Scope, section: AdmissionControllerArgs) -> Iterator[Problem]:
    regions = sorted({cluster.place for cluster in scope.fleet.clusters if cluster.runs_jobs})
    for region, prices in section.prices.items():
        path = f"{_AT}.prices[{region}]"
        if not set(section.regions([region])) & set(regions):
            where = "any region of this group" if region in section.region_groups else "this region"
            yield RUNS_NO_JOBS.at(
                path, f"no cluster that runs jobs is in {where}", suggest.instead(region, regions, "regions")
            )
        for flavor in prices:
            yield from scope.unknown("flavors", flavor, f"{path}[{flavor}]")


@entry_check("controller")
def _patience(scope: Scope, section: AdmissionControllerArgs) -> Iterator[Problem]:
    """Where jobs wait for DWS, which may take days, they are not taken back within hours."""
    fleet = scope.fleet
    check_names = [check.name for check in fleet.admission_checks if check.provisioning_request is not None]
    check_names += [pool.name for pool in fleet.node_pools if isinstance(pool.capacity, FlexStart)]
    if not check_names:
        return
    for path, value in (
        ("dispatch.giveUpAfter", section.dispatch.give_up_after),
        ("watchdog.provisioningTimeout", section.watchdog.provisioning_timeout),
    ):
        if value < _DAY:
            yield PATIENCE.at(
                f"{_AT}.{path}",
                f"{value}, but {check_names[0]} asks DWS for capacity, which may take days, and a job that is taken "
                "back loses its place there",
                "write 24h or more",
            )


@entry_check("controller")
def _groups(scope: Scope, section: AdmissionControllerArgs) -> Iterator[Problem]:
    known_places = {*scope.known_places, *(cluster.region for cluster in scope.fleet.clusters)}
    for name, regions in section.region_groups.items():
        path = f"{_AT}.regionGroups[{name}]"
        if name in known_places:
            yield NAME_TAKEN.at(path, "is a region's own name", "use another name for the group")
        for index, region in enumerate(regions):
            if region not in known_places:
                yield UNKNOWN_NAME.at(
                    f"{path}[{index}]", f"there is no region {region}", suggest.instead(region, known_places, "regions")
                )
