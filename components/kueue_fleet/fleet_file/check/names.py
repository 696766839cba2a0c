"""Names: once in each list, and none that the fleet itself makes.

Two entries of one name would be one object, whose fields change with every run.
Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel import syntax
from kueue_admission.kernel.form_rules import BAD_SYNTAX, LISTED_TWICE
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import SECTIONS, Scope, fleet_check
from kueue_fleet.fleet_file.model.per_cluster import dispatch_groups
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN
from kueue_fleet.fleet_file.rules.teams import GENERATED_NAME


@fleet_check
def _in_labels(scope: Scope) -> Iterator[Problem]:
    """Names that jobs give in a label, which is shorter than a name may be.

    Source: kueue@v0.19.2 pkg/controller/constants (QueueLabel, WorkloadPriorityClassLabel).
    """
    fleet = scope.fleet
    paths = [(f"{scope.path(team)}.localQueues[{queue.name}].name", queue.name)
             for team in fleet.teams for queue in team.local_queues]  # fmt: skip
    paths += [(f"{scope.path(queue)}.name", queue.name) for queue in fleet.local_queues]
    paths += [(f"{scope.path(entry)}.name", entry.name) for entry in fleet.workload_priority_classes]
    for path, name in paths:
        if syntax.label_value(name):
            wrong = f"{name} is {len(name)} characters long, and jobs name it in a label, which has at most 63"
            yield BAD_SYNTAX.at(path, wrong, "write a shorter name")


@fleet_check
def _all_unique(scope: Scope) -> Iterator[Problem]:
    for section in SECTIONS:
        if section != "localQueues":
            yield from _unique(scope, section)


@where_read
def _unique(scope: Scope, section: str) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for index, entry in enumerate(scope.entries(section)):
        here = f"{section}[{index}]"
        if first.setdefault(entry.name, here) != here:
            wrong = f"{entry.name} is already the name of {first[entry.name]}"
            yield LISTED_TWICE.at(f"{here}.name", wrong, f"give each {SECTIONS[section].noun} a unique name")


@fleet_check
def _generated(scope: Scope) -> Iterator[Problem]:
    """Names that the multiKueue section makes: no check of the file has one, and each is a name that Kueue takes."""
    groups = dispatch_groups(scope.fleet)
    yield from _checks(scope, {group.check_name for group in groups})
    for group in groups:
        if group.queues and group.workers != scope.fleet.worker_names and syntax.dns_label(group.config_name):
            queue = scope.fleet.queue(group.queues[0])
            yield GENERATED_NAME.at(
                f"{scope.path(queue) if queue is not None else 'clusterQueues'}.name",
                f"{group.queues[0]} is on some workers only, and the MultiKueueConfig for these would be called "
                f"{group.config_name}, to which a check refers by at most 63 letters, digits and hyphens",
                "shorten the queue's name, and write it without dots",
            )


@where_read
def _checks(scope: Scope, made_check_names: set[str]) -> Iterator[Problem]:
    for check in scope.fleet.admission_checks:
        if check.name in made_check_names:
            yield NAME_TAKEN.at(
                f"{scope.path(check)}.name",
                f"{check.name} is the name of the MultiKueue check that the fleet makes",
                "use another name, or change multiKueue.admissionCheckName",
            )


@fleet_check
def _config_names(scope: Scope) -> Iterator[Problem]:
    """ProvisioningRequestConfigs: a DNS label each, as the check's reference to it demands, and no two alike."""
    first: dict[str, str] = {}
    for check in scope.fleet.admission_checks:
        if check.provisioning_request is None:
            continue
        here = f"{scope.path(check)}.provisioningRequest.configName"
        if check.provisioning_request.config_name is None and syntax.dns_label(check.name):
            yield GENERATED_NAME.at(
                here,
                f"not set, and the check's name {check.name} cannot be the name of a ProvisioningRequestConfig, "
                "to which a check refers by at most 63 letters, digits and hyphens",
                "set configName",
            )
        elif check.config_name in first:
            yield NAME_TAKEN.at(
                here,
                f"{check.config_name} is already the config of {first[check.config_name]}",
                "set another configName",
            )
        else:
            first[check.config_name] = scope.path(check)
