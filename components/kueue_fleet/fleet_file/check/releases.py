"""The releases of Kueue that the file names: what each has of what is written, and which go together.

Source: the tables of `kueue_admission.releases`, read from kueue@v0.19.2 pkg/features/kube_features.go, apis/config and
config/components/crd, and from the same files of other releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, NamedTuple

from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import UNKNOWN_FIELD
from kueue_admission.kernel.problem import Problem, Severity
from kueue_admission.kernel.tables import read_table
from kueue_admission.kernel.versions import numbers_of
from kueue_admission.releases import DEFAULT_VERSION, KEEPS_JOBS_OF_LOST, Release, minors, nearest, release
from kueue_fleet.fleet_file.check.scope import FIELDS, Scope, fleet_check
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.clusters import IncrementalDispatcher
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.rules.teams import (
    FEATURE_GATE,
    LOST_AT_ONCE,
    OTHER_KUEUE,
    RELEASE_API,
    RELEASE_FIELD,
    RELEASE_SKEW,
)
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS

_API: Final = "v1beta2"
_SERVES_API: Final = (0, 15)
"""The first release that serves it. Source: https://github.com/kubernetes-sigs/kueue/pull/7304."""
_STEP: Final = "multiKueue.incrementalDispatcherConfig.stepSize"
_RELEASES: Final = "kueue_admission.releases"
"""The package with the tables of the releases."""
_STOPPED_BY_NAME: Final = "does not start with an output of resources called pods"
"""What one of the notes says."""
_WITHOUT_OWNER: Final = "FinishOrphanedWorkloads"
"""Feature gate: Kueue finishes a Workload whose owner is gone, since 0.18 also one with the label of a Job and none."""
BY_ANNOTATION: Final = "WorkloadIdentifierAnnotations"
"""Feature gate, new in 0.18: an annotation of a Job names its Workload, which a label did before."""
_PODS: Final = "pods"
_NAMES_GATE: Final = "ReservedResourceNameValidation"
_OBJECTS: Final = {
    "flavors": "ResourceFlavor",
    "topologies": "Topology",
    "cohorts": "Cohort",
    "clusterQueues": "ClusterQueue",
}
"""Lists of the file whose entries have fields that only some releases have."""


def severity(kueue: Release) -> Severity:
    """The severity of using what a release does not have: a warning where that is not certain."""
    return "error" if kueue.version in kueue.read and kueue.run_here else "warning"


def which_have(has: Callable[[Release], bool]) -> str:
    """What to do about something that only other releases have; empty where none has it."""
    minors_having = _having(has)
    return (
        f"remove it, or use {' or '.join(minors_having)}, which {'has' if len(minors_having) == 1 else 'have'} it"
        if minors_having
        else ""
    )


def _having(has: Callable[[Release], bool]) -> list[str]:
    return [facts.version for facts in map(release, minors()) if has(facts)]


def _named(scope: Scope) -> dict[str, str]:
    """Each version in the file, by its path."""
    own = {f"{scope.path(entry)}.kueue.version": entry.kueue.version for entry in scope.entries("clusters")}
    return {"kueue.version": scope.fleet.kueue.version, **{path: value for path, value in own.items() if value}}


@fleet_check
def _known(scope: Scope) -> Iterator[Problem]:
    for path, version in _named(scope).items():
        judged = nearest(version)
        if numbers_of(version)[:2] < _SERVES_API:
            wrong = f"{version}, which does not serve {_API}, in which the fleet writes Kueue's objects"
            yield RELEASE_API.at(path, wrong, _from_older(version, f"use {DEFAULT_VERSION}"))
            continue
        if version not in judged.read:
            yield OTHER_KUEUE.at(
                path,
                f"{version}, but the rules checked here are those of {judged.read[-1]}",
                _newer(version, judged),
            )
        elif not judged.run_here:
            notes = _notes(judged)
            yield OTHER_KUEUE.at(
                path,
                f"{version}, whose rules are known here from its source and changelog alone: it never ran here",
                f"use {DEFAULT_VERSION}, or try it before you rely on it" + (f"; {notes}" if notes else ""),
            )


