"""The engines that only some fleets need, and the parts of a fleet that no engine here runs."""

from __future__ import annotations

from kueue_admission.kernel import Problem
from kueue_admission.kernel.versions import minor_of
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.rules.commands import NOT_REHEARSED, OTHER_VERSION
from kueue_rehearsal.engines import ENGINES, KUEUE_ENGINES, OPERATOR_ENGINES

_VERSIONS = {engine.name: engine.version.removeprefix("v") for engine in ENGINES}


def fleet_engines(fleet: FleetSpec) -> list[str]:
    """The names of the engines that only some fleets need, and this one does: of its operators, and of its releases of
    Kueue. Each cluster runs the release that it names."""
    releases = {minor_of(version) for version in _kueue_versions(fleet).values()}
    others = [name for release, name in KUEUE_ENGINES.items() if release in releases and name != "kueue"]
    return [*(OPERATOR_ENGINES[name] for name in fleet.operators.installed), *others]


def check_runs_here(fleet: FleetSpec) -> list[Problem]:
    """What the fleet declares and no rehearsal can bring up, known before anything starts."""
    problems = []
    if any(map(fleet.dra_pools_on, fleet.cluster_names)):
        problems.append(
            NOT_REHEARSED.at(
                "nvidiaDraDriver",
                "installed, but nodes of a rehearsal have no devices, and no program stands in for the driver",
                "remove it in a copy of this stack, and rehearse that",
            )
        )
    problems += [
        NOT_REHEARSED.at(
            f"clusters[{cluster.name}].sliceController",
            "true, but no program stands in for GKE's slice controller",
            "remove it in a copy of this stack, with the pools that need it, and rehearse that",
        )
        for cluster in fleet.clusters
        if cluster.slice_controller
    ]
    known_versions = listed([_VERSIONS[name] for name in KUEUE_ENGINES.values()])
    for path, version in _kueue_versions(fleet).items():
        if minor_of(version) not in KUEUE_ENGINES:
            problems.append(
                NOT_REHEARSED.at(
                    path,
                    f"{version}, but a rehearsal has Kueue {known_versions}",
                    "write one of them in a copy of this stack",
                )
            )
    return problems


def runs_otherwise(fleet: FleetSpec) -> list[Problem]:
    """What runs here in another version than the fleet declares: operators, and Kueue in another patch release; and
    Grafana, which does not run."""
    declared_versions = {
        f"operators.{name}.version": (operator.version, OPERATOR_ENGINES[name])
        for name, operator in fleet.operators.installed.items()
    }
    for path, version in _kueue_versions(fleet).items():
        if minor_of(version) in KUEUE_ENGINES:
            declared_versions[path] = (version, KUEUE_ENGINES[minor_of(version)])
    left_out = NOT_REHEARSED.at(
        "observability.grafana",
        "does not run in a rehearsal, which has neither its chart nor its image; an empty chart is installed for it",
        "do not rely on it; its account, its values and its dashboard are as declared",
        "warning",
    )
    notes = [left_out] if fleet.observability.installs_grafana else []
    return notes + [
        OTHER_VERSION.at(
            path,
            f"is {version}, but a rehearsal runs {_VERSIONS[engine]}",
            "do not rely on it for what changed between them",
            "warning",
        )
        for path, (version, engine) in declared_versions.items()
        if version != _VERSIONS[engine]
    ]


def _kueue_versions(fleet: FleetSpec) -> dict[str, str]:
    """Each version of Kueue in the file, by its path; the fleet's only where a cluster uses it."""
    own = {f"clusters[{cluster.name}].kueue.version": cluster.kueue.version for cluster in fleet.clusters}
    versions = {path: version for path, version in own.items() if version is not None}
    return versions if len(versions) == len(own) else {"kueue.version": fleet.kueue.version, **versions}
