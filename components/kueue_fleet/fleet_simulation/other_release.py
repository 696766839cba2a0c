"""The jobs that another release of Kueue decides differently: the same simulation as each of both decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import Configuration
from kueue_admission.kernel.form_rules import NOT_MODELLED
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.dumped_configuration import configurations_in, release_in
from kueue_admission.read.manifests import QUEUED
from kueue_admission.releases import Release, nearest
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.raw import name_documents, prepare_objects, read_raw
from kueue_admission.simulate.what_if import differences
from kueue_fleet.diff.upgrade import with_version
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.rules.teams import DECIDED_OTHERWISE
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile

_Place = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What both releases decide about the same jobs."""

    jobs: int
    """How many were compared; 0: none, since `problems` says what is not modelled."""
    differences: Sequence[Mapping[str, Any]]
    """See `what_if.differences`."""
    problems: Sequence[Problem]
    """One for each difference, a warning; or each feature that is not modelled for one of the releases, an error."""
    notes: Sequence[str] = ()
    """The objects of a dump that were left out, and that the release is not certain."""


def compare_jobs(fleet: FleetSpec, to: str, file: WorkloadFile, manifests: Sequence[Document]) -> Compared:
    """Jobs that are submitted to the fleet: those of `file`, and those given as Kubernetes objects.

    Raises SimulationError with every problem of the jobs.
    """
    versions = listed(list(dict.fromkeys(fleet.kueue_on(name).version for name in fleet.cluster_names)))
    sides = [
        (name, lambda each=fleet_then: prepare_fleet(each, file, Delays(), manifests=manifests))
        for name, fleet_then in ((versions, fleet), (to, with_version(fleet, to)))
    ]
    return _compare(sides, name_documents(manifests))


def compare_dump(fleet: FleetSpec, to: str, documents: Sequence[Document]) -> Compared:
    """Workloads and jobs as one live cluster has them, from the state in which they were printed.

    Kueue's Configuration, and its release before, are those of its ConfigMap and Deployment among the objects; without
    them, those of the cluster where the fleet's jobs are submitted.
    Raises SimulationError with every problem of the objects.
    """
    configuration = next(configurations_in(document.data for document in documents), None)
    runs = release_in(document.data for document in documents)
    notes: dict[str, None] = {}

    def side(of: FleetSpec, kueue: Release) -> tuple[str, Callable[[], Prepared]]:
        def prepare() -> Prepared:
            data = kueue_configuration(of, of.home) if configuration is None else configuration[1]
            raw = read_raw(documents, _read(data, kueue))
            notes.update(dict.fromkeys(raw.notes))
            return prepare_objects(raw, Delays())

        return kueue.version, prepare

    after, before = with_version(fleet, to), fleet.kueue_on(fleet.home).release
    sides = [
        side(fleet, runs or before),
        side(after, after.kueue_on(fleet.home).release),
    ]
    comparison = _compare(sides, [document for document in documents if document.data["kind"] in QUEUED])
    return replace(comparison, notes=(*notes, *comparison.notes))


def _read(data: Mapping[str, Any], kueue: Release) -> Configuration:
    try:
        return parse_configuration(data, kueue)
    except ObjectError as refused:
        raise SimulationError(refused.problems) from None
    except NotModelledError as refused:
        raise SimulationError([refused.problem]) from None


def _compare(sides: Iterable[tuple[str, Callable[[], Prepared]]], documents: Iterable[Document]) -> Compared:
    results, versions, refusals = [], [], []
    for version, prepare in sides:
        versions.append(version)
        try:
            results.append(prepare().run())
        except SimulationError as failed:
            if any(problem.rule != NOT_MODELLED for problem in failed.problems):
                raise
            why = f", so what Kueue {version} decides is not known"
            refusals += [replace(problem, wrong=problem.wrong + why) for problem in failed.problems]
    if refusals:
        return Compared(0, (), refusals)
    before, after = results
    changes = differences(before, after)
    places = {_place(document.data["metadata"]): document.where for document in documents}
    unsure = f"Kueue {versions[-1]} never ran here: what it decides is known from its source and changelog alone"
    notes = () if nearest(versions[-1]).run_here else (unsure,)
    return Compared(
        len(before.records), changes, [_problem(difference, versions, places) for difference in changes], notes
    )


def _place(metadata: Mapping[str, Any]) -> _Place:
    return str(metadata.get("namespace") or "default"), str(metadata["name"])


def _problem(problem_data: Mapping[str, Any], versions: Sequence[str], places: Mapping[_Place, str]) -> Problem:
    key = problem_data["namespace"], problem_data["name"]
    texts = [_side_text(problem_data[side]) for side in ("before", "after")]
    if texts[0] == texts[1]:
        texts = [f"{text}, {_when(problem_data[side])}" for text, side in zip(texts, ("before", "after"), strict=True)]
    wrong = "; ".join(f"with Kueue {version} {text}" for version, text in zip(versions, texts, strict=True))
    fix = "see docs/releases.md, and change the job or its queue first where it must not be so"
    problem = DECIDED_OTHERWISE.at("/".join(key), f"is decided differently: {wrong}", fix)
    return problem.behind(places[key]) if key in places else problem


def _side_text(side: Mapping[str, Any] | None) -> str:
    if side is None:
        return "not submitted"
    flavors = dict.fromkeys(name for pod_set in side["flavors"].values() for name in pod_set.values())
    where = [f"on {side['cluster']}"] if side["cluster"] else []
    return " ".join((side["state"], *where, *([f"with {listed(list(flavors))}"] if flavors else [])))


def _when(side: Mapping[str, Any]) -> str:
    times = [f"{name.removesuffix('At')} at {side[name]:g} s" for name in ("admittedAt", "finishedAt") if side[name]]
    return listed([*times, f"evicted {len(side['evictions'])} times"])