def _newer(version: str, judged_release: Release) -> str:
    """What to do about a version that was not read: never an older patch."""
    read = judged_release.read[-1]
    if numbers_of(version) <= numbers_of(read):
        return _from_older(version, f"use {read}, or read the release notes of both")
    notes = _notes(judged_release)
    return f"read the release notes since {read}" + (f"; {notes}" if notes else "")


class _Note(NamedTuple):
    """What the release notes of a version say that its minor release's tables were read without."""

    since: str
    """The first version that the text is true of."""
    text: str
    """What it does, such as `fixes ...`."""


@cache
def _notes_in(file: str) -> tuple[_Note, ...]:
    """The notes of a table, oldest first; none where there is no such table."""
    if not files(_RELEASES).joinpath(file).is_file():
        return ()
    return tuple(_Note(row["since"], row["note"]) for row in read_table(_RELEASES, file))


def _from_older(version: str, fix: str) -> str:
    """With what breaks in releases between a version and those that are known here."""
    notes = _listed(note for note in _notes_in("earlier.csv") if numbers_of(note.since) > numbers_of(version))
    return fix + (f"; {notes}" if notes else "")


def _notes(judged_release: Release) -> str:
    """What is known of the patches that were not read."""
    after = numbers_of(judged_release.read[-1])
    return _listed(note for note in _notes_in(f"{judged_release.minor}/notes.csv") if numbers_of(note.since) > after)


def _listed(notes: Iterable[_Note]) -> str:
    return ", ".join(f"{note.since} {note.text}" for note in notes)


@fleet_check
def _configurations(scope: Scope) -> Iterator[Problem]:
    """Fields of the Configuration that the file sets; the fleet's are judged by the release of each cluster."""
    fleet = scope.fleet
    releases = dict.fromkeys(fleet.kueue_on(cluster.name).release for cluster in fleet.clusters)
    configurations = [("kueue.configuration", fleet.kueue.configuration, releases)]
    for cluster in scope.entries("clusters"):
        own = {fleet.kueue_on(cluster.name).release: None}
        configurations.append((f"{scope.path(cluster)}.kueue.configuration", cluster.kueue.configuration, own))
    for path, configuration, judged in configurations:
        yield from _missing(path, "Configuration", configuration.wire(), judged)


def missing_fields(kueue: Release, of: str, data: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The fields of `data` that `of` does not have in a release; of what is missing whole, the top."""
    for name, value in data.items():
        field_path = f"{above}{name}"
        items = value if isinstance(value, list | tuple) else [value]
        path = next((path for path in (field_path, f"{field_path}[]") if kueue.has_field(of, _API, path)), None)
        if path is None:
            yield field_path
        elif kueue.fields_of(of, _API, f"{path}."):
            for item in (item for item in items if isinstance(item, Mapping)):
                yield from missing_fields(kueue, of, item, f"{path}.")


def _missing(path: str, of: str, data: dict[str, Any], releases: Iterable[Release]) -> Iterator[Problem]:
    """Fields that other releases have, and those of the Configuration that none has; others are the file's own.

    Source of the latter: kueue@v0.19.2 pkg/config/config.go (fromFile), which reads the Configuration strictly.
    """
    for kueue in releases:
        for field in missing_fields(kueue, of, data):
            having = which_have(partial(Release.has_field, of=of, version=_API, field=field))
            at = field.replace("[]", "")
            if not having and of == "Configuration":
                above = f"{field.rpartition('.')[0]}."
                known_fields = {field.removeprefix(above).split(".")[0] for field in kueue.fields_of(of, _API, above)}
                fix = suggest.instead(
                    field.rpartition(".")[2], sorted(name.removesuffix("[]") for name in known_fields), "fields"
                )
                yield UNKNOWN_FIELD.at(f"{path}.{at}", "is not a known field, with which Kueue does not start", fix)
            elif having:
                wrong = f"Kueue {kueue.version} has no field {at} in {of}"
                yield RELEASE_FIELD.at(f"{path}.{at.removeprefix('spec.')}", wrong, having, severity(kueue))


def _does_not_start(kueue: Release) -> bool:
    """Whether it does not start with such an output."""
    notes, version = _notes_in(f"{kueue.minor}/notes.csv"), numbers_of(kueue.version)
    return any(note.text == _STOPPED_BY_NAME and numbers_of(note.since) <= version for note in notes)


@fleet_check
def _reserved(scope: Scope) -> Iterator[Problem]:
    """Outputs that are called as the quota of pods is: newer releases do not start with them."""
    fleet = scope.fleet
    for cluster in fleet.clusters:
        kueue = fleet.kueue_on(cluster.name)
        configuration = kueue_configuration(fleet, cluster.name)
        is_on = configuration.get("featureGates", {}).get(_NAMES_GATE, True)
        if not is_on or not _does_not_start(kueue.release):
            continue
        resources, at = configuration.get("resources") or {}, "kueue.configuration.resources"
        if cluster.kueue.configuration.resources is not None:
            at = f"{scope.path(cluster)}.{at}"
        places = [
            f"transformations[{index}].outputs[{_PODS}]"
            for index, transformation in enumerate(resources.get("transformations") or ())
            if _PODS in (transformation.get("outputs") or {})
        ]
        mappings = enumerate(resources.get("deviceClassMappings") or ())
        places += [f"deviceClassMappings[{index}].name" for index, mapping in mappings if mapping.get("name") == _PODS]
        for place in places:
            wrong = f"{_PODS} is a name that Kueue {kueue.version} keeps for itself, and it does not start"
            yield RELEASE_FIELD.at(f"{at}.{place}", wrong, "use another name")


@fleet_check
def _set_by_fleet(scope: Scope) -> Iterator[Problem]:
    """Feature gates that other sections of the file need."""
    fleet = scope.fleet
    releases: dict[tuple[str, str], Release] = {}
    for cluster in scope.entries("clusters"):
        kueue, own = fleet.kueue_on(cluster.name).release, cluster.kueue
        gates = {**(fleet.kueue.configuration.feature_gates or {}), **(own.configuration.feature_gates or {})}
        path = f"{scope.path(cluster)}.kueue.version" if own.version else "kueue.version"
        for gate in kueue_configuration(fleet, cluster.name).get("featureGates", {}):
            if gate not in gates and gate not in kueue.gates:
                releases[path, gate] = kueue
    for (path, gate), kueue in releases.items():
        yield FEATURE_GATE.at(
            path,
            f"Kueue {kueue.version} has no feature gate {gate}, which another section of the file needs",
            f"use {' or '.join(_having(partial(Release.has_gate, name=gate)))}",
            severity(kueue),
        )


@fleet_check
def _step(scope: Scope) -> Iterator[Problem]:
    """How many workers more are asked each time."""
    fleet = scope.fleet
    own = fleet.multi_kueue and fleet.multi_kueue.incremental
    if not own or own == IncrementalDispatcher():
        return
    kueue = fleet.kueue_on(fleet.home).release
    has = partial(Release.has_field, of="Configuration", version=_API, field=_STEP)
    if not has(kueue):
        wrong = f"Kueue {kueue.version} has no field {_STEP} in Configuration, and asks three workers more each time"
        yield RELEASE_FIELD.at("multiKueue.incremental.stepSize", wrong, which_have(has), severity(kueue))


@fleet_check
def _objects(scope: Scope) -> Iterator[Problem]:
    fleet = scope.fleet
    # The fleet's model writes its entries too; their own would be made for this alone.
    fields = {FIELDS[section] for section in _OBJECTS}
    fleet_objects = fleet.model_dump(mode="json", by_alias=True, exclude_none=True, include=fields)
    for section, kind in _OBJECTS.items():
        for entry, data in zip(scope.entries(section), fleet_objects.get(section, ()), strict=True):
            there = {cluster.name for cluster in fleet.clusters}
            here = there if section == "cohorts" else there.intersection(fleet.clusters_of(entry))
            releases = dict.fromkeys(fleet.kueue_on(name).release for name in sorted(here))
            yield from _missing(scope.path(entry), kind, {"spec": data}, releases)


@fleet_check
def _skew(scope: Scope) -> Iterator[Problem]:
    """A worker keeps every field of a Workload that the manager copies to it, else the copy is made again and again.

    It also knows the Workload of a Job in the way in which the manager writes it: 0.17 reads a label alone, where 0.18
    and newer write an annotation. It would make a second Workload for each Job, as a rehearsal of 0.19.2 with workers
    of 0.17.1 did. And 0.17 leaves the label of the Job on its copies, which a newer worker then finishes, as workers of
    0.18.3 and 0.19.2 below 0.17.1 did: no job ran, and the manager took all of them for finished.
    Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (isRemoteSpecOutOfSync, cloneForCreate),
    pkg/controller/core/workload_controller.go (isOrphanedWorkload), pkg/controller/jobframework/utils.go
    (SetPrebuiltWorkloadName); each release from 0.17 on writes copies in v1beta2.
    """
    fleet = scope.fleet
    if fleet.manager is None:
        return
    manager = fleet.kueue_on(fleet.manager.name).release
    annotates = manager.gate_is_on(BY_ANNOTATION, kueue_configuration(fleet, fleet.manager.name).get("featureGates"))
    for name in fleet.worker_names:
        worker = fleet.kueue_on(name).release
        path = f"{scope.path(fleet.cluster(name))}.kueue.version"
        lost = sorted(manager.fields_of("Workload", _API, "spec.") - worker.fields_of("Workload", _API, "spec."))
        if lost:
            yield RELEASE_SKEW.at(
                path,
                f"{worker.version}, whose Workloads have no {listed(lost)}; the manager's {manager.version} writes it",
                "use a release on the worker that has them",
            )
        if annotates and BY_ANNOTATION not in worker.gates:
            yield RELEASE_SKEW.at(
                path,
                f"{worker.version}, whose Workloads have no tie to a Job but a label; the manager's {manager.version} "
                "writes an annotation, so that the worker makes a second Workload",
                f"use 0.18 or newer on the worker, or set featureGates.{BY_ANNOTATION} of the manager to false",
            )
        finishes = worker.gate_is_on(_WITHOUT_OWNER, kueue_configuration(fleet, name).get("featureGates"))
        if finishes and BY_ANNOTATION in worker.gates and BY_ANNOTATION not in manager.gates:
            yield RELEASE_SKEW.at(
                path,
                f"{worker.version}, whose Workloads have no owner if a manager of {manager.version} copies them there, "
                "and are finished for that: no job runs, and the manager takes all of them for finished",
                f"upgrade the manager first, with its featureGates.{BY_ANNOTATION} false, or set "
                f"featureGates.{_WITHOUT_OWNER} of the worker to false",
            )


@fleet_check
def _lost_workers(scope: Scope) -> Iterator[Problem]:
    """Kueue 0.17 and 0.18 count workerLostTimeout from when the job was admitted on its worker.

    No job runs longer than DWS lets nodes run, so with a timeout of that length none is taken back too early.
    """
    manager, settings = scope.fleet.manager, scope.fleet.multi_kueue
    if manager is None or settings is None:
        return
    kueue, timeout = scope.fleet.kueue_on(manager.name), settings.worker_lost_timeout
    if kueue.release.behaviours[KEEPS_JOBS_OF_LOST] != "no" or (timeout and timeout.seconds >= FLEX_START_MAX_SECONDS):
        return
    yield LOST_AT_ONCE.at(
        "multiKueue.workerLostTimeout",
        f"{timeout or '15m'}, which Kueue {kueue.version} counts from when a job was admitted on its worker: a job "
        "that runs longer is evicted as soon as the manager does not reach its worker",
        "use 0.19 or newer on the manager, or set it to 168h, longer than jobs run",
    )
